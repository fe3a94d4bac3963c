#!/usr/bin/env bash
# Validate the last weights of a run and append a row to results.csv:
#   bash examples/cifar10/evaluate.sh MODEL [SEED] [UPDATES]
# As for train.sh. The last weights, not the best: the validation images chose nothing.
# DATA=data-bin/cifar10                 as for train.sh
# OUT=checkpoints/cifar10               as for train.sh
# RESULTS=examples/cifar10/results.csv  where the row goes
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${1:?usage: evaluate.sh MODEL [SEED] [UPDATES]} seed=${2:-1}
data=${DATA:-data-bin/cifar10}
out=${OUT:-checkpoints/cifar10}/$model-seed$seed
[ -z "${3:-}" ] || out=$out-updates$3
plugin=resmlp_mt
[ "$model" != vit ] || plugin=examples/cifar10/baseline

resmlp-mt validate "$data" --user-dir $plugin --path "$out/checkpoint_last.pt" \
    --batch-size 250 --num-workers 0 --log-format json >"$out/validate.txt" 2>&1 ||
    { tail -n 20 "$out/validate.txt" >&2; exit 1; }
python examples/cifar10/figures.py "$out" --model "$model" --seed "$seed" |
    python scripts/append_row.py "${RESULTS:-examples/cifar10/results.csv}" --log "$out/train.log"
