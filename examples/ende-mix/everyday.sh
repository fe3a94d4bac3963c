#!/usr/bin/env bash
# The translators en-de and de-en, which come with the package:
#   bash examples/ende-mix/everyday.sh RAW NEWS OUT [MODEL [FLAG...]]
#   RAW, NEWS  as prepare.py's --raw and --news
#   OUT        a folder for the data, the checkpoints, the model and its translations
#   MODEL      train this one further, en-de or what an earlier call made, in place of a new one;
#              '' for a new one
#   FLAG       further ones go to prepare.py
# A new model sees short sentences first, of 20 subwords at most, and then all. The learning rate
# stays, and falls towards the end.
#   SOURCE=en     translate from this language, en or de, into the other
#   FAMILY=resmlp_plus  or transformer: fairseq's, with norms before the sublayers, as the control
#   WIDTH=256     d; hidden layers are four times as wide
#   LAYERS=6      of the encoder; the decoder has 2
#   UPDATES=4900  of the whole
#   SHORT=3000    those of a new model that see short sentences; default: 30 of 49 of all
#   TOKENS=4096   a batch, shared by WORKERS=1 processes with OMP_NUM_THREADS=1 threads each
#   VOCAB=8000    subwords of a new model, of both languages together
#   LIKE=         a model whose subwords a new one takes, as en-de
#   DROPOUT=0
#   LR=5e-3       the learning rate that stays; for a short training further a fifth of it
#   SEED=1
#   SAVE=200      updates between checkpoints
#   READERS=0     processes that read batches ahead, for a GPU
#   DTYPE=--bf16  where the processor or the GPU has instructions for it
#   RESULTS=examples/ende-mix/results.csv  gets a row for each test set
# What was stopped goes on with the same command.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage="usage: everyday.sh RAW NEWS OUT [MODEL [FLAG...]]"
raw=${1:?$usage} news=${2:?$usage} out=${3:?$usage} model=${4:-}
extra=("${@:5}") updates=${UPDATES:-4900} seed=${SEED:-1} tokens=${TOKENS:-4096}
workers=${WORKERS:-1} width=${WIDTH:-256} layers=${LAYERS:-6}
source=${SOURCE:-en} family=${FAMILY:-resmlp_plus}
warm=$((updates * 3 / 98)) fall=$((updates * 25 / 98))
short=${SHORT:-$((updates * 30 / 49))} dropout=${DROPOUT:-0} lr=${LR:-5e-3}
. scripts/cpu.sh
. scripts/training.sh

case $source in
en) target=de ;;
de) target=en ;;
*) echo "everyday.sh: SOURCE=$source: en or de" >&2; exit 2 ;;
esac
case $family in
resmlp_plus) arch=(--arch resmlp_plus_small) ;;
transformer)
    arch=(--arch transformer --encoder-normalize-before --decoder-normalize-before
        --encoder-attention-heads 4 --decoder-attention-heads 4)
    ;;
*) echo "everyday.sh: FAMILY=$family: resmlp_plus or transformer" >&2; exit 2 ;;
esac
settings="SOURCE=$source FAMILY=$family WIDTH=$width UPDATES=$updates TOKENS=$tokens \
WORKERS=$workers VOCAB=${VOCAB:-8000} SEED=$seed DTYPE=${DTYPE:-}"
settings+="${LAYERS:+ LAYERS=$LAYERS}${LIKE:+ LIKE=$LIKE}${SHORT:+ SHORT=$SHORT}"
settings+="${DROPOUT:+ DROPOUT=$DROPOUT}${LR:+ LR=$LR}"
call="$settings examples/ende-mix/everyday.sh RAW NEWS OUT ${model:-''} ${extra[*]}"
mkdir -p "$out"
if [ -e "$out/command" ] && [ "$(cat "$out/command")" != "$call" ]; then
    echo "everyday.sh: $out is of another call: $(cat "$out/command")" >&2
    exit 2
fi
echo "$call" >"$out/command"

launch=()
[ "$workers" = 1 ] || launch=(torchrun --standalone --nproc_per_node "$workers" --no-python)

