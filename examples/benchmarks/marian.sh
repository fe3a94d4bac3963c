#!/usr/bin/env bash
# Race our search against the engine in Firefox, Bergamot, which is a fork of Marian:
#   bash examples/benchmarks/marian.sh TEXT [OPTIONS OF marian.py]
#   TEXT  stem of TEXT.en and TEXT.de, of 100,000 lines or more: for subwords and for the preview
# Its wheels are for Python 3.8 to 3.10. BERGAMOT_PYTHON names such a Python (python3.10) with venv
# and pip, which gets it in a temporary folder. Both sides have untrained models of the same size: d
# 256 with 8,000 subwords and d 512 with 32,000, 6 layers and 2, in 8 bits. Theirs is a Transformer
# with SSRU in its decoder. No side has a shortlist: theirs takes a binary file whose writer the
# wheel has not. Rows go to $CSV (default: marian.csv beside this script).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
text=$(realpath -m "${1:?usage: marian.sh TEXT [OPTIONS]}")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${BERGAMOT_PYTHON:-python3.10}" -m venv "$work"
"$work/bin/pip" install --quiet numpy bergamot==0.4.5
for size in d256 d512; do
    python "$here/marian.py" "$size" "$text" "$work/bin/python" --csv "${CSV:-$here/marian.csv}" "$@"
done
