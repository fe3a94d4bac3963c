#!/usr/bin/env bash
# Train one model on the mix: bash examples/ende-mix/train.sh FAMILY SIZE [SEED] [UPDATES] [FLAG...]
#   FAMILY   resmlp, resmlp_plus, or transformer: fairseq's
#   SIZE     tiny, iwslt or base: the dimensions of Transformer-Tiny, transformer_iwslt_de_en, or
#            transformer
#   SEED     default 1
#   UPDATES  default 20000; the learning rate warms up over the first quarter, at most 4000
#   FLAG     anything else of fairseq-train's, such as --bf16
# One recipe for all families: Adam with inverse square root decay, the learning rate by size.
# It takes one GPU, or the CPU where there is none.
#   TOKENS=8192                      of a batch
#   DATA=data-bin/ende-mix           what prepare.py made
#   OUT=checkpoints/ende-mix         the run is a folder in it
set -euo pipefail
cd "$(dirname "$0")/../.."

usage="usage: train.sh resmlp|resmlp_plus|transformer tiny|iwslt|base [SEED] [UPDATES] [FLAG...]"
family=${1:?$usage} size=${2:?$usage} seed=${3:-1} updates=${4:-20000}
data=${DATA:-data-bin/ende-mix}
out=${OUT:-checkpoints/ende-mix}/$family-$size-seed$seed tokens=${TOKENS:-8192}
warmup=$((updates / 4 < 4000 ? updates / 4 : 4000))

case $size in
tiny) name=tiny width=128 hidden=256 layers=4 heads=4 lr=5e-3 ;;
iwslt) name=iwslt_de_en width=512 hidden=1024 layers=6 heads=4 lr=1e-3 ;;
base) name=wmt_en_de width=512 hidden=2048 layers=6 heads=8 lr=7e-4 ;;
*) echo "$usage" >&2; exit 2 ;;
esac
case $family in
resmlp | resmlp_plus) arch=(--arch "${family}_$name") ;;
transformer)
    arch=(--arch transformer
        --encoder-embed-dim $width --encoder-ffn-embed-dim $hidden
        --encoder-layers $layers --encoder-attention-heads $heads
        --decoder-embed-dim $width --decoder-ffn-embed-dim $hidden
        --decoder-layers $layers --decoder-attention-heads $heads)
    ;;
*) echo "$usage" >&2; exit 2 ;;
esac

. scripts/cpu.sh

mkdir -p "$out"
echo "TOKENS=$tokens examples/ende-mix/train.sh $*" >"$out/command"
exec resmlp-mt train "$data" "${arch[@]}" \
    --share-all-embeddings --max-source-positions 256 --max-target-positions 256 \
    --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas '(0.9, 0.98)' \
    --lr $lr --lr-scheduler inverse_sqrt --warmup-updates "$warmup" \
    --distributed-world-size 1 --max-tokens "$tokens" --max-update "$updates" --seed "$seed" --num-workers 0 \
    --keep-last-epochs 5 --save-dir "$out" \
    --log-format json --log-interval 100 --log-file "$out/train.log" "${@:5}"
