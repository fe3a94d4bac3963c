"""A fairseq plugin with what was tried: `--user-dir examples/ablation/variants`.

Every preset of the package exists here as PRESET_variant, the same model with further flags. It is
also an example of how to try a mixer of one's own without touching the package.
"""

from dataclasses import dataclass, field, fields
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.parts import SEQUENCE_NORMS, build_norm
from resmlp_mt.models.presets import PRESETS, register_presets
from resmlp_mt.models.translation import ResMLPConfig, ResMLPModel
from resmlp_mt.nn.mixers import LinearMixer

from .matrices import MATRICES, NORMALISED, DroppedMatrix, start_from
from .mixers import GATES, SoftmaxMixer, SpatialGateMixer, TokenMLP, VariantMixer

NORM = ChoiceEnum(list(SEQUENCE_NORMS))
# What only a mixer of projections and a gate has.
PROJECTED = ("projections", "gate", "gate_on", "gate_bias", "gated_sides")


@dataclass
class VariantConfig(ResMLPConfig):
    """The parts of a variant. Those left open are as --token-mixer and --norm say."""

    matrix: Optional[ChoiceEnum(list(MATRICES))] = field(  # noqa: UP045 (fairseq reads it)
        default=None, metadata={"help": "what A is"}
    )
    matrix_init: ChoiceEnum(["chance", "zero", "identity", "local", "average"]) = field(
        default="chance", metadata={"help": "what A starts from"}
    )
    matrix_dropout: float = field(
        default=0.0, metadata={"help": "probability to drop an entry of A in training"}
    )
    mixer_kind: ChoiceEnum(["projected", "gmlp", "mlp"]) = field(
        default="projected",
        metadata={
            "help": "what A stands in: projections and a gate, the gate of gMLP, or an MLP over "
            "positions, with --mixing-heads hidden units for each position"
        },
    )
    projections: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "of value, key, gate and out those that are there, as value+gate; or none"
        },
    )
    gate: ChoiceEnum(list(GATES)) = field(default="linear", metadata={"help": "of the gate"})
    gate_on: ChoiceEnum(["input", "output"]) = field(
        default="output", metadata={"help": "what is gated: A's input or output"}
    )
    gate_bias: float = field(default=0.0, metadata={"help": "that the gate starts with"})
    gated_sides: ChoiceEnum(["both", "encoder", "decoder"]) = field(
        default="both", metadata={"help": "where the gate and the value projection are"}
    )
    add_positions: bool = field(
        default=False, metadata={"help": "take --no-token-positional-embeddings back"}
    )
    encoder_norm: Optional[NORM] = field(default=None, metadata={"help": "in its blocks"})  # noqa: UP045
    decoder_norm: Optional[NORM] = field(default=None, metadata={"help": "in its blocks"})  # noqa: UP045
    cross_norm: Optional[NORM] = field(  # noqa: UP045
        default=None, metadata={"help": "before the attention to the source"}
    )
    output_norm: Optional[NORM] = field(  # noqa: UP045
        default=None, metadata={"help": "at the end of the encoder and of the decoder"}
    )
    output_scale: float = field(
        default=1.0, metadata={"help": "alpha that the decoder's last Aff starts with"}
    )


@register_model("resmlp_variant", dataclass=VariantConfig)
class ResMLPVariant(ResMLPModel):
    """The package's model with some of its parts exchanged."""

    @classmethod
    def build_model(cls, cfg: VariantConfig, task) -> "ResMLPVariant":
        """Build the package's model, then exchange."""
        cfg.no_token_positional_embeddings &= not cfg.add_positions
        model = super().build_model(cfg, task)
        for name, side in (("encoder", model.encoder), ("decoder", model.decoder)):
            dim = getattr(cfg, f"{name}_embed_dim")
            for block in side.blocks:
                block.mix_tokens = _build_mixer(cfg, dim, side.longest, name)
                if norm := getattr(cfg, f"{name}_norm"):
                    block.norm_1, block.norm_2 = (build_norm(str(norm), dim) for _ in range(2))
                if name == "decoder" and (norm := cfg.cross_norm or cfg.decoder_norm):
                    block.norm_c = build_norm(str(norm), dim)
            if cfg.output_norm:
                side.norm = build_norm(str(cfg.output_norm), dim)
        if cfg.output_scale != 1:
            nn.init.constant_(model.decoder.norm.alpha, cfg.output_scale)
        return model


