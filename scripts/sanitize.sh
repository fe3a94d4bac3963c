#!/usr/bin/env bash
# Run the tests of the compiled code under AddressSanitizer and UndefinedBehaviorSanitizer, inside
# .venv: bash scripts/sanitize.sh [PYTEST OPTIONS]
# gcc builds a copy of the project in a temporary folder. Its tests/engines and tests/export run
# once for each form of the code that this processor has. The first finding ends the run.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

git ls-files -z --cached --others --exclude-standard |
    xargs -0 cp --parents --no-dereference --target-directory="$copy"
cd "$copy"
# At -O3 gcc takes eight times as long for them. With -g a report names lines.
sed -i 's/"-O3"/"-O1"/; s/"-g0"/"-g"/' setup.py
# gcc 12 joins the two loads of `get` in vectors.h behind the scope of its variable, and then finds
# a use after it. The code has no pointer into a scope that ended.
flags="-fsanitize=address,undefined -fno-sanitize-address-use-after-scope"
CC=gcc CFLAGS="$flags -fno-sanitize-recover=all -fno-omit-frame-pointer" \
    python setup.py --quiet build_ext --inplace

# Python was built without them, so their library must be the first that is loaded, and that of C++
# the next, whose exceptions it watches. Python itself never returns some memory. Its own allocator
# would hide what is behind small objects, and pytest what is reported.
sanitized() {
    env LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
        ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
        PYTHONPATH="$copy" OMP_NUM_THREADS=1 "$@"
}

kinds=$(sanitized python -c "
from resmlp_mt.engines.kernels.library import KINDS, find_library
print(*(kind for kind in KINDS if getattr(find_library(), f'has_{kind}')()))")
[ "$kinds" ] || { echo "this processor runs no form of the compiled code" >&2 && exit 1; }
for kind in $kinds; do
    echo "$kind:"
    sanitized RESMLP_CPU_ISA="$kind" python -m pytest --capture=sys tests/engines tests/export "$@"
done
