#!/usr/bin/env bash
# Train a translator of base size with 32,000 subwords, and say what exports of it lose:
#   bash examples/benchmarks/base_size.sh LIKE RAW OUT
#   LIKE  a data folder that has the subwords: resmlp-mt prepare --vocab-size 32000 --joined, en-de
#   RAW   Multi30k, as for examples/multi30k/prepare.sh; its captions are what it learns
#   OUT   where data and checkpoints go
# It trains for 800 updates (UPDATES=), 1.5 hours on 2 cores, in bf16 (DTYPE= leaves it out), and
# goes on where it was stopped. Rows go to $CSV (default: OUT/preview.csv), and those with fewer
# bits to $BITS_CSV (default: OUT/weight_bits.csv).
set -euo pipefail
cd "$(dirname "$0")/../.."

usage="usage: base_size.sh LIKE RAW OUT"
like=${1:?$usage} raw=${2:?$usage} out=${3:?$usage}
updates=${UPDATES:-800}
. scripts/cpu.sh

[ -e "$out/data" ] || resmlp-mt prepare --source-lang en --target-lang de --like "$like" \
    --train "$raw/train" --valid "$raw/val" --test "$raw/test_2016_flickr" --out "$out/data"
mkdir -p "$out/run"
warmup=$((updates < 30 ? updates / 3 : 30)) decay=$((updates / 3))
# shellcheck disable=SC2086  # no flag where DTYPE is empty
resmlp-mt train "$out/data" --arch resmlp_plus_wmt_en_de --share-all-embeddings \
    --max-source-positions 256 --max-target-positions 256 --dropout 0.1 \
    --criterion label_smoothed_cross_entropy_in_chunks --label-smoothing 0.1 \
    --optimizer muon --adam-betas '(0.9, 0.98)' --lr 5e-3 --lr-scheduler tri_stage \
    --warmup-steps "$warmup" --hold-steps $((updates - warmup - decay)) --decay-steps "$decay" \
    --final-lr-scale 0.03 --max-tokens 4096 --max-update "$updates" --seed 1 --num-workers 0 \
    ${DTYPE---bf16} --save-dir "$out/run" --save-interval-updates 100 --keep-interval-updates 1 \
    --no-epoch-checkpoints

model=$out/run/checkpoint_last.pt
tests=()
for set in val test_2016_flickr; do
    tests+=(--test "$set" "$raw/$set.en" "$raw/$set.de")
done
python examples/benchmarks/preview.py "$model" --name "captions, base size" ${tests[@]+"${tests[@]}"} \
    --text "$raw/train.en" "$raw/train.de" --shortlist-best 200 --csv "${CSV:-$out/preview.csv}"
python examples/benchmarks/weight_bits.py "$model" --name "captions, base size" ${tests[@]+"${tests[@]}"} \
    --bits 6 --csv "${BITS_CSV:-$out/weight_bits.csv}"