def _build_mixer(cfg: VariantConfig, dim: int, positions: int, side: str) -> nn.Module:
    build = {"projected": _build_projected, "gmlp": _build_gmlp, "mlp": _build_mlp}
    mixer = build[str(cfg.mixer_kind)](cfg, dim, positions, side)
    for module in mixer.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    if gate := getattr(mixer, "gate", None):
        nn.init.constant_(gate[0].bias, cfg.gate_bias)
    return mixer


def _build_matrix(cfg: VariantConfig, positions: int, side: str) -> nn.Module:
    kind = MATRICES[_name_matrix(cfg)]
    matrix = kind(positions, cfg.mixing_heads, side == "decoder", cfg.mixing_init_std)
    if cfg.matrix_init != "chance":
        start_from(str(cfg.matrix_init), matrix)
    if cfg.matrix_dropout and _name_matrix(cfg) in NORMALISED:
        raise UserError(f"--matrix-dropout: rows of --matrix {cfg.matrix} sum to 1")
    return DroppedMatrix(matrix, cfg.matrix_dropout) if cfg.matrix_dropout else matrix


def _name_matrix(cfg: VariantConfig) -> str:
    return str(cfg.matrix or ("toeplitz" if "toeplitz" in str(cfg.token_mixer) else "free"))


def _build_mix(cfg: VariantConfig, positions: int, side: str) -> LinearMixer:
    matrix = _build_matrix(cfg, positions, side)
    return (SoftmaxMixer if _name_matrix(cfg) in NORMALISED else LinearMixer)(matrix)


def _build_projected(cfg: VariantConfig, dim: int, positions: int, side: str) -> VariantMixer:
    if "projected" in str(cfg.token_mixer):
        raise UserError(
            f"--token-mixer {cfg.token_mixer}: here that is --token-mixer gated-toeplitz --gate "
            "sigmoid --projections value+gate+out"
        )
    gated = "gated" in str(cfg.token_mixer) and cfg.gated_sides in ("both", side)
    there = {"value", "gate"} if gated else set()
    if cfg.projections is not None:
        there = set(cfg.projections.split("+")) - {"none"}
    if unknown := there - {"value", "key", "gate", "out"}:
        raise UserError(f"--projections: {', '.join(unknown)}? There are value, key, gate, out")
    return VariantMixer(
        dim,
        _build_mix(cfg, positions, side),
        value="value" in there,
        key="key" in there,
        gate=str(cfg.gate) if "gate" in there else None,
        gate_on=str(cfg.gate_on),
        project_out="out" in there,
    )


def _build_gmlp(cfg: VariantConfig, dim: int, positions: int, side: str) -> SpatialGateMixer:
    _refuse_projections(cfg)
    return SpatialGateMixer(dim, _build_mix(cfg, positions, side))


def _build_mlp(cfg: VariantConfig, dim: int, positions: int, side: str) -> TokenMLP:
    _refuse_projections(cfg)
    if _name_matrix(cfg) in NORMALISED:
        raise UserError(f"--mixer-kind mlp has no rows to normalise, as --matrix {cfg.matrix} asks")
    first, second = (_build_matrix(cfg, positions, side) for _ in range(2))
    return TokenMLP(first, second, cfg.mixing_heads)


def _refuse_projections(cfg: VariantConfig) -> None:
    for flag in fields(VariantConfig):
        if flag.name in PROJECTED and getattr(cfg, flag.name) != flag.default:
            name = flag.name.replace("_", "-")
            raise UserError(f"--mixer-kind {cfg.mixer_kind} has no --{name}: leave it out")


register_presets(
    "resmlp_variant", VariantConfig, {f"{name}_variant": PRESETS[name] for name in PRESETS}
)
