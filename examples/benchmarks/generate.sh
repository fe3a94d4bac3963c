#!/usr/bin/env bash
# Race fairseq-generate with a model of ours and with the Transformer of the same dimensions:
#   bash examples/benchmarks/generate.sh SIZE DATA [FLAG...]
#   SIZE  base or tiny
#   DATA  folder of `resmlp-mt prepare`, joined; its test set is translated
#   FLAG  --rounds and --threads of generate.py, and those of fairseq-generate. The models are
#         untrained: --max-len-b is the length of all translations.
# Rows go to $CSV (default: generate.csv beside this script).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

usage="usage: generate.sh SIZE DATA [FLAG...]"
size=${1:?$usage} data=${2:?$usage}
. "$here/sizes.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python "$here/untrained.py" "$data" "$work" "$arch" "$transformer"
python "$here/generate.py" "$data" "$work/transformer.pt" "$work/$arch.pt" --size "$size" \
    --csv "${CSV:-$here/generate.csv}" "${@:3}"
