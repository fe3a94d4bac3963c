"""The runs to compare: one factor at a time around two models, `RUNS`.

A run is a base and the flags that differ from it. "paper" is `resmlp_tiny`. "plus" is the first
`resmlp_plus_tiny`, spelt out so that the runs stay what they are when the preset moves on.
"transformer" is fairseq's, of the same dimensions.
"""

_TRANSFORMER = """--arch transformer --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
    --encoder-layers 4 --encoder-attention-heads 4 --decoder-embed-dim 128
    --decoder-ffn-embed-dim 256 --decoder-layers 4 --decoder-attention-heads 4"""

BASES = {
    "paper": "--arch resmlp_tiny_variant",
    "plus": """--arch resmlp_tiny_variant --token-mixer gated-toeplitz --mixing-heads 8
        --mixing-init-std 0.05 --norm layer --layer-scale-init 1
        --no-token-positional-embeddings""",
    "transformer": _TRANSFORMER,
}

_ADAGRAD = "--optimizer adagrad --lr 0.2"

# base: {factor: {value: flags}}
RUNS = {
    "transformer": {
        "base": {
            "post-norm": "",
            "pre-norm": "--encoder-normalize-before --decoder-normalize-before",
        },
        "optimiser": {"adagrad 0.2": _ADAGRAD},
    },
    "paper": {
        "base": {"resmlp_tiny": ""},
        "norm": {
            "layer everywhere": "--norm layer",
            "layer before the output alone": "--output-norm layer",
            "layer before the attention alone": "--cross-norm layer",
            "layer in the encoder's blocks": "--encoder-norm layer",
            "layer in the decoder's blocks": "--decoder-norm layer --cross-norm affine",
        },
        "heads": {"8": "--mixing-heads 8"},
        "matrix": {"toeplitz": "--matrix toeplitz"},
        "mixer": {"value and gate": "--projections value+gate"},
        "start of A": {
            "std 0.005": "--mixing-init-std 0.005",
            "std 0.05": "--mixing-init-std 0.05",
            "zero": "--matrix-init zero",
            "local": "--matrix-init local",
        },
        "LayerScale": {"0.1": "--layer-scale-init 0.1", "1": "--layer-scale-init 1"},
        "positions": {"none": "--no-token-positional-embeddings"},
        "embedding scale": {
            "1": "--no-scale-embedding",
            "sqrt(C), last Aff from 1/sqrt(C)": "--output-scale 0.0884",
        },
        "optimiser": {"adagrad 0.2": _ADAGRAD},
    },
    "plus": {
        "base": {"resmlp_plus_tiny": ""},
        "norm": {
            "affine everywhere": "--norm affine",
            "affine but before the output": "--norm affine --output-norm layer",
            "affine in the encoder's blocks": "--encoder-norm affine",
            "affine in the decoder's blocks": "--decoder-norm affine --cross-norm layer",
            "affine before the attention": "--cross-norm affine",
        },
        "heads": {n: f"--mixing-heads {n}" for n in ("1", "2", "4", "16", "32")},
        "mixer": {
            "A alone": "--projections none",
            "value": "--projections value",
            "gate": "--projections gate",
            "value and out": "--projections value+out",
            "value, gate and out": "--projections value+gate+out",
            "value, key, gate and out": "--projections value+key+gate+out",
            "value and gate, as many parameters as A alone": "--encoder-ffn-embed-dim 128 "
            "--decoder-ffn-embed-dim 128",
            "gated encoder": "--gated-sides encoder",
            "gated decoder": "--gated-sides decoder",
            "pooling alone": "--matrix pooling --projections none",
            "shift alone": "--matrix shift --projections none",
            "AdaFC alone": "--matrix adafc --mixing-init-std 0.1 --projections none",
            "gMLP": "--mixer-kind gmlp --mixing-init-std 1e-6",
            "MLP over positions": "--mixer-kind mlp --mixing-heads 4",
            "MLP over positions, free": "--mixer-kind mlp --mixing-heads 4 --matrix free",
        },
        "gate": {
            "sigmoid": "--gate sigmoid",
            "silu": "--gate silu",
            "linear, on the input": "--gate-on input",
            "silu, on the input": "--gate-on input --gate silu",
            "linear, from 1": "--gate-bias 1",
        },
        "matrix": {
            "free": "--matrix free",
            "free without bias": "--matrix no-bias",
            "free and toeplitz": "--matrix both",
            "low rank": "--matrix low-rank",
            "softmax, value and out": "--matrix softmax --projections value+out",
            "softmax, value, gate": "--matrix softmax",
            "pooling": "--matrix pooling",
            "shift": "--matrix shift",
            "AdaFC": "--matrix adafc --mixing-init-std 0.1",
            "AdaFC, rows normalised again": "--matrix adafc-normalised --mixing-init-std 0.1",
        },
        "dropout of A": {"0.1": "--matrix-dropout 0.1"},
        "start of A": {
            "std 0.02": "--mixing-init-std 0.02",
            "std 0.2": "--mixing-init-std 0.2",
            "zero": "--matrix-init zero",
            "identity": "--matrix-init identity",
            "local": "--matrix-init local",
            "average": "--matrix-init average",
        },
        "LayerScale": {
            "0.1": "--layer-scale-init 0.1",
            "0.2": "--layer-scale-init 0.2",
        },
        "positions": {"sinusoids": "--add-positions"},
        "embedding scale": {"1": "--no-scale-embedding"},
        "optimiser": {"adagrad 0.2": _ADAGRAD},
        "shape": {
            "6 + 2 layers": "--encoder-layers 6 --decoder-layers 2",
            "8 + 1 layers": "--encoder-layers 8 --decoder-layers 1",
            "2 + 2 layers, 176 channels": "--encoder-layers 2 --decoder-layers 2 "
            "--encoder-embed-dim 176 --decoder-embed-dim 176 --encoder-ffn-embed-dim 352 "
            "--decoder-ffn-embed-dim 352",
        },
    },
}
