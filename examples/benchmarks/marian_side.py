"""Bergamot's side of the race of marian.sh, for a Python that its wheels are made for.

python marian_side.py FOLDER SYMBOLS CHANNELS HIDDEN

FOLDER has the subwords, vocab.spm, of which there are SYMBOLS. An untrained Marian model is written
there: 6 layers of a Transformer, 2 of a decoder with SSRU, as
the students in Firefox are made. Then each line of standard input, a JSON object of a configuration
(`beam-size`, `mini-batch-words`, `gemm-precision`) with `texts` and `batch`, is answered with the
processor seconds that their translation took, and with its number of subwords. The extension module
alone is loaded: the package would ask the network for a list of models.
"""

import importlib.machinery
import importlib.util
import json
import sys
import time
from pathlib import Path

import numpy as np


def main() -> None:
    """Answer."""
    folder, sizes = Path(sys.argv[1]), map(int, sys.argv[2:])
    bergamot = load_module()
    np.savez(folder / "model.npz", **make_model(*sizes))
    models = {}
    service = bergamot.Service(bergamot.ServiceConfig(numWorkers=1, cacheSize=0, logLevel="off"))
    options = bergamot.ResponseOptions(qualityScores=False, sentenceMappings=False)
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        texts, batch = asked.pop("texts"), asked.pop("batch")
        key = json.dumps(asked)
        if key not in models:
            models[key] = service.modelFromConfig(describe(folder, asked))
        start, subwords = time.process_time(), 0
        for first in range(0, len(texts), batch):
            some = bergamot.VectorString(texts[first : first + batch])
            for response in service.translate(models[key], some, options):
                count = response.target.numSentences()
                subwords += sum(response.target.numWords(i) for i in range(count))
        seconds = time.process_time() - start
        print(json.dumps({"seconds": seconds, "subwords": subwords}), flush=True)


def load_module():
    """The extension module of the installed package."""
    found = importlib.machinery.PathFinder.find_spec("bergamot")
    (path,) = Path(found.origin).parent.glob("_bergamot*.so")
    spec = importlib.util.spec_from_file_location("_bergamot", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def describe(folder: Path, asked: dict) -> str:
    """A model's configuration."""
    asked = {
        "models": [str(folder / "model.npz")],
        "vocabs": [str(folder / "vocab.spm")] * 2,
        "normalize": 1.0,
        "word-penalty": 0,
        "max-length-break": 128,
        "max-length-factor": 1.6,  # 20 subwords in, 32 steps
        "mini-batch-words": 1024,
        "workspace": 128,
        "ssplit-mode": "sentence",
        "skip-cost": True,
        "cpu-threads": 0,
        "quiet": True,
        "quiet-translation": True,
        **asked,
    }
    return "\n".join(f"{name}: {json.dumps(value)}" for name, value in asked.items())


def make_model(symbols: int, channels: int, hidden: int) -> dict[str, np.ndarray]:
    """Random weights by Marian's names."""
    random, model = np.random.default_rng(1), {}

    def add(name: str, rows: int, columns: int) -> None:
        weight = random.standard_normal((rows, columns)) / rows**0.5
        model[name] = weight.astype(np.float32)

    def add_linear(name: str, weight: str, bias: str, rows: int, columns: int) -> None:
        add(name + weight, rows, columns)
        model[name + bias] = np.zeros((1, columns), np.float32)

    def add_norm(name: str) -> None:
        model[name + "_ln_scale"] = np.ones((1, channels), np.float32)
        model[name + "_ln_bias"] = np.zeros((1, channels), np.float32)

    def add_attention(name: str) -> None:
        for part in "qkvo":
            add_linear(name, f"_W{part}", f"_b{part}", channels, channels)
        add_norm(f"{name}_Wo")

    def add_mlp(name: str) -> None:
        add_linear(name, "_W1", "_b1", channels, hidden)
        add_linear(name, "_W2", "_b2", hidden, channels)
        add_norm(f"{name}_ffn")

    add("Wemb", symbols, channels)
    model["decoder_ff_logit_out_b"] = np.zeros((1, symbols), np.float32)
    model["decoder_ff_logit_out_b"][0, 2] = -1000  # no translation ends before it must
    for layer in range(1, 7):
        add_attention(f"encoder_l{layer}_self")
        add_mlp(f"encoder_l{layer}_ffn")
    for layer in range(1, 3):
        add(f"decoder_l{layer}_rnn_W", channels, channels)
        add_linear(f"decoder_l{layer}_rnn", "_Wf", "_bf", channels, channels)
        add_norm(f"decoder_l{layer}_rnn_ffn")
        add_attention(f"decoder_l{layer}_context")
        add_mlp(f"decoder_l{layer}_ffn")
    described = {
        "type": "transformer",
        "dim-vocabs": [symbols, symbols],
        "dim-emb": channels,
        "enc-depth": 6,
        "dec-depth": 2,
        "transformer-dim-ffn": hidden,
        "transformer-heads": 8,
        "transformer-ffn-depth": 2,
        "transformer-decoder-dim-ffn": 0,
        "transformer-decoder-ffn-depth": 0,
        "transformer-decoder-autoreg": "rnn",
        "dec-cell": "ssru",
        "dec-cell-base-depth": 2,
        "dec-cell-high-depth": 1,
        "transformer-ffn-activation": "relu",
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-no-projection": False,
        "transformer-train-position-embeddings": False,
        "transformer-tied-layers": [],
        "transformer-guided-alignment-layer": "last",
        "transformer-aan-activation": "swish",
        "transformer-aan-depth": 2,
        "transformer-aan-nogate": False,
        "transformer-dim-aan": 2048,
        "tied-embeddings": False,
        "tied-embeddings-all": True,
        "tied-embeddings-src": False,
        "lemma-dim-emb": 0,
        "ulr": False,
        "ulr-dim-emb": 0,
        "ulr-trainable-transformation": False,
        "input-types": [],
        "output-omit-bias": False,
        "transformer-depth-scaling": False,
        "layer-normalization": False,
        "skip": False,
        "version": "v1.9.0",
    }
    text = "\n".join(f"{name}: {json.dumps(value)}" for name, value in described.items())
    model["special:model.yml"] = np.frombuffer(text.encode() + b"\0", np.int8)
    return model


if __name__ == "__main__":
    main()
