#!/usr/bin/env bash
# SentencePiece 0.2.3 (PyPI): `alpha` of sampled subwords has opposite directions. For a BPE model it
# is the share of merges that are dropped: 0.1 is mild, 0.9 cuts words into letters. For a unigram
# model it sharpens: 0.9 is mild, and 0.1 draws cuts that the model finds unlikely.
# Seen, pieces a word without sampling, with alpha 0.1, and with 0.9: 2.45, 2.89, 6.63 of BPE, and
# 2.52, 3.56, 2.54 of unigrams.
# One would have guessed: one name, one direction, so that a recipe's --alpha 0.1 suits both models.
#   bash findings/sentencepiece_alpha.sh
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet sentencepiece==0.2.3
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import random

import sentencepiece

chance = random.Random(1)
syllables = [c + v + e for c in "bdfgklmnprst" for v in "aeiou" for e in ("", "n", "r", "st")]
words = ["".join(chance.choices(syllables, k=chance.choice((1, 2, 2, 3)))) for _ in range(2000)]
text = [" ".join(chance.choices(words[:400] if chance.random() < 0.8 else words, k=8))
        for _ in range(5000)]
found = {}
for kind in ("bpe", "unigram"):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=kind, model_type=kind, vocab_size=600,
        minloglevel=2, num_threads=1,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=f"{kind}.model")
    pieces = {"none": sum(len(model.encode(word)) for word in words) / len(words)}
    for alpha in (0.1, 0.9):
        drawn = [
            len(model.encode(word, enable_sampling=True, nbest_size=-1, alpha=alpha))
            for word in words for _ in range(5)
        ]
        pieces[alpha] = sum(drawn) / len(drawn)
    found[kind] = pieces
    print(kind, {alpha: round(number, 2) for alpha, number in pieces.items()})
bpe, unigram = found["bpe"], found["unigram"]
assert bpe["none"] < bpe[0.1] < bpe[0.9], "alpha of BPE has another direction"
assert unigram["none"] < unigram[0.9] < unigram[0.1], "alpha of unigrams has another direction"
print("0.1 is the milder alpha of BPE, and 0.9 that of unigrams")
PYTHON
