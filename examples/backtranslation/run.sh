#!/usr/bin/env bash
# The whole study: bash examples/backtranslation/run.sh RAW NEWS
#   RAW    a folder with train.en.xz, train.de.xz and train.domain.xz, as for ../ende-mix
#   NEWS   the prefix of newstest2014's files
# Stopped by whatever, the same command goes on. What each step made is its mark, so nothing is done
# twice. These variables take the place of what stands here:
#   PAIRS=100000         pairs of bitext
#   MONOLINGUAL=100000   German sentences to translate back
#   FAMILY=resmlp_plus SIZE=tiny SEED=1 UPDATES=8000 TOKENS=4096    of all three trainings
#   DTYPE=--bf16         likewise; DTYPE= trains in fp32
#   VOCABULARY=8000      subwords
#   HELD_OUT=            flags of ../ende-mix/prepare.py for smaller test sets
#   DATA=data-bin/backtranslation OUT=checkpoints/backtranslation
#   RESULTS=examples/backtranslation/results.csv
set -euo pipefail
raw=$(realpath "${1:?usage: run.sh RAW NEWS}") news=$(realpath -m "${2:?usage: run.sh RAW NEWS}")
cd "$(dirname "$0")/../.."

family=${FAMILY:-resmlp_plus} size=${SIZE:-tiny} seed=${SEED:-1} updates=${UPDATES:-8000}
data=${DATA:-data-bin/backtranslation} out=${OUT:-checkpoints/backtranslation}
export TOKENS=${TOKENS:-4096} RESULTS=${RESULTS:-examples/backtranslation/results.csv}
model=$family-$size-seed$seed
mkdir -p "$data" "$out"
exec 9>"$out/lock"
flock --nonblock 9 || { echo "run.sh: $out: another run is at work on it" >&2; exit 2; }
say() { echo "$(date -u +%FT%TZ) $*"; }

# 1. The bitext, and the German side of other pairs. The tag has a subword of its own.
if [ ! -e "$data/bitext/raw/monolingual.de" ]; then
    say "prepare the bitext"
    python examples/ende-mix/prepare.py --raw "$raw" --news "$news" --out "$data/bitext" \
        --pairs "${PAIRS:-100000}" --monolingual "${MONOLINGUAL:-100000}" \
        --vocab-size "${VOCABULARY:-8000}" --user-defined-symbols '<BT>' ${HELD_OUT:-}
fi

train() { # NAME DATA [FLAG...]
    if [ ! -e "$out/$1/trained" ]; then
        say "train $1"
        DATA=$2 OUT=$out/$1 bash examples/ende-mix/train.sh "$family" "$size" "$seed" "$updates" \
            ${DTYPE---bf16} "${@:3}" >>"$out/$1.output" 2>&1 ||
            { tail -n 5 "$out/$1.output" >&2; exit 1; }
        # A training that is told to end saves itself and ends well, but is not done.
        grep -q "\"valid_num_updates\": \"$updates\"" "$out/$1/$model/train.log" || exit 1
        touch "$out/$1/trained"
    fi
}

evaluate() { # NAME DATA
    if [ ! -e "$out/$1/evaluated" ]; then
        say "evaluate $1"
        DATA=$2 OUT=$out/$1 bash examples/ende-mix/evaluate.sh "$family" "$size" "$seed"
        touch "$out/$1/evaluated"
    fi
}

# 2. A model from German to English, on the same data.
train reverse "$data/bitext" --source-lang de --target-lang en

# 3. Its samples of the monolingual text.
say "translate back"
resmlp-mt translate --model "$out/reverse/$model/checkpoint_best.pt" --quiet --resume \
    --input "$data/bitext/raw/monolingual.de" --output "$out/sampled.en" \
    --sampling --sampling-topk 10 --seed "$seed"

# 4. Bitext and tagged samples, with the subwords of the bitext.
if [ ! -e "$data/mixed/raw/test2.domain" ]; then
    say "prepare the mixed text"
    python examples/backtranslation/mix.py --bitext "$data/bitext/raw/train" \
        --translated "$out/sampled.en" --monolingual "$data/bitext/raw/monolingual.de" \
        --out "$out/mixed"
    held_out=$data/bitext/raw
    resmlp-mt prepare --source-lang en --target-lang de --like "$data/bitext" \
        --train "$out/mixed" --valid "$held_out/valid" \
        --test "$held_out/test,$held_out/test1,$held_out/test2" --out "$data/mixed"
    cp "$held_out/test2.domain" "$data/mixed/raw/"
fi

# 5. From English to German, without and with: as many updates of as many tokens.
train without "$data/bitext"
evaluate without "$data/bitext"
train with "$data/mixed"
evaluate with "$data/mixed"
say "done"
