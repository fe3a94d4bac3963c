#!/usr/bin/env bash
# Average the last checkpoints, translate newstest2014, score, and append a row to results.csv:
#   bash examples/wmt14/evaluate.sh MODEL LANG [SEED]
# MODEL, LANG and SEED as for train.sh. The BLEU of the literature needs `pip install sacremoses`.
# DATA=FOLDER   as for train.sh (default data-bin/wmt14-en-LANG)
# OUT=FOLDER    as for train.sh (default checkpoints/wmt14)
# LAST=N        checkpoints to average (default 5; train.sh keeps 10)
# RESULTS=FILE  where the row goes (default examples/wmt14/results.csv)
set -euo pipefail
cd "$(dirname "$0")/../.."

usage='usage: evaluate.sh MODEL LANG [SEED]'
model=${1:?$usage} lang=${2:?$usage} seed=${3:-1}
data=${DATA:-data-bin/wmt14-en-$lang}
out=${OUT:-checkpoints/wmt14}/$model-$lang-seed$seed

# Before the work of hours, not after it.
if ! python -c "import sacremoses"; then
    echo "evaluate.sh: the BLEU of the literature needs sacremoses: pip install sacremoses" >&2
    exit 2
fi
resmlp-mt average "$out" --last "${LAST:-5}" --out "$out/checkpoint_average.pt"
resmlp-mt generate "$data" --path "$out/checkpoint_average.pt" --beam 4 --lenpen 0.6 \
    --max-tokens 4096 --post-process sentencepiece --scoring sacrebleu >"$out/generate.txt"
python scripts/read_generate.py "$out/generate.txt" --hypotheses "$out/hypotheses.$lang"
resmlp-mt score "$out/hypotheses.$lang" --ref "$data/raw/test.$lang"
python scripts/translation_figures.py "$out" "model=$model" "pair=en-$lang" \
    published= published_as= source= "seed=$seed" \
    --hypotheses "$out/hypotheses.$lang" --references "$data/raw/test.$lang" \
    --moses "$lang" --split-compounds |
    python scripts/append_row.py "${RESULTS:-examples/wmt14/results.csv}" --log "$out/train.log"
