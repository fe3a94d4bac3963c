"""Named sizes for `--arch`, each a difference from the model's own defaults."""

import copy
from dataclasses import MISSING, Field, field, fields, make_dataclass

from fairseq.models import (
    ARCH_MODEL_NAME_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    register_model_architecture,
)
from hydra.core.config_store import ConfigStore

# Dropout and LayerScale of the paper's section 3.6; "6" and "12" count encoder and decoder layers
# each. docs/open-questions.md has what the paper leaves open.
_WMT_EN_DE = dict(dropout=0.15)
_WMT_EN_FR = dict(dropout=0.1)
_TWELVE = dict(encoder_layers=12, decoder_layers=12)
_IWSLT = dict(
    encoder_ffn_embed_dim=1024,
    decoder_ffn_embed_dim=1024,
    decoder_attention_heads=4,
)
_TINY = dict(
    encoder_embed_dim=128,
    decoder_embed_dim=128,
    encoder_ffn_embed_dim=256,
    decoder_ffn_embed_dim=256,
    encoder_layers=4,
    decoder_layers=4,
    decoder_attention_heads=4,
)
# For models that ship. A decoder of few layers translates faster.
_SMALL = dict(
    encoder_embed_dim=256,
    decoder_embed_dim=256,
    encoder_ffn_embed_dim=1024,
    decoder_ffn_embed_dim=1024,
    encoder_layers=6,
    decoder_layers=3,
    decoder_attention_heads=4,
)
# For students of slower teachers, as others have them (github.com/browsermt/students): most of the
# layers are in the encoder, which runs once for a sentence.
_STUDENT = dict(encoder_layers=6, decoder_layers=2)
# Not the paper's: what trained better where it was tried (examples/multi30k/results.csv).
_PLUS = dict(
    token_mixer="gated-toeplitz",
    mixing_heads=8,
    mixing_init_std=0.05,
    norm="layer",
    layer_scale_init=1.0,
    no_token_positional_embeddings=True,
)

PRESETS = {
    "resmlp_wmt_en_de": _WMT_EN_DE,
    "resmlp_wmt_en_fr": _WMT_EN_FR,
    "resmlp_12_wmt_en_de": _WMT_EN_DE | _TWELVE,
    "resmlp_12_wmt_en_fr": _WMT_EN_FR | _TWELVE,
    "resmlp_iwslt_de_en": _IWSLT,
    "resmlp_tiny": _TINY,
    "resmlp_plus_wmt_en_de": _PLUS,
    "resmlp_plus_iwslt_de_en": _IWSLT | _PLUS,
    "resmlp_plus_tiny": _TINY | _PLUS,
    "resmlp_plus_small": _SMALL | _PLUS,
    "resmlp_plus_student_tiny": _TINY | _STUDENT | _PLUS,
    "resmlp_plus_student_small": _SMALL | _STUDENT | _PLUS,
}

# Size, normalisation and crop of the images of a preset in evaluation, by flags of the same names.
# The paper's are those of ImageNet.
IMAGENET = dict(
    image_size=224,
    mean=[0.485, 0.456, 0.406],
    std=[0.229, 0.224, 0.225],
    crop_pct=0.9,
    interpolation="bicubic",
)
# B24's LayerScale is that of the released code, where depth alone would say 1e-5.
_BIG = IMAGENET | dict(embed_dim=768, layers=24, layer_scale_init=1e-6)

RESMLP_PRESETS = {
    "resmlp_s12": IMAGENET,
    "resmlp_s12_14": IMAGENET | dict(patch_size=14),
    "resmlp_s12_8": IMAGENET | dict(patch_size=8),
    "resmlp_s24": IMAGENET | dict(layers=24),
    "resmlp_s36": IMAGENET | dict(layers=36),
    "resmlp_b24": _BIG,
    "resmlp_b24_8": _BIG | dict(patch_size=8),
    "resmlp_cifar": IMAGENET
    | dict(image_size=32, patch_size=4, embed_dim=128, layers=8, drop_path=0.0),
}

# MLP-Mixer, table 1 of arXiv 2105.01601. Its images were scaled to [-1, 1].
_SCALED = IMAGENET | dict(mean=[0.5] * 3, std=[0.5] * 3, crop_pct=0.875)
_MIXER_S, _MIXER_B, _MIXER_L, _MIXER_H = (
    _SCALED | dict(layers=layers, embed_dim=dim)
    for layers, dim in ((8, 512), (12, 768), (24, 1024), (32, 1280))
)

MIXER_PRESETS = {
    "mixer_s32": _MIXER_S | dict(patch_size=32),
    "mixer_s16": _MIXER_S,
    "mixer_b32": _MIXER_B | dict(patch_size=32),
    "mixer_b16": _MIXER_B,
    "mixer_l32": _MIXER_L | dict(patch_size=32),
    "mixer_l16": _MIXER_L,
    "mixer_h14": _MIXER_H | dict(patch_size=14),
    # timm's own, with gated MLPs.
    "gmixer_24": IMAGENET
    | dict(crop_pct=0.875, layers=24, token_ffn_embed_dim=384, gated_mlp=True),
}

# gMLP, table 1 of arXiv 2105.08050.
_GMLP = _SCALED | dict(layers=30)

GMLP_PRESETS = {
    "gmlp_ti16": _GMLP | dict(embed_dim=128),
    "gmlp_s16": _GMLP | dict(embed_dim=256),
    "gmlp_b16": _GMLP | dict(embed_dim=512),
}

# S2-MLP, arXiv 2106.07477; it was trained with DeiT's settings.
_S2MLP = IMAGENET | dict(crop_pct=0.875)

