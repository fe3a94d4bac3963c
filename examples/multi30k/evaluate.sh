#!/usr/bin/env bash
# Average the last ten epochs, translate test_2016_flickr, score, and append a row to results.csv:
#   bash examples/multi30k/evaluate.sh MODEL [SEED]
# MODEL and SEED as for train.sh. Under a minute.
# DATA=data-bin/multi30k                 as for train.sh
# OUT=checkpoints/multi30k               as for train.sh
# RESULTS=examples/multi30k/results.csv  where the row goes
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${1:?usage: evaluate.sh MODEL [SEED]} seed=${2:-1}
data=${DATA:-data-bin/multi30k}
out=${OUT:-checkpoints/multi30k}/$model-seed$seed
last=$(find "$out" -name 'checkpoint[0-9]*.pt' | wc -l)

resmlp-mt average "$out" --last "$last" --out "$out/checkpoint_average.pt"
resmlp-mt translate --model "$out/checkpoint_average.pt" \
    --input "$data/raw/test.en" --output "$out/hypotheses.de"
resmlp-mt score "$out/hypotheses.de" --ref "$data/raw/test.de"
python scripts/translation_figures.py "$out" "model=$model" "seed=$seed" \
    --hypotheses "$out/hypotheses.de" --references "$data/raw/test.de" |
    python scripts/append_row.py "${RESULTS:-examples/multi30k/results.csv}" --log "$out/train.log"
