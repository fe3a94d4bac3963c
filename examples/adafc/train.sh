#!/usr/bin/env bash
# Train AdaFC as its paper does (JSAI 2022, section 3), on ImageNet:
#   bash examples/adafc/train.sh MODEL [SEED] [FLAG...]
#   MODEL  s, m, l or m_init
#   SEED   default 1
#   FLAG   anything else of fairseq-train's, such as --fp16, or --stem-stride 2
# DATA=FOLDER  images with train/ and val/ (default imagenet)
# OUT=FOLDER   where the checkpoints go (default checkpoints/adafc)
# BATCH=N      images of a batch on one GPU (default 256); an update always sees 2048 images
# GPUS=N       GPUs of this machine (default 1)
# WORKERS=N    processes that read images for each of them (default 8)
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${1:?usage: train.sh MODEL [SEED] [FLAG...]} seed=${2:-1}
data=${DATA:-imagenet} batch=${BATCH:-256} gpus=${GPUS:-1}
out=${OUT:-checkpoints/adafc}/$model-seed$seed
case $model in
s | m | l | m_init) ;;
*) echo "train.sh: unknown model $model: s, m, l or m_init" >&2; exit 2 ;;
esac
if ((2048 % (batch * gpus))); then
    echo "train.sh: BATCH x GPUS must divide 2048, not be $((batch * gpus))" >&2; exit 2
fi

# 300 epochs of 1,281,167 images are 187,800 updates, 5 are 3,130. The paper says "Mixup or CutMix";
# their alphas and the rate of stochastic depth are PoolFormer's.
exec resmlp-mt train "$data" --task image_classification --criterion image_classification \
    --arch "adafc_$model" --image-size 224 --seed "$seed" --save-dir "$out" \
    --optimizer adamw --weight-decay 0.05 --filter-bias-and-bn \
    --lr 1e-3 --lr-scheduler cosine --min-lr 1e-6 \
    --warmup-init-lr 1e-6 --warmup-updates 3130 --max-update 187800 \
    --batch-size "$batch" --update-freq $((2048 / (batch * gpus))) \
    --distributed-world-size "$gpus" --smoothing 0.01 --aa original --mixup 0.8 --cutmix 1.0 \
    --num-workers "${WORKERS:-8}" --log-format json --log-file "$out/train.log" \
    --best-checkpoint-metric top1 --maximize-best-checkpoint-metric --no-epoch-checkpoints \
    "${@:3}"
