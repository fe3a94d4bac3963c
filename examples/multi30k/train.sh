#!/usr/bin/env bash
# Train one model on Multi30k en-de: bash examples/multi30k/train.sh MODEL [SEED] [UPDATES] [FLAG...]
#   MODEL    resmlp_tiny, resmlp_plus_tiny, or transformer_tiny: fairseq's Transformer of the same
#            dimensions
#   SEED     default 1
#   UPDATES  default 8000; the learning rate warms up over the first quarter, at most 2000
#   FLAG     anything else of fairseq-train's, such as --bf16
# The recipe is a known good one for the Transformer, and the same for all models.
# About 0.7 s an update on one CPU core (OMP_NUM_THREADS=1), 1.5 GB of memory.
# DATA=data-bin/multi30k    what prepare.sh made
# OUT=checkpoints/multi30k  where the folder of the run goes
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${1:?usage: train.sh MODEL [SEED] [UPDATES] [FLAG...]} seed=${2:-1} updates=${3:-8000}
data=${DATA:-data-bin/multi30k}
out=${OUT:-checkpoints/multi30k}/$model-seed$seed
warmup=$((updates / 4 < 2000 ? updates / 4 : 2000))

arch=(--arch "$model")
if [ "$model" = transformer_tiny ]; then
    arch=(--arch transformer
        --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
        --encoder-layers 4 --encoder-attention-heads 4
        --decoder-embed-dim 128 --decoder-ffn-embed-dim 256
        --decoder-layers 4 --decoder-attention-heads 4)
fi

. scripts/cpu.sh

mkdir -p "$out"
echo "examples/multi30k/train.sh $*" >"$out/command"
exec resmlp-mt train "$data" "${arch[@]}" \
    --share-all-embeddings --max-source-positions 128 --max-target-positions 128 \
    --dropout 0.3 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas '(0.9, 0.98)' \
    --lr 5e-3 --lr-scheduler inverse_sqrt --warmup-updates "$warmup" \
    --distributed-world-size 1 --max-tokens 4096 --max-update "$updates" --seed "$seed" --num-workers 0 \
    --keep-last-epochs 10 --save-dir "$out" \
    --log-format json --log-interval 100 --log-file "$out/train.log" "${@:4}"
