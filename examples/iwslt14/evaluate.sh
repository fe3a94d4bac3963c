#!/usr/bin/env bash
# Average the last ten epochs, translate the test set, score, and append a row to results.csv:
#   bash examples/iwslt14/evaluate.sh MODEL [SEED]
# MODEL and SEED as for train.sh. The BLEU of the literature needs `pip install sacremoses`.
# DATA=data-bin/iwslt14                 as for train.sh
# OUT=checkpoints/iwslt14               as for train.sh
# RESULTS=examples/iwslt14/results.csv  where the row goes
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${1:?usage: evaluate.sh MODEL [SEED]} seed=${2:-1}
data=${DATA:-data-bin/iwslt14}
out=${OUT:-checkpoints/iwslt14}/$model-seed$seed
last=$(find "$out" -name 'checkpoint[0-9]*.pt' | wc -l)

# Before the work of hours, not after it.
if ! python -c "import sacremoses"; then
    echo "evaluate.sh: the BLEU of the literature needs sacremoses: pip install sacremoses" >&2
    exit 2
fi
resmlp-mt average "$out" --last "$last" --out "$out/checkpoint_average.pt"
resmlp-mt generate "$data" --path "$out/checkpoint_average.pt" --beam 5 --lenpen 1 \
    --max-tokens 4096 --post-process sentencepiece --scoring sacrebleu >"$out/generate.txt"
python scripts/read_generate.py "$out/generate.txt" --hypotheses "$out/hypotheses.en"
resmlp-mt score "$out/hypotheses.en" --ref "$data/raw/test.en"
python scripts/translation_figures.py "$out" "model=$model" pair=de-en \
    published= published_as= source= "seed=$seed" \
    --hypotheses "$out/hypotheses.en" --references "$data/raw/test.en" --moses en --lowercase |
    python scripts/append_row.py "${RESULTS:-examples/iwslt14/results.csv}" --log "$out/train.log"
