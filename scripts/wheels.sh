#!/usr/bin/env bash
# Build wheels of this checkout for Linux and macOS, each on x86-64 and ARM, inside .venv on Linux:
#   bash scripts/wheels.sh OUT [TARGET...]
#   TARGET  linux-x86_64, linux-aarch64, macos-arm64, macos-x86_64 (default: all)
# ziglang is the compiler for all of them. A wheel serves every Python from 3.11 on, and every Linux
# with glibc 2.17 or later. All are checked; that for this machine is installed and translates.
# scripts/arm.sh runs the code of the other one for Linux.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:?usage: wheels.sh OUT [TARGET...]}")
shift
targets=("$@")
[ $# -gt 0 ] || targets=(linux-x86_64 linux-aarch64 macos-arm64 macos-x86_64)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
python -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --upgrade setuptools ziglang==0.17.1 auditwheel abi3audit macholib

git ls-files -z --cached --others --exclude-standard -- resmlp_mt setup.py README.md LICENSE |
    xargs -0 cp --parents --target-directory="$work"
for target in "${targets[@]}"; do
    case $target in
        linux-x86_64) zig=x86_64-linux-gnu.2.17 tag=manylinux_2_17_x86_64 ;;
        linux-aarch64) zig=aarch64-linux-gnu.2.17 tag=manylinux_2_17_aarch64 ;;
        macos-arm64) zig=aarch64-macos.11.0 tag=macosx_11_0_arm64 ;;
        macos-x86_64) zig=x86_64-macos.11.0 tag=macosx_11_0_x86_64 ;;
        *) echo "$target: linux-x86_64, linux-aarch64, macos-arm64 or macos-x86_64" >&2 && exit 2 ;;
    esac
    echo "$target ..."
    compiler="$work/tools/bin/python -m ziglang cc -target $zig"
    (
        cd "$work"
        rm -rf build
        CC=$compiler LDSHARED="$compiler -shared -s" CFLAGS="" LDFLAGS="" \
            tools/bin/python setup.py --quiet bdist_wheel --plat-name "$tag" --dist-dir "$out"
    )
    wheel=$(ls "$out"/resmlp_mt-*-"$tag".whl)
    "$work/tools/bin/python" scripts/check_wheel.py "$wheel"
    "$work/tools/bin/abi3audit" --strict "$wheel"
    case $target in
        # All of it is read: auditwheel fails where grep leaves early.
        linux-*) "$work/tools/bin/auditwheel" show "$wheel" | grep manylinux_2_17 >/dev/null ;;
    esac
    if [ "$target" = "linux-$(uname -m)" ]; then
        python -m venv "$work/bare"
        "$work/bare/bin/pip" install --quiet --no-deps --constraint constraints.txt "$wheel" \
            numpy sentencepiece sentencex regex tqdm filelock
        [ -e "$work/export" ] || resmlp-mt export en-de --int8 --out "$work/export" >/dev/null
        (
            cd /
            "$work/bare/bin/python" -c "
from resmlp_mt import Translator
from resmlp_mt.engines.kernels.library import find_kind
print(find_kind(), Translator.from_pretrained('$work/export').translate(['It is raining again.']))"
        )
    fi
done
