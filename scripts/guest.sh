#!/usr/bin/env bash
# Run fairseq's own unit tests plain and with this plugin imported, and print what differs.
#
#   git clone https://github.com/facebookresearch/fairseq /tmp/fairseq
#   bash scripts/guest.sh /tmp/fairseq                                  # all but test_binaries.py
#   bash scripts/guest.sh /tmp/fairseq tests/test_binaries.py -k moe    # what pytest is given
#
# The fairseq that is tested is the installed one; the checkout gives the tests. CONTRIBUTING.md
# says what may differ. The status is 1 where more does.
set -euo pipefail

checkout=$(realpath "${1:?the path of a checkout of fairseq}")
shift
[ $# -gt 0 ] || set -- tests --ignore tests/test_binaries.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Beside the tests is what they import, and not the fairseq of the checkout.
ln -s "$checkout/tests" "$checkout/examples" "$checkout/scripts" "$folder"
cd "$folder"

run() { # name of the report, arguments
    # Tests of fairseq read checkpoints of their own as torch did before 2.6.
    TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 PYTHONDONTWRITEBYTECODE=1 python -m pytest -q \
        -p no:cacheprovider --continue-on-collection-errors --junitxml "$folder/$1.xml" \
        "${@:2}" >"$folder/$1.log" 2>&1 || [ $? -eq 1 ] || { tail "$folder/$1.log"; exit 2; }
    tail -n 1 "$folder/$1.log"
}
run plain "$@"
run plugin -p resmlp_mt "$@"

python - plain.xml plugin.xml <<'EOF'
import sys
from xml.etree import ElementTree

# What may differ: CONTRIBUTING.md says why.
ALLOWED = {
    "tests.test_reproducibility.TestReproducibility.test_reproducibility",
    "tests.test_iopath.TestIOPath.test_no_iopath",
    "tests.test_iopath.TestIOPath.test_no_supports_rename",
    "tests.test_checkpoint_utils.TestCheckpointUtils.test_load_model_ensemble_and_task",
    "tests.test_checkpoint_utils.TestCheckpointUtils.test_torch_persistent_save_async",
}


def read(path):
    """What became of each test, and what it ended with."""
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        said = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
        outcome = ("passed", "") if said is None else (said.tag, said.get("message", ""))
        found[f"{case.get('classname')}.{case.get('name')}"] = outcome
    return found


plain, plugin = map(read, sys.argv[1:])
differ = [name for name in {**plain, **plugin}
          if plain.get(name, ["missing"])[0] != plugin.get(name, ["missing"])[0]]
for name in differ:
    print(name, *(f"  {kind}: {of.get(name, ('missing', ''))[0]}  {of.get(name, ('', ''))[1]:.200}"
                  for kind, of in (("plain", plain), ("plugin", plugin))), sep="\n")
print(f"{len(plain)} tests, {len(differ)} differ")
sys.exit(any(name not in ALLOWED for name in differ))
EOF
