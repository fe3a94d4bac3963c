#!/usr/bin/env bash
# Race untrained translators of several sizes for the picture of quality at equal speed:
#   bash examples/benchmarks/equal_speed.sh DATA
#   DATA  a folder of `resmlp-mt prepare`, en-de, as examples/multi30k makes it
# Ours are exported, and fairseq's pre-norm Transformers are in CTranslate2, all in 8 bits. Untrained
# models never end a sentence, so all translations have STEPS (15) subwords. LINES_OF_TEXT (128) lines of the
# test set are translated with beam 5, one by one and in batches, on THREADS (1).
# Needs CTranslate2: pip install -e '.[export,benchmark]' -c constraints.txt
# The rows take the place of $CSV (default: equal_speed.csv beside this script). ROUNDS (5) as given.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

data=${1:?usage: equal_speed.sh DATA}
csv=${CSV:-$here/equal_speed.csv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$csv.part"

models=()
add() { # KIND PRESET WIDTH HIDDEN ENCODER+DECODER
    local folder=$work/${#models[@]} name="$1 d $3, $5" flags=$2
    for side in encoder decoder; do
        flags+=" --$side-embed-dim $3 --$side-ffn-embed-dim $4"
    done
    flags+=" --encoder-layers ${5%+*} --decoder-layers ${5#*+} --decoder-attention-heads 4"
    python "$here/untrained.py" "$data" "$folder" "$flags"
    local checkpoint=$folder/${2%% *}.pt
    case $1 in
        exported) resmlp-mt export "$checkpoint" --out "$folder/model" --int8 ;;
        CTranslate2)
            ct2-fairseq-converter --model_path "$checkpoint" --data_dir "$data" \
                --user_dir resmlp_mt --source_lang en --target_lang de --quantization int8 \
                --output_dir "$folder/model"
            ;;
    esac
    models+=("$name=$folder/model")
}

pre_norm="--encoder-normalize-before --decoder-normalize-before --encoder-attention-heads 4"
ours="resmlp_plus_tiny --max-source-positions 128 --max-target-positions 128"
for size in "128 256 4+4" "128 256 6+4" "256 512 3+3" "256 1024 6+2" "384 1536 6+2" \
    "512 2048 6+2" "512 2048 6+6"; do
    # shellcheck disable=SC2086  # three words
    add exported "$ours" $size
done
for size in "128 256 4+4" "256 512 3+3" "256 1024 6+2" "512 2048 6+6"; do
    # shellcheck disable=SC2086
    add CTranslate2 "transformer $pre_norm" $size
done
for language in en de; do
    head -n "${LINES_OF_TEXT:-128}" "$data/raw/test.$language" >"$work/test.$language"
done
python "$here/race.py" translate --models "${models[@]}" --input "$work/test.en" \
    --reference "$work/test.de" --beam 5 --batch-tokens 0 2048 --longest "${STEPS:-15}" \
    --threads "${THREADS:-1}" --rounds "${ROUNDS:-5}" --csv "$csv.part"
mv "$csv.part" "$csv"