S2MLP_PRESETS = {
    "s2mlp_wide": _S2MLP | dict(layers=12, embed_dim=768),
    "s2mlp_deep": _S2MLP | dict(layers=36, embed_dim=384),
}

# PoolFormer, tables 1 and 2 of arXiv 2111.11418; stochastic depth as in its code.
_POOLFORMER = IMAGENET | dict(drop_path_schedule="linear")
_POOLFORMER_M = _POOLFORMER | dict(crop_pct=0.95, embed_dim=[96, 192, 384, 768])

POOLFORMER_PRESETS = {
    "poolformer_s12": _POOLFORMER,
    "poolformer_s24": _POOLFORMER | dict(layers=[4, 4, 12, 4]),
    "poolformer_s36": _POOLFORMER
    | dict(layers=[6, 6, 18, 6], layer_scale_init=1e-6, drop_path=0.2),
    "poolformer_m36": _POOLFORMER_M
    | dict(layers=[6, 6, 18, 6], layer_scale_init=1e-6, drop_path=0.3),
    "poolformer_m48": _POOLFORMER_M
    | dict(layers=[8, 8, 24, 8], layer_scale_init=1e-6, drop_path=0.4),
}

# AdaFC (Asakura, Uto and Shinoda, JSAI 2022), section 3: PoolFormer but for its token mixer. The
# last is its "Model-Init".
_ADAFC = _POOLFORMER | dict(token_mixer="adafc")

ADAFC_PRESETS = {
    "adafc_s": _ADAFC | dict(layers=[2, 2, 2, 2]),
    "adafc_m": _ADAFC,
    "adafc_l": _ADAFC | dict(layers=[4, 4, 12, 4]),
    "adafc_m_init": _ADAFC | dict(freeze_mixing=True),
}

# CycleMLP, table 1 of arXiv 2107.10224; crops as in its code.
_CYCLEMLP = IMAGENET | dict(drop_path_schedule="linear")
_CYCLEMLP_L = _CYCLEMLP | dict(crop_pct=0.875)

CYCLEMLP_PRESETS = {
    "cyclemlp_b1": _CYCLEMLP | dict(layers=[2, 2, 4, 2]),
    "cyclemlp_b2": _CYCLEMLP | dict(layers=[2, 3, 10, 3]),
    "cyclemlp_b3": _CYCLEMLP | dict(layers=[3, 4, 18, 3], mlp_ratio=[8, 8, 4, 4]),
    "cyclemlp_b4": _CYCLEMLP_L | dict(layers=[3, 8, 27, 3], mlp_ratio=[8, 8, 4, 4]),
    "cyclemlp_b5": _CYCLEMLP_L | dict(layers=[3, 4, 24, 3], embed_dim=[96, 192, 384, 768]),
}

# BiT, section 3.1 of arXiv 1912.11370: depths, and how many times as wide.
_BIT = _SCALED | dict(crop_pct=1.0, interpolation="bilinear", drop_path=0.0)
_RESNET_WIDTHS = (256, 512, 1024, 2048)

BIT_PRESETS = {
    f"bit_r{depth}x{factor}": _BIT
    | dict(layers=layers, embed_dim=[factor * width for width in _RESNET_WIDTHS])
    for depth, layers, factors in (
        (50, [3, 4, 6, 3], (1, 3)),
        (101, [3, 4, 23, 3], (1, 3)),
        (152, [3, 8, 36, 3], (2, 4)),
    )
    for factor in factors
}

IMAGE_PRESETS = {
    **RESMLP_PRESETS,
    **MIXER_PRESETS,
    **GMLP_PRESETS,
    **S2MLP_PRESETS,
    **POOLFORMER_PRESETS,
    **ADAFC_PRESETS,
    **CYCLEMLP_PRESETS,
    **BIT_PRESETS,
}


def register_presets(model_name: str, config_class: type, presets: dict[str, dict]) -> None:
    """Register each preset as an architecture of the model, for the command line and for hydra.

    A preset fills in what was left open, and so do the plain defaults. Other names
    are flags of the task.
    """
    defaults = {f.name: default_of(f) for f in fields(config_class)}
    defaults = {name: value for name, value in defaults.items() if not _is_reference(value)}
    for name, preset in presets.items():
        register_model_architecture(model_name, name)(_filler({**defaults, **preset}))
        # Under hydra, and for a checkpoint older than a flag, fairseq asks no architecture but
        # takes the defaults of the dataclass that is registered for the name.
        node = make_dataclass(
            name,
            [(f.name, f.type, _with_default(f, preset)) for f in fields(config_class)],
            bases=(config_class,),
        )
        ARCH_MODEL_NAME_REGISTRY[name] = name
        MODEL_DATACLASS_REGISTRY[name] = node
        ConfigStore.instance().store(name=name, group="model", node=node(_name=name))


def default_of(flag: Field):
    """The default of a flag."""
    return flag.default if flag.default_factory is MISSING else flag.default_factory()


def _with_default(flag: Field, preset: dict) -> Field:
    value = preset.get(flag.name, default_of(flag))
    if isinstance(value, list):
        return field(default_factory=lambda: copy.copy(value), metadata=flag.metadata)
    return field(default=value, metadata=flag.metadata)


def _is_reference(default) -> bool:
    return str(default).startswith("${")  # II("task...") and the like: fairseq resolves them


def _filler(values: dict):
    def fill(args):
        for name, value in values.items():
            if getattr(args, name, None) is None:
                setattr(args, name, value)

    return fill
