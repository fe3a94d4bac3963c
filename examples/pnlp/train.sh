#!/usr/bin/env bash
# Train a classifier on the data of prepare.py:
#   bash examples/pnlp/train.sh [ARCH] [SEED] [UPDATES] [FLAG...]
#   ARCH     pnlp_mixer_short (the default), pnlp_mixer_xs or pnlp_mixer_base
#   SEED     default 1
#   UPDATES  of 256 texts, default 800: three and a half epochs, five minutes on an idle core
#   FLAG     anything else of fairseq-train's
# Texts have at most 32 words; --max-words where prepare.py was told otherwise.
# DATA=data-bin/domains    what prepare.py made
# OUT=checkpoints/domains  where the folder of the run goes
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=${1:-pnlp_mixer_short} seed=${2:-1} updates=${3:-800}
data=${DATA:-data-bin/domains}
out=${OUT:-checkpoints/domains}/$arch-seed$seed
classes=$(wc -l <"$data/label/dict.txt")

. scripts/cpu.sh

mkdir -p "$out"
exec resmlp-mt train "$data" --user-dir examples/pnlp/pnlp_mixer \
    --task sentence_prediction --num-classes "$classes" --criterion sentence_prediction \
    --arch "$arch" --max-words 32 --dropout 0.1 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --lr 2e-3 --lr-scheduler inverse_sqrt \
    --distributed-world-size 1 --warmup-updates $((updates / 10)) --batch-size 256 \
    --max-update "$updates" --seed "$seed" \
    --best-checkpoint-metric accuracy --maximize-best-checkpoint-metric \
    --num-workers 0 --no-epoch-checkpoints --save-dir "$out" \
    --log-format json --log-interval 50 --log-file "$out/train.log" "${@:4}"
