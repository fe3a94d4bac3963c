#!/usr/bin/env bash
# CTranslate2 4.8.5 does not end a translation at the last position that its model has. It raises
# RuntimeError, and no sentence of the call is translated.
#
# A random Transformer has 16 positions, as one of fairseq has max_target_positions, and its spec
# holds them as they are. With the default max_decoding_length (256) one would guess that a
# translation without an end stops after 16 subwords, as fairseq's search does. CTranslate2 says "No
# position encodings are defined for positions >= 16, but got position 16". With
# max_decoding_length=16 it translates.
# Exits with 1 where it does otherwise.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/try.py" <<'END'
import sys
from pathlib import Path

import ctranslate2
import numpy as np

POSITIONS, WIDTH = 16, 8
symbols = ["<unk>", "<s>", "</s>", "a", "b"]
random = np.random.default_rng(1)
spec = ctranslate2.specs.TransformerSpec.from_config((1, 1), 2)


def fill(part):
    """Random weights for a layer, and for all within it."""
    for name, value in list(vars(part).items()):
        if isinstance(value, list):
            for one in value:
                fill(one)
        elif isinstance(value, ctranslate2.specs.LayerSpec):
            fill(value)
    if isinstance(part, ctranslate2.specs.common_spec.LayerNormSpec):
        part.gamma, part.beta = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)


def matrix(*shape):
    return random.normal(0, 1, shape).astype(np.float32)


fill(spec)
for side in (spec.encoder, spec.decoder):
    embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
    embeddings.weight = matrix(len(symbols), WIDTH)
    side.position_encodings.encodings = matrix(POSITIONS, WIDTH)
    for layer in side.layer:
        own = layer.self_attention.linear
        own[0].weight, own[0].bias = matrix(3 * WIDTH, WIDTH), matrix(3 * WIDTH)
        own[1].weight, own[1].bias = matrix(WIDTH, WIDTH), matrix(WIDTH)
        if side is spec.decoder:
            for linear, rows in zip(layer.attention.linear, (WIDTH, 2 * WIDTH, WIDTH)):
                linear.weight, linear.bias = matrix(rows, WIDTH), matrix(rows)
        for linear, shape in zip((layer.ffn.linear_0, layer.ffn.linear_1), ((16, 8), (8, 16))):
            linear.weight, linear.bias = matrix(*shape), matrix(shape[0])
spec.decoder.projection.weight = matrix(len(symbols), WIDTH)
spec.decoder.projection.bias = np.array([0, 0, -1e4, 0, 0], np.float32)  # none ends by itself
spec.register_source_vocabulary(symbols)
spec.register_target_vocabulary(symbols)
spec.validate()
Path("model").mkdir()
spec.save("model")
model = ctranslate2.Translator("model", compute_type="float32")

def say(**options):
    try:
        (found,) = model.translate_batch([["a", "b", "a"]], beam_size=1, **options)
        said = f"{len(found.hypotheses[0])} subwords"
    except RuntimeError as error:
        said = f"{type(error).__name__}: {error}"
    print(f"{options or 'default'}: {said}")
    return said


refused, taken = say(), say(max_decoding_length=POSITIONS)
expected = "RuntimeError: No position encodings are defined for positions >= 16, but got position 16"
sys.exit((refused, taken) != (expected, "16 subwords"))
END
cd "$work"
python3 -m venv env
env/bin/pip install -q ctranslate2==4.8.5 numpy==2.4.6
env/bin/python try.py
