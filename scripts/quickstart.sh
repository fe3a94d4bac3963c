#!/usr/bin/env bash
# From nothing to a SacreBLEU score: bash scripts/quickstart.sh [--locked | --locked=cuda]
# Makes .venv, writes a synthetic English-German corpus, trains a small ResMLP on it with
# fairseq-train, translates the test set with fairseq-generate, and shows what came out. That takes
# 1.5 minutes on a CPU thread, after the installation. Run again, it reuses what is there; remove the
# folder quickstart/ to begin anew. --locked installs the files of requirements.lock, by their hashes;
# --locked=cuda those of requirements-cuda.lock.
#   PYTHON=python3  what makes .venv: Python 3.11 to 3.14
#   CC=cc           the C compiler; without any, setup.py takes ziglang
set -euo pipefail
case "$*" in
    '') lock= ;;
    --locked) lock=requirements.lock ;;
    --locked=cuda) lock=requirements-cuda.lock ;;
    *)
        echo "usage: bash scripts/quickstart.sh [--locked | --locked=cuda]" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/.."
extras=train,export
. scripts/environment.sh
. scripts/training.sh

work=quickstart model=$work/model
log=$work/generate.txt updates=600
mkdir -p "$work"

step() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }

# Steps write under another name first: what an interrupt leaves behind is not taken for a result.
step "1/5 Write the corpus: 30,000 sentence pairs from a grammar"
[ -f "$work/raw/test.de" ] || python -m examples.lesson --out "$work/raw"

step "2/5 Prepare: subwords, dictionary, binarized data"
[ -f "$work/data-bin/report.json" ] ||
    resmlp-mt prepare --source-lang en --target-lang de \
        --train "$work/raw/train" --valid "$work/raw/valid" --test "$work/raw/test" \
        --vocab-size 1000 --out "$work/data-bin"

step "3/5 Train with fairseq-train (about a minute)"
[ -f "$work/trained" ] || {
    # Stopped half way, it goes on from the last epoch.
    fairseq-train "$work/data-bin" --user-dir resmlp_mt --arch resmlp_plus_tiny \
        --encoder-layers 2 --decoder-layers 2 --share-all-embeddings \
        --max-source-positions 64 --max-target-positions 64 \
        --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
        --optimizer adam --adam-betas '(0.9, 0.98)' \
        --lr 7e-3 --lr-scheduler inverse_sqrt --warmup-updates 100 \
        --distributed-world-size 1 --max-tokens 1024 --max-update $updates --seed 1 \
        --num-workers 0 --no-epoch-checkpoints --save-dir "$model" \
        --log-format json --log-interval 20 --log-file "$work/train.log" 2>&1 |
        tee "$work/train.out" | python scripts/watch_training.py --updates $updates ||
        { tail -n 20 "$work/train.out" >&2; exit 1; }
    expect_trained "$work" "$updates"
    touch "$work/trained"
}

step "4/5 Translate the test set with fairseq-generate"
[ -f "$log" ] || {
    fairseq-generate "$work/data-bin" --user-dir resmlp_mt --path "$model/checkpoint_best.pt" \
        --beam 5 --batch-size 100 --post-process sentencepiece --scoring sacrebleu >"$log.part" 2>&1 ||
        { tail -n 20 "$log.part" >&2; exit 1; }
    mv "$log.part" "$log"
}

step "5/5 Look at it"
resmlp-mt study curves "$work/train.log" --out "$work/loss.png" >/dev/null
python scripts/read_generate.py "$log" --examples 10
grep '^Generate' "$log"
cat <<END

checkpoint   $model/checkpoint_best.pt
loss curve   $work/loss.png

The corpus is a synthetic language lesson: it shows that all parts work, not how well the model
translates. Next:
  . .venv/bin/activate
  resmlp-mt translate --model $model "Today the old man does not open the door."
  resmlp-mt translate --model en-de "Where did you learn that?"    # trained on real text
  examples/multi30k/README.md                                      # train on real text
END
