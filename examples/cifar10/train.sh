#!/usr/bin/env bash
# Train one model on CIFAR-10 images: bash examples/cifar10/train.sh MODEL [SEED] [UPDATES]
#   MODEL    resmlp      the preset resmlp_cifar: 8 layers, 128 channels, patches of 4 x 4
#            layernorm, class-mlp, depthwise    the same with one part changed
#            distilled   resmlp with a trained model as a hard-label teacher
#            vit         a small Vision Transformer of torch's own modules (baseline/)
#   SEED     default 1
#   UPDATES  of 128 images; default: those that take as long as 2,400 of resmlp (step_time.csv)
# 2,400 updates of resmlp take 13 minutes on one idle CPU core with AVX512-BF16 (step_time.csv), not
# counting validation.
# DATA=data-bin/cifar10    what prepare.sh made
# OUT=checkpoints/cifar10  where the folder of the run goes
# TEACHER=CHECKPOINT       of the teacher (default: the depthwise model of the same seed in OUT)
# DTYPE=--bf16             DTYPE= trains in fp32
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${1:?usage: train.sh MODEL [SEED] [UPDATES]} seed=${2:-1}
data=${DATA:-data-bin/cifar10}
runs=${OUT:-checkpoints/cifar10}
ratio=$(awk -F, -v model="$model" '$1 == model {print $4}' examples/cifar10/step_time.csv)
updates=${3:-$(awk -v ratio="${ratio:-1}" 'BEGIN {printf "%.0f", 2400 / ratio}')}
out=$runs/$model-seed$seed
[ -z "${3:-}" ] || out=$out-updates$updates

plugin=resmlp_mt arch=(--arch resmlp_cifar)
case $model in
resmlp) ;;
layernorm) arch+=(--norm layer) ;;
class-mlp) arch+=(--pooling class-mlp) ;;
depthwise) arch+=(--token-mixer depthwise3x3) ;;
distilled) arch+=(--teacher-model "${TEACHER:-$runs/depthwise-seed$seed/checkpoint_last.pt}") ;;
vit) arch=(--arch vit_cifar) plugin=examples/cifar10/baseline ;;
*) echo "train.sh: unknown model $model" >&2; exit 2 ;;
esac

. scripts/cpu.sh

mkdir -p "$out"
exec resmlp-mt train "$data" --user-dir $plugin --task image_classification "${arch[@]}" \
    --image-size 32 --crop-pct 1.0 --scale 0.5,1.0 --color-jitter 0 \
    --criterion image_classification --smoothing 0.1 ${DTYPE---bf16} \
    --optimizer adam --adam-betas '(0.9, 0.999)' --weight-decay 0.05 \
    --lr 0.002 --lr-scheduler cosine --warmup-updates $((updates / 10)) \
    --distributed-world-size 1 --batch-size 128 --max-update "$updates" --seed "$seed" \
    --num-workers 0 --no-epoch-checkpoints --save-dir "$out" \
    --log-format json --log-interval 50 --log-file "$out/train.log"
