#!/usr/bin/env bash
# The translator en-de, which comes with the package:
#   bash examples/ende-mix/everyday.sh RAW NEWS OUT [MODEL [FLAG...]]
#   RAW, NEWS  as prepare.py's --raw and --news
#   OUT        a folder for the data, the checkpoints, the model and its translations
#   MODEL      train this one further, en-de or what an earlier call made, in place of a new one;
#              '' for a new one
#   FLAG       further ones go to prepare.py
# A new model sees short sentences first, of 20 subwords at most, and then all. The learning rate
# stays, and falls towards the end. UPDATES=N are those of the whole, 4900 by default. SEED=1,
# TOKENS=4096 a batch, shared by WORKERS=1 processes, VOCAB=8000 subwords for both languages
# together, and DTYPE=--bf16 where the processor or the GPU has instructions for it.
# What was stopped goes on with the same command. It appends a row for each test set to results.csv.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage="usage: everyday.sh RAW NEWS OUT [MODEL [FLAG...]]"
raw=${1:?$usage} news=${2:?$usage} out=${3:?$usage} model=${4:-}
extra=("${@:5}") updates=${UPDATES:-4900} seed=${SEED:-1} tokens=${TOKENS:-4096}
workers=${WORKERS:-1}
warm=$((updates * 3 / 98)) fall=$((updates * 25 / 98))
short=$((updates * 30 / 49))
. scripts/cpu.sh

launch=()
[ "$workers" = 1 ] || launch=(torchrun --nproc_per_node "$workers" --no-python)

prepare() { # NAME FLAG...
    [ -e "$out/$1" ] || python examples/ende-mix/prepare.py --raw "$raw" --news "$news" \
        --out "$out/$1" --remove-identical --remove-wrong-language --careless 0.2 \
        "${@:2}" "${extra[@]}"
}

train() { # NAME DATA UPDATES FLAG...
    local run=$out/$1
    is_done "$run" "$3" && return
    mkdir -p "$run"
    "${launch[@]}" resmlp-mt train "$out/$2" --arch resmlp_plus_small \
        --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-layers 6 \
        --decoder-embed-dim 128 --decoder-ffn-embed-dim 512 --decoder-layers 2 \
        --share-all-embeddings --max-source-positions 256 --max-target-positions 256 \
        --dropout 0 --criterion label_smoothed_cross_entropy_in_chunks --label-smoothing 0.1 \
        --optimizer muon --adam-betas '(0.9, 0.98)' --lr 5e-3 --lr-scheduler tri_stage \
        --warmup-steps $warm --hold-steps $((updates - warm - fall)) --decay-steps $fall \
        --final-lr-scale 0.03 --max-tokens $((tokens / workers)) --max-update "$3" --seed "$seed" \
        --num-workers 0 ${DTYPE:-} --save-dir "$run" --save-interval-updates 200 \
        --keep-interval-updates 1 --no-epoch-checkpoints --log-format json --log-interval 50 \
        --log-file "$run/train.log" "${@:4}"
    # One that SIGTERM stopped ends with status 0 too.
    if ! is_done "$run" "$3"; then
        echo "everyday.sh: the training in $run was stopped; the same command goes on" >&2
        exit 1
    fi
}

is_done() { # RUN UPDATES
    grep -qs "train_num_updates\": \"$2\"" "$1/train.log"
}

run=$out/run logs=("$out/run/train.log")
if [ -n "$model" ]; then
    prepare all --like "$model" --swap 0.15
    train run all "$updates" --finetune-from-model "$model"
else
    # Subwords are learned from what people wrote.
    prepare words --vocab-size "${VOCAB:-8000}"
    prepare short --like "$out/words" --max-length 20
    prepare all --like "$out/words" --swap 0.15
    train first short "$short"
    logs=("$out/first/train.log" "${logs[@]}")
    # The first state of the second part is the last of the first, and its data are others.
    start=()
    [ -e "$run/checkpoint_last.pt" ] ||
        start=(--restore-file "$out/first/checkpoint_last.pt" --reset-dataloader)
    train run all "$updates" "${start[@]}"
fi
echo "UPDATES=$updates SEED=$seed TOKENS=$tokens WORKERS=$workers DTYPE=${DTYPE:-}" \
    "examples/ende-mix/everyday.sh RAW NEWS OUT $model" >"$run/command"

rm -rf "$out/en-de"
resmlp-mt pack "$run/checkpoint_last.pt" --half --out "$out/en-de"
for set in test:newstest2014 test1:tatoeba test2:domains; do
    subset=${set%:*} name=${set#*:}
    resmlp-mt translate --model "$out/en-de" --no-split-sentences --beam 5 --quiet \
        --input "$out/all/raw/$subset.en" --output "$out/$name.de"
    resmlp-mt score "$out/$name.de" --ref "$out/all/raw/$subset.de"
    python scripts/translation_figures.py "$run" "model=en-de" "set=$name" "seed=$seed" \
        "pairs=$(python -c "import json, sys; print(json.load(sys.stdin)['train']['kept'])" \
            <"$out/all/report.json")" "flags=" \
        --hypotheses "$out/$name.de" --references "$out/all/raw/$subset.de" |
        python scripts/append_row.py "${RESULTS:-examples/ende-mix/results.csv}" \
            --log "${logs[@]}"
done
python examples/ende-mix/by_domain.py "$out/domains.de" --ref "$out/all/raw/test2.de"