prepare() { # NAME FLAG...
    # prepare.py writes this last. A folder without it was stopped half way.
    [ ! -e "$out/$1/raw/test2.domain" ] || return 0
    rm -rf "${out:?}/$1"
    python examples/ende-mix/prepare.py --raw "$raw" --news "$news" \
        --out "$out/$1" --source-lang "$source" --remove-identical --remove-wrong-language \
        --careless 0.3 "${@:2}" "${extra[@]}"
}

train() { # NAME DATA UPDATES FLAG...
    local run=$out/$1
    is_trained "$run" "$3" && return
    mkdir -p "$run"
    ${launch[@]+"${launch[@]}"} resmlp-mt train "$out/$2" "${arch[@]}" \
        --encoder-embed-dim "$width" --encoder-ffn-embed-dim $((4 * width)) \
        --encoder-layers "$layers" \
        --decoder-embed-dim "$width" --decoder-ffn-embed-dim $((4 * width)) --decoder-layers 2 \
        --share-all-embeddings --max-source-positions 256 --max-target-positions 256 \
        --dropout "$dropout" \
        --criterion label_smoothed_cross_entropy_in_chunks --label-smoothing 0.1 \
        --optimizer muon --adam-betas '(0.9, 0.98)' --lr "$lr" --lr-scheduler tri_stage \
        --warmup-steps $warm --hold-steps $((updates - warm - fall)) --decay-steps $fall \
        --final-lr-scale 0.03 --distributed-world-size "$workers" \
        --max-tokens $((tokens / workers)) --max-update "$3" --seed "$seed" \
        --num-workers "${READERS:-0}" ${DTYPE:-} --save-dir "$run" \
        --save-interval-updates "${SAVE:-200}" --keep-interval-updates 1 --no-epoch-checkpoints \
        --log-format json --log-interval 50 --log-file "$run/train.log" "${@:4}"
    expect_trained "$run" "$3"
}

run=$out/run logs=("$out/run/train.log")
if [ -n "$model" ]; then
    prepare all --like "$model" --swap 0.15
    train run all "$updates" --finetune-from-model "$model"
else
    like=${LIKE:-$out/words}
    # Subwords are learned from what people wrote. Rare characters, as in emoji, become bytes.
    [ "${LIKE:-}" ] ||
        prepare words --vocab-size "${VOCAB:-8000}" --byte-fallback --character-coverage 0.9998
    prepare all --like "$like" --swap 0.15
    start=()
    if [ "$short" -gt 0 ]; then
        prepare short --like "$like" --max-length 20 --swap 0.15
        train first short "$short"
        logs=("$out/first/train.log" "${logs[@]}")
        # The first state of the second part is the last of the first, and its data are others.
        [ -e "$run/checkpoint_last.pt" ] ||
            start=(--restore-file "$out/first/checkpoint_last.pt" --reset-dataloader)
    fi
    train run all "$updates" ${start[@]+"${start[@]}"}
fi
cp "$out/command" "$run/command"

# Rows are added once.
if [ -e "$out/evaluated" ]; then
    echo "everyday.sh: $out is done" >&2
    exit
fi
name=$source-$target
[ "$family" = resmlp_plus ] || name=$name-$family
rm -rf "$out/$name"
resmlp-mt pack "$run/checkpoint_last.pt" --half --out "$out/$name"
pairs=$(count_pairs "$out/all")
figures=()
for set in test:newstest2014 test1:tatoeba test2:domains; do
    references=$out/all/raw/${set%:*}.$target translations=$out/${set#*:}.$target
    resmlp-mt translate --model "$out/$name" --no-split-sentences --beam 5 --quiet \
        --input "$out/all/raw/${set%:*}.$source" --output "$translations"
    resmlp-mt score "$translations" --ref "$references"
    python scripts/translation_figures.py "$run" "model=$name" "set=${set#*:}" "seed=$seed" \
        "pairs=$pairs" "flags=" --hypotheses "$translations" --references "$references" \
        >"$translations.json"
    figures+=("$translations.json")
done
python examples/ende-mix/by_domain.py "$out/domains.$target" --ref "$out/all/raw/test2.$target"
python -c "import json, sys
print(json.dumps([json.load(open(name)) for name in sys.argv[1:]]))" ${figures[@]+"${figures[@]}"} |
    OMP_NUM_THREADS=$((workers * ${OMP_NUM_THREADS:-1})) \
        python scripts/append_row.py "${RESULTS:-examples/ende-mix/results.csv}" --log "${logs[@]}"
touch "$out/evaluated"
