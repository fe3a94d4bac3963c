#!/usr/bin/env bash
# Measure what a translator's card says of it: its scores in 8 bits, what careless typing costs, what
# it keeps, and what it makes of text that is in the target language already.
#   bash examples/ende-mix/measure.sh MODEL DATA OUT
#   MODEL  of en-de or de-en: a name, a folder or a checkpoint
#   DATA   what prepare.py or everyday.sh made for this direction
#   OUT    a folder for the model in 8 bits and its translations
#   KEPT=100  sentences of each kind of what must stay as it is
# Needs the extra [export].
set -euo pipefail
cd "$(dirname "$0")/../.."

usage="usage: measure.sh MODEL DATA OUT"
model=${1:?$usage} data=${2:?$usage} out=${3:?$usage}
binarized=("$data"/train.*-*.*.idx)
pair=${binarized[0]##*/train.} pair=${pair%%.*}
source=${pair%-*} target=${pair#*-}
if [ ! -e "$data/raw/test1.$source" ]; then
    echo "measure.sh: $data: nothing that prepare.py made in this folder" >&2
    exit 2
fi

mkdir -p "$out"
resmlp-mt export "$model" --int8 --out "$out/exported"
translate() { resmlp-mt translate --model "$out/exported" --quiet "$@"; }

for set in test:newstest2014 test1:tatoeba test2:domains; do
    translations=$out/${set#*:}.$target
    translate --no-split-sentences --input "$data/raw/${set%:*}.$source" --output "$translations"
    resmlp-mt score "$translations" --ref "$data/raw/${set%:*}.$target"
done
python examples/ende-mix/by_domain.py "$out/domains.$target" --ref "$data/raw/test2.$target"

# What people write to each other.
messages=examples/ende-mix/messages-test.tsv columns=(1 2)
[ "$source" = en ] || columns=(2 1)
cut -f "${columns[0]}" "$messages" >"$out/messages.source"
cut -f "${columns[1]}" "$messages" >"$out/messages.reference"
translate --input "$out/messages.source" --output "$out/messages.$target"
resmlp-mt score "$out/messages.$target" --ref "$out/messages.reference"

python examples/ende-mix/forms.py write "$data/raw/test1.$source" --out "$out/forms"
for form in "$out"/forms/*.source; do
    join=()
    [ "${form##*/}" != newline.source ] || join=(--join-lines)
    translate ${join[@]+"${join[@]}"} --input "$form" --output "${form%.source}.translation"
done
python examples/ende-mix/forms.py score "$out/forms" --ref "$data/raw/test1.$target"

python examples/ende-mix/kept.py write --lang "$source" --each "${KEPT:-100}" --out "$out/kept"
translate --input "$out/kept/source.$source" --output "$out/kept/translation"
python examples/ende-mix/kept.py score "$out/kept" "$out/kept/translation"

translate --no-split-sentences --input "$data/raw/test1.$target" --output "$out/same.$target"
resmlp-mt score "$out/same.$target" --ref "$data/raw/test1.$target"
awk 'NR == FNR { line[FNR] = $0; next } line[FNR] == $0 { same++ }
    END { print same + 0 " of " FNR " lines stay as they are" }' \
    "$out/same.$target" "$data/raw/test1.$target"
