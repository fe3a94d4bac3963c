#!/usr/bin/env bash
# Score the best weights of a run on the test sets and append a row to results.csv:
#   bash examples/pnlp/evaluate.sh [ARCH] [SEED]
# As for train.sh. The validation set chose the weights.
# DATA=data-bin/domains              as for train.sh
# OUT=checkpoints/domains            as for train.sh
# RESULTS=examples/pnlp/results.csv  where the row goes
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=${1:-pnlp_mixer_short} seed=${2:-1}
data=${DATA:-data-bin/domains}
out=${OUT:-checkpoints/domains}/$arch-seed$seed

# fairseq asks for the criterion again: the task's flags refer to it.
resmlp-mt validate "$data" --user-dir examples/pnlp/pnlp_mixer --criterion sentence_prediction \
    --path "$out/checkpoint_best.pt" --valid-subset test,test1 --batch-size 256 --num-workers 0 \
    --log-format json >"$out/validate.txt" 2>&1 ||
    { tail -n 20 "$out/validate.txt" >&2; exit 1; }
python examples/pnlp/figures.py "$out" --model "$arch" --seed "$seed" |
    python scripts/append_row.py "${RESULTS:-examples/pnlp/results.csv}" --log "$out/train.log"
