from argparse import Namespace
from dataclasses import fields

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY, build_model
from fairseq.tasks import setup_task
from omegaconf import DictConfig, open_dict

from resmlp_mt.models.image_classification import ResMLPImageConfig
from resmlp_mt.models.presets import IMAGE_PRESETS, IMAGENET, PRESETS, register_presets
from resmlp_mt.models.translation import ResMLPConfig, ResMLPModel

# hydra has much to say about how fairseq calls it.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
every_preset = pytest.mark.parametrize("preset", PRESETS)

# Section 3.6 of arXiv 2105.03404.
PAPER = dict(
    encoder_embed_dim=512,
    decoder_embed_dim=512,
    encoder_ffn_embed_dim=2048,
    decoder_ffn_embed_dim=2048,
    layer_scale_init=0.2,
    token_mixer="linear",
    mixing_heads=1,
    norm="affine",
)


def parse(preset: str, *flags) -> Namespace:
    """A command line as fairseq-train parses it."""
    parser = options.get_training_parser()
    line = ["data-bin", "--arch", preset, *map(str, flags)]
    return options.parse_args_and_arch(parser, line)


def configure(preset: str, *flags) -> DictConfig:
    return convert_namespace_to_omegaconf(parse(preset, *flags)).model


@every_preset
def test_a_preset_is_an_architecture_of_the_model_and_states_flags_that_exist(preset):
    assert ARCH_MODEL_REGISTRY[preset] is ResMLPModel
    assert PRESETS[preset].keys() <= {field.name for field in fields(ResMLPConfig)}


@every_preset
def test_a_preset_fills_in_what_the_command_line_left_open(preset):
    args = parse(preset)
    defaults = {f.name: f.default for f in fields(ResMLPConfig) if "${" not in str(f.default)}
    expected = defaults | PRESETS[preset]
    assert {name: getattr(args, name) for name in expected} == expected


@every_preset
def test_the_command_line_overrides_a_preset(preset):
    given = [
        "--dropout",
        0.33,
        "--encoder-layers",
        7,
        "--token-mixer",
        "toeplitz",
        "--norm",
        "layer",
    ]
    expected = dict(dropout=0.33, encoder_layers=7, token_mixer="toeplitz", norm="layer")
    args = parse(preset, *given)
    expected = PRESETS[preset] | expected
    assert {name: getattr(args, name) for name in expected} == expected


@pytest.mark.parametrize("layers, prefix", [(6, "resmlp_wmt"), (12, "resmlp_12_wmt")])
@pytest.mark.parametrize("dropout, pair", [(0.15, "en_de"), (0.1, "en_fr")])
def test_the_presets_named_for_the_paper_have_its_values(layers, prefix, dropout, pair):
    config = configure(f"{prefix}_{pair}")
    expected = PAPER | dict(encoder_layers=layers, decoder_layers=layers, dropout=dropout)
    assert {name: config[name] for name in expected} == expected


def count_by_hand(layers: int, vocabulary: int, positions: int) -> int:
    """Parameters of the paper's model: d = 512, hidden 2048, one A with a bias, all sharing."""
    d, hidden = 512, 2048
    affine, scale = d + d, d
    matrix = positions * positions + positions
    mlp = (d * hidden + hidden) + (hidden * d + d)
    attention = 4 * (d * d + d)
    encoder_block = 2 * (affine + scale) + matrix + mlp
    decoder_block = 3 * (affine + scale) + matrix + attention + mlp
    return vocabulary * d + layers * (encoder_block + decoder_block) + 2 * affine


@pytest.mark.parametrize(
    "preset, layers, quoted, millions",
    [
        ("resmlp_wmt_en_de", 6, 49_115_136, "49.1"),
        ("resmlp_12_wmt_en_de", 12, 81_451_008, "81.5"),
    ],
)
def test_the_presets_named_for_the_paper_have_the_parameters_of_its_equations(
    preset, layers, quoted, millions, dictionary
):
    lengths = ["--max-source-positions", 256, "--max-target-positions", 256]
    config = configure(preset, "--share-all-embeddings", *lengths)
    joined = dictionary(32768)
    task = Namespace(source_dictionary=joined, target_dictionary=joined, cfg=Namespace())
    with torch.device("meta"):  # shapes without memory
        model = build_model(config, task)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == count_by_hand(layers, 32768, 256) == quoted
    assert f"{count / 1e6:.1f}" == millions


def test_lengths_come_from_the_task():
    config = configure("resmlp_tiny", "--max-source-positions", 99, "--max-target-positions", 88)
    assert (config.max_source_positions, config.max_target_positions) == (99, 88)


@every_preset
def test_a_configuration_older_than_a_flag_still_builds_its_model(preset, task):
    small = ["--max-source-positions", 11, "--max-target-positions", 9, "--encoder-layers", 1]
    config = configure(preset, *small)
    models = []
    for missing in ((), ("norm", "mixing_heads", "no_scale_embedding")):
        with open_dict(config), torch.device("meta"):
            for name in missing:
                del config[name]
            models.append(build_model(config, task()))
    new, old = models
    shapes = {name: weight.shape for name, weight in new.state_dict().items()}
    assert {name: weight.shape for name, weight in old.state_dict().items()} == shapes
    assert old.encoder.embed.scale == new.encoder.embed.scale


def test_what_images_are_like_is_the_presets_to_say_unless_the_command_line_does():
    other = dict(mean=[0.5, 0.5, 0.5], std=[0.4, 0.4, 0.4], crop_pct=0.8, interpolation="bilinear")
    other["image_size"] = 48
    preset = {"resmlp_of_other_images": dict(layers=2) | other}
    assert all(IMAGENET.keys() <= preset.keys() for preset in IMAGE_PRESETS.values())
    register_presets("resmlp_image", ResMLPImageConfig, preset)

    def configure(arch, *flags):
        line = ["images", "--task", "image_classification", "--arch", arch, *flags]
        parser = options.get_training_parser()
        return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, line))

    for arch, flags, expected in (
        ("resmlp_of_other_images", [], other),
        ("resmlp_of_other_images", ["--crop-pct", "1.0"], other | dict(crop_pct=1.0)),
        ("resmlp_of_other_images", ["--image-size", "96"], other | dict(image_size=96)),
        ("resmlp_s12", [], IMAGENET),
        ("mixer_b16", [], dict(image_size=224)),
        ("resmlp_s12", ["--mean", "0,0.5,1"], IMAGENET | dict(mean=[0.0, 0.5, 1.0])),
    ):
        # What a checkpoint keeps, and what the task makes of it.
        cfg = configure(arch, *flags)
        assert {name: cfg.task[name] for name in expected} == expected
        own = setup_task(cfg.task).cfg
        assert {name: own[name] for name in expected} == expected
        assert cfg.model.layers == (2 if "other" in arch else 12)
    assert configure("resmlp_cifar").task.image_size == 32
    # An architecture that says nothing, as a stranger's, has ImageNet's.
    own = setup_task(configure("resmlp_image").task).cfg
    assert {name: own[name] for name in IMAGENET} == IMAGENET
