#!/usr/bin/env bash
# Race our exports against a Transformer in CTranslate2, with a shortlist on both sides and without:
#   bash examples/benchmarks/shortlist.sh SIZE DATA TRAIN TEST
#   SIZE   base or tiny
#   DATA   folder of `resmlp-mt prepare`, en-de, joined
#   TRAIN  stem of TRAIN.en and TRAIN.de, which the shortlist is learned from
#   TEST   stem of TEST.en and TEST.de
# The models are untrained, so all translations have the 30 subwords that they may have at most.
# Needs CTranslate2: pip install -e '.[export,benchmark]' -c constraints.txt
# Rows go to $CSV (default: shortlist.csv beside this script). LINES_OF_TEXT (64), ROUNDS (5) and
# THREADS (1) as given. WORK=DIR keeps the models there, for the next time, and
# MAKE=1 only makes them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

size=${1:?usage: shortlist.sh SIZE DATA TRAIN TEST} data=${2:?} train=${3:?} test=${4:?}
csv=${CSV:-$here/shortlist.csv}
work=${WORK:-}
if [ -z "$work" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
case $size in
    base) archs=(resmlp_plus_wmt_en_de resmlp_wmt_en_de) small=() ;;
    tiny)
        archs=(resmlp_plus_tiny resmlp_tiny)
        small=(--encoder-embed-dim 128 --encoder-ffn-embed-dim 256 --encoder-layers 4
            --encoder-attention-heads 4 --decoder-embed-dim 128 --decoder-ffn-embed-dim 256
            --decoder-layers 4 --decoder-attention-heads 4)
        ;;
    *) echo "$size: base or tiny" >&2 && exit 2 ;;
esac

plus=${archs[0]}
convert() {
    ct2-fairseq-converter --model_path "$work/models/transformer.pt" --data_dir "$data" \
        --user_dir resmlp_mt --source_lang en --target_lang de "$@"
}
make() {
    local shortlist=(--shortlist "$train.en" "$train.de")
    python "$here/untrained.py" "$data" "$work/models" "${archs[@]}" "transformer ${small[*]-}"
    for arch in "${archs[@]}"; do
        resmlp-mt export "$work/models/$arch.pt" --out "$work/$arch" --int8
        resmlp-mt export "$work/models/$arch.pt" --out "$work/$arch-short" --int8 "${shortlist[@]}"
    done
    resmlp-mt export "$work/models/$plus.pt" --out "$work/float" "${shortlist[@]}"
    python "$here/vmap.py" "$work/$plus-short" "$work/vmap.txt"
    convert --quantization int8 --output_dir "$work/ct2"
    convert --quantization int8 --output_dir "$work/ct2-short" --vocab_mapping "$work/vmap.txt"
    convert --quantization float32 --output_dir "$work/ct2-float" --vocab_mapping "$work/vmap.txt"
    for lang in en de; do
        head -"${LINES_OF_TEXT:-64}" "$test.$lang" >"$work/test.$lang"
    done
}
[ -f "$work/test.de" ] || make
[ -z "${MAKE:-}" ] || exit 0

rivals=()
for arch in "${archs[@]}"; do
    rivals+=("$arch int8=$work/$arch" "$arch int8 shortlist=$work/$arch-short")
done
rivals+=("CTranslate2 int8=$work/ct2" "CTranslate2 int8 vmap=$work/ct2-short")
rivals+=("$plus shortlist=$work/float" "CTranslate2 vmap=$work/ct2-float")
resmlp-mt benchmark translate --input "$work/test.en" --reference "$work/test.de" \
    --max-len-b 30 --batch-tokens 1024 0 --threads "${THREADS:-1}" --rounds "${ROUNDS:-5}" \
    --csv "$csv" --models "${rivals[@]}"
