#!/usr/bin/env bash
# Pre-train resmlp_cifar without labels (DINO) and measure its features:
#   bash examples/cifar10/pretrain.sh [SEED] [UPDATES]
# About 2 s an update on one CPU core; writes the top-1 of k-NN and of a linear classifier to
# probe.csv, of the trained model and of one that was only initialised.
# DATA=data-bin/cifar10                what prepare.sh made
# OUT=checkpoints/cifar10              where the folder of the run goes
# RESULTS=examples/cifar10/probe.csv   where the rows go
# DTYPE=--bf16                         DTYPE= trains in fp32
set -euo pipefail
cd "$(dirname "$0")/../.."

seed=${1:-1} updates=${2:-600}
data=${DATA:-data-bin/cifar10}
out=${OUT:-checkpoints/cifar10}/dino-seed$seed
results=${RESULTS:-examples/cifar10/probe.csv}

. scripts/cpu.sh
. scripts/training.sh

pretrain() {
    resmlp-mt train "$data" --task image_pretraining --arch resmlp_cifar --image-size 32 \
        --criterion dino --store-ema --ema-decay 0.99 --ema-fp32 ${DTYPE---bf16} \
        --optimizer adam --weight-decay 0.04 --clip-norm 3 \
        --distributed-world-size 1 --batch-size 128 --local-crops-number 2 \
        --out-dim 2048 --head-hidden-dim 512 --bottleneck-dim 128 \
        --freeze-last-layer-updates 118 --seed "$seed" --num-workers 0 \
        --no-epoch-checkpoints --disable-validation "$@"
}

mkdir -p "$out"
pretrain --lr 0.001 --lr-scheduler cosine --warmup-updates $((updates / 10)) \
    --max-update "$updates" --save-dir "$out" \
    --log-format json --log-interval 50 --log-file "$out/train.log"
expect_trained "$out" "$updates"
pretrain --lr 0 --max-update 1 --save-dir "$out/initial"
resmlp-mt study probe "$out/checkpoint_last.pt" "$data" --csv "$out/probe.csv"
resmlp-mt study probe "$out/initial/checkpoint_last.pt" "$data" --csv "$out/initial.csv"
sed -e "s|$out/checkpoint_last.pt|seed $seed after $updates updates|" -e "s|,$data,|,cifar10,|" "$out/probe.csv" >"$results"
sed -e "s|$out/initial/checkpoint_last.pt|seed $seed as initialised|" -e "s|,$data,|,cifar10,|" "$out/initial.csv" |
    tail -n +2 >>"$results"
cat "$results"
