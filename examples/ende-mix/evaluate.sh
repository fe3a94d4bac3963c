#!/usr/bin/env bash
# Translate newstest2014, the held-out sentences of Tatoeba and those of all domains, score each set,
# and append a row for it to results.csv: bash examples/ende-mix/evaluate.sh FAMILY SIZE [SEED]
# The arguments, DATA and OUT as for train.sh. Prints a table by domain too.
#   RESULTS=examples/ende-mix/results.csv
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/training.sh

usage="usage: evaluate.sh FAMILY SIZE [SEED]"
family=${1:?$usage} size=${2:?$usage} seed=${3:-1}
data=${DATA:-data-bin/ende-mix}
out=${OUT:-checkpoints/ende-mix}/$family-$size-seed$seed
if [ ! -e "$data/train.en-de.en.idx" ]; then
    echo "evaluate.sh: $data: no data from English into German" >&2
    exit 2
fi
pairs=$(count_pairs "$data")

sets=(test:newstest2014 test1:tatoeba)
# Older data has no such set.
if [ -e "$data/raw/test2.domain" ]; then sets+=(test2:domains); fi

for set in "${sets[@]}"; do
    subset=${set%:*} name=${set#*:}
    # Unlike fairseq-generate this takes references that are longer than the model's positions.
    resmlp-mt translate --model "$out/checkpoint_best.pt" --no-split-sentences --beam 5 --quiet \
        --input "$data/raw/$subset.en" --output "$out/$name.de"
    resmlp-mt score "$out/$name.de" --ref "$data/raw/$subset.de"
    python scripts/translation_figures.py "$out" \
        "model=${family}_$size" "set=$name" "pairs=$pairs" "seed=$seed" \
        "flags=$(cut -d " " -f 7- "$out/command")" \
        --hypotheses "$out/$name.de" --references "$data/raw/$subset.de" >"$out/$name.json"
done
for set in "${sets[@]}"; do
    name=${set#*:}
    python scripts/append_row.py "${RESULTS:-examples/ende-mix/results.csv}" \
        --log "$out/train.log" <"$out/$name.json"
done
if [ -e "$data/raw/test2.domain" ]; then
    python examples/ende-mix/by_domain.py "$out/domains.de" --ref "$data/raw/test2.de"
fi
