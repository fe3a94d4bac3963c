#!/usr/bin/env bash
# Race our exports, one with a preview, against a Transformer in CTranslate2, with a shortlist on both
# sides and without:
#   bash examples/benchmarks/shortlist.sh SIZE DATA TRAIN TEST
#   SIZE   base or tiny
#   DATA   folder of `resmlp-mt prepare`, en-de, joined
#   TRAIN  stem of TRAIN.en and TRAIN.de, which the shortlist is learned from
#   TEST   file of English lines
# The models are untrained, so all translations have as many subwords as they may have at most.
# Needs CTranslate2: pip install -e '.[export,benchmark]' -c constraints.txt
# Rows go to $CSV (default: shortlist.csv beside this script). LINES_OF_TEXT (64), STEPS (30), BEAM
# (5) and ROUNDS (5) as given. BEST (50) subwords of the target are kept for each of the source.
# TYPE is that of the weights on both sides: int8 (default) or float32. ISA=avx2 keeps both sides to
# AVX2.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

size=${1:?usage: shortlist.sh SIZE DATA TRAIN TEST} data=${2:?} train=${3:?} test=${4:?}
type=${TYPE:-int8}
case $type in
    int8) flags=(--int8) ;;
    float32) flags=() ;;
    *) echo "$type: int8 or float32" >&2 && exit 2 ;;
esac
case ${ISA:-} in
    "") ;;
    avx2)
        export RESMLP_CPU_ISA=avx2
        export CT2_FORCE_CPU_ISA=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2
        ;;
    *) echo "$ISA: avx2, or nothing" >&2 && exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/sizes.sh"

python "$here/untrained.py" "$data" "$work/models" "$arch" "$transformer"
resmlp-mt export "$work/models/$arch.pt" --out "$work/export" ${flags[@]+"${flags[@]}"} \
    --shortlist "$train.en" "$train.de" --shortlist-best "${BEST:-50}"
resmlp-mt export "$work/models/$arch.pt" --out "$work/preview" ${flags[@]+"${flags[@]}"} \
    --preview "$train.en" "$train.de"
python "$here/vmap.py" "$work/export" "$work/vmap.txt"
ct2-fairseq-converter --model_path "$work/models/transformer.pt" --data_dir "$data" \
    --user_dir resmlp_mt --source_lang en --target_lang de --quantization "$type" \
    --output_dir "$work/ctranslate2" --vocab_mapping "$work/vmap.txt"
python "$here/shortlist.py" --export "$work/export" --preview "$work/preview" \
    --ctranslate2 "$work/ctranslate2" --input "$test" --size "$size" --type "$type" \
    --lines "${LINES_OF_TEXT:-64}" --steps "${STEPS:-30}" --beam "${BEAM:-5}" \
    --rounds "${ROUNDS:-5}" --csv "${CSV:-$here/shortlist.csv}"
