#!/usr/bin/env bash
# Train one model on WMT14 English-German or English-French:
#   bash examples/wmt14/train.sh MODEL LANG [SEED] [UPDATES] [FLAG...]
#   MODEL    resmlp_6 or resmlp_12: the paper's, with its recipe (Adagrad)
#            resmlp_plus: the sizes of resmlp_6, not the paper's model
#            transformer: fairseq's Transformer base
#   LANG     de or fr
#   SEED     default 1
#   UPDATES  default 100000
#   FLAG     anything else of fairseq-train's, such as --bf16
# DATA=FOLDER      what prepare.sh made (default data-bin/wmt14-en-LANG)
# OUT=FOLDER       where the folder of the run goes (default checkpoints/wmt14)
# GPUS=N           GPUs to use on this machine (default 1)
# NODES=N          machines that train together (default 1): the same command on each
# FIRST=NAME:PORT  with NODES, where they meet: a port of the first of them
# TOKENS=N         tokens of a batch on one GPU (default 4096); a GPU with more memory takes more
# UPDATE_TOKENS=N  tokens that an update sees at most (default 32768), whatever GPUS, NODES and
#                  TOKENS are
set -euo pipefail
cd "$(dirname "$0")/../.."

usage='usage: train.sh MODEL LANG [SEED] [UPDATES] [FLAG...]'
model=${1:?$usage} lang=${2:?$usage} seed=${3:-1} updates=${4:-100000}
data=${DATA:-data-bin/wmt14-en-$lang}
out=${OUT:-checkpoints/wmt14}/$model-$lang-seed$seed
gpus=${GPUS:-1} nodes=${NODES:-1} tokens=${TOKENS:-4096} update_tokens=${UPDATE_TOKENS:-32768}

case $lang in
de | fr) ;;
*) echo "train.sh: LANG is de or fr, not $lang" >&2; exit 2 ;;
esac
# The presets of the paper's models hold its dropout: 0.15 for German, 0.1 for French.
paper=(--optimizer adagrad --lr 0.2 --lr-scheduler fixed --warmup-updates 32000)
adam=(--dropout 0.1 --optimizer adam --adam-betas '(0.9, 0.98)'
    --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-7)
case $model in
resmlp_6) recipe=(--arch "resmlp_wmt_en_$lang" "${paper[@]}") ;;
resmlp_12) recipe=(--arch "resmlp_12_wmt_en_$lang" "${paper[@]}") ;;
resmlp_plus) recipe=(--arch resmlp_plus_wmt_en_de "${adam[@]}") ;;  # the sizes suit both
transformer) recipe=(--arch transformer_wmt_en_de "${adam[@]}") ;;
*) echo "train.sh: unknown model $model" >&2; exit 2 ;;
esac
# A batch has to hold the longest pair: 256 tokens.
if ! [ "$gpus" -ge 1 ] 2>/dev/null || ! [ "$nodes" -ge 1 ] 2>/dev/null ||
    ! [ "$tokens" -ge 256 ] 2>/dev/null || ! [ "$update_tokens" -ge 256 ] 2>/dev/null; then
    echo "train.sh: GPUS=$gpus NODES=$nodes TOKENS=$tokens UPDATE_TOKENS=$update_tokens: one GPU" \
        "and machine or more, 256 tokens or more" >&2
    exit 2
fi
together=$((gpus * nodes * tokens))
if [ $((update_tokens % together)) -ne 0 ]; then
    echo "train.sh: GPUS x NODES x TOKENS = $gpus x $nodes x $tokens does not divide the" \
        "$update_tokens of an update" >&2
    exit 2
fi
if [ "$nodes" -gt 1 ] && [[ ${FIRST:-} != *:* ]]; then
    echo "train.sh: NODES=$nodes needs FIRST=NAME:PORT, a port of the first machine" >&2
    exit 2
fi
# torchrun is how several workers are tested. It takes the place of this script (exec), and hands a
# SIGTERM on to its workers, which then save and stop.
launch=(resmlp-mt train)
if [ "$nodes" -gt 1 ]; then
    launch=(torchrun --nnodes "$nodes" --nproc_per_node "$gpus" --rdzv_backend c10d
        --rdzv_id "$model-$lang-seed$seed"
        --rdzv_endpoint "$FIRST"
        --no-python "${launch[@]}")
elif [ "$gpus" -gt 1 ]; then
    launch=(torchrun --standalone --nproc_per_node "$gpus" --no-python "${launch[@]}")
else
    recipe+=(--distributed-world-size 1)  # or fairseq would take all the GPUs that it sees
fi

mkdir -p "$out"
echo "GPUS=$gpus NODES=$nodes TOKENS=$tokens UPDATE_TOKENS=$update_tokens" \
    "examples/wmt14/train.sh $*" >"$out/command"
exec "${launch[@]}" "$data" "${recipe[@]}" --share-all-embeddings \
    --max-source-positions 256 --max-target-positions 256 --skip-invalid-size-inputs-valid-test \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-tokens "$tokens" --update-freq $((update_tokens / together)) \
    --max-update "$updates" --seed "$seed" \
    --save-interval-updates 2000 --keep-interval-updates 10 --no-epoch-checkpoints \
    --save-dir "$out" --log-format json --log-interval 100 --log-file "$out/train.log" "${@:5}"
