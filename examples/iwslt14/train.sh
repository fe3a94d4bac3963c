#!/usr/bin/env bash
# Train one model on IWSLT14 German-English:
#   bash examples/iwslt14/train.sh MODEL [SEED] [UPDATES] [FLAG...]
#   MODEL    resmlp_iwslt_de_en, resmlp_plus_iwslt_de_en, or transformer_iwslt_de_en: fairseq's
#            Transformer of the same dimensions
#   SEED     default 1
#   UPDATES  default 50000
#   FLAG     anything else of fairseq-train's, such as --bf16
# DATA=data-bin/iwslt14    what prepare.sh made
# OUT=checkpoints/iwslt14  where the folder of the run goes
# GPUS=1                   GPUs to use. An update sees at most 4,096 tokens, whatever their number
# The recipe is fairseq's for the Transformer, and the same for all models.
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${1:?usage: train.sh MODEL [SEED] [UPDATES] [FLAG...]} seed=${2:-1} updates=${3:-50000}
data=${DATA:-data-bin/iwslt14}
out=${OUT:-checkpoints/iwslt14}/$model-seed$seed
gpus=${GPUS:-1}

case $model in
resmlp_iwslt_de_en | resmlp_plus_iwslt_de_en | transformer_iwslt_de_en) ;;
*) echo "train.sh: unknown model $model" >&2; exit 2 ;;
esac
# A batch has to hold the longest pair: 256 tokens.
case $gpus in
1 | 2 | 4 | 8 | 16) ;;
*) echo "train.sh: GPUS=$gpus; take 1, 2, 4, 8 or 16" >&2; exit 2 ;;
esac

# torchrun is how several workers are tested. It takes the place of this script (exec), and hands a
# SIGTERM on to its workers, which then save and stop.
launch=(resmlp-mt train) more=()
if [ "$gpus" -gt 1 ]; then
    launch=(torchrun --standalone --nproc_per_node "$gpus" --no-python "${launch[@]}")
else
    more=(--distributed-world-size 1)  # or fairseq would take all the GPUs that it sees
fi

mkdir -p "$out"
echo "GPUS=$gpus examples/iwslt14/train.sh $*" >"$out/command"
exec "${launch[@]}" "$data" --arch "$model" --share-decoder-input-output-embed \
    --max-source-positions 256 --max-target-positions 256 --skip-invalid-size-inputs-valid-test \
    --dropout 0.3 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --weight-decay 0.0001 \
    --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 \
    --max-tokens $((4096 / gpus)) --update-freq 1 ${more[@]+"${more[@]}"} \
    --max-update "$updates" --seed "$seed" --keep-last-epochs 10 --save-dir "$out" \
    --log-format json --log-interval 100 --log-file "$out/train.log" "${@:4}"
