#!/usr/bin/env bash
# Race our translator against the Transformer in fairseq and in CTranslate2:
#   bash examples/benchmarks/translate.sh OURS TRANSFORMER TEXT
#   OURS, TRANSFORMER  checkpoints of examples/multi30k (averaged)
#   TEXT               stem of TEXT.en and TEXT.de, such as data-bin/multi30k/raw/test
# Needs CTranslate2: pip install -e '.[export,benchmark]' -c constraints.txt
# The rows take the place of $CSV (default: translate.csv beside this script). ROUNDS (5), THREADS
# (2) and DATA (data-bin/multi30k, what the checkpoints were trained on) as given.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

ours=${1:?usage: translate.sh OURS TRANSFORMER TEXT} transformer=${2:?} text=${3:?}
csv=${CSV:-$here/translate.csv} threads=${THREADS:-2}
fast=$(mktemp -d)
trap 'rm -rf "$fast"' EXIT

resmlp-mt export "$ours" --out "$fast/exported"
resmlp-mt export "$ours" --out "$fast/exported-int8" --int8
for kind in float32 int8; do
    ct2-fairseq-converter --model_path "$transformer" --data_dir "${DATA:-data-bin/multi30k}" \
        --user_dir resmlp_mt --source_lang en --target_lang de \
        --quantization "$kind" --output_dir "$fast/ctranslate2-$kind"
done

rm -f "$csv.part"
race() {
    python "$here/race.py" translate --threads "$threads" --rounds "${ROUNDS:-5}" --csv "$csv.part" "$@"
}
exported=(exported="$fast/exported" "exported int8=$fast/exported-int8")
rivals=("CTranslate2=$fast/ctranslate2-float32" "CTranslate2 int8=$fast/ctranslate2-int8")
searched=(transformer="$transformer" ours="$ours")

race --input "$text.en" --reference "$text.de" --batch-tokens 512 2048 \
    --models "${searched[@]}" "${exported[@]}" "${rivals[@]}"
race --input "$text.en" --reference "$text.de" --batch-tokens 0 --models "${exported[@]}" "${rivals[@]}"
# Singly fairseq's search takes minutes for the whole text.
for lang in en de; do
    head -200 "$text.$lang" >"$fast/first-200.$lang"
done
race --input "$fast/first-200.en" --reference "$fast/first-200.de" --batch-tokens 0 \
    --models "${searched[@]}" "${exported[@]}"
mv "$csv.part" "$csv"
