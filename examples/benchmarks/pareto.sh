#!/usr/bin/env bash
# Race trained translators in 8 bits, with beams of 1, 2 and 5:
#   bash examples/benchmarks/pareto.sh TEXT NAME=CHECKPOINT...
#   TEXT             stem of TEXT.en and TEXT.de, such as data-bin/multi30k/raw/test
#   NAME=CHECKPOINT  "exported ..." for ours, which is exported, "CTranslate2 ..." for a Transformer.
#                    The first is one of ours. The subwords are the same.
# Needs CTranslate2: pip install -e '.[export,benchmark]' -c constraints.txt
# The rows take the place of $CSV (default: pareto.csv beside this script). ROUNDS (5), THREADS (2)
# and DATA (data-bin/multi30k) as given.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

text=${1:?usage: pareto.sh TEXT NAME=CHECKPOINT...}
csv=${CSV:-$here/pareto.csv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -f "$csv.part"
models=()
for given in "${@:2}"; do
    name=${given%%=*} checkpoint=${given#*=} folder=$work/${#models[@]}
    case $name in
        exported*) resmlp-mt export "$checkpoint" --out "$folder" --int8 ;;
        CTranslate2*)
            ct2-fairseq-converter --model_path "$checkpoint" --data_dir "${DATA:-data-bin/multi30k}" \
                --user_dir resmlp_mt --source_lang en --target_lang de --quantization int8 \
                --output_dir "$folder"
            ;;
        *) echo "$given: write 'exported ...=FILE' or 'CTranslate2 ...=FILE'" >&2 && exit 2 ;;
    esac
    models+=("$name=$folder")
done
python "$here/race.py" translate --models ${models[@]+"${models[@]}"} --input "$text.en" --reference "$text.de" \
    --beam 1 2 5 --batch-tokens 0 2048 --threads "${THREADS:-2}" --rounds "${ROUNDS:-5}" \
    --csv "$csv.part"
mv "$csv.part" "$csv"
