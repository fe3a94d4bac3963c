"""BiT (arXiv 1912.11370) as a fairseq model: ResNet-v2, GroupNorm and weight standardisation."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import ClassVar, List  # noqa: UP035  (fairseq knows lists by this name)

from fairseq.models import register_model
from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.presets import BIT_PRESETS, register_presets
from resmlp_mt.models.pyramid import PyramidConfig, PyramidModel
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.patches import Step
from resmlp_mt.nn.pooling import MapPooling
from resmlp_mt.nn.standardised import PaddedMaxPool, PreActivationBlock, StandardisedConv

_GROUPS = 32


@dataclass
class BiTConfig(PyramidConfig):
    """The flags of BiT."""

    layers: List[int] = field(  # noqa: UP006
        default_factory=lambda: [3, 4, 6, 3], metadata={"help": "blocks of each stage, as 3,4,6,3"}
    )
    embed_dim: List[int] = field(  # noqa: UP006
        default_factory=lambda: [256, 512, 1024, 2048],
        metadata={"help": "channels C of each stage, multiples of 128; a quarter in a block"},
    )


class BiTModel(PyramidModel):
    """A ResNet-v2 of bottlenecks. Arguments as for `PyramidModel`.

    Features are (B, C, rows, columns). The first block of a stage brings them to its grid.
    """

    STEMS: ClassVar = PyramidModel.STEMS | {4: (Step(7, 2, 3), Step(3, 2, 1))}

    def __init__(self, cfg: BiTConfig, in_chans: int, image_size: int, head: nn.Module):
        super().__init__(cfg, in_chans, image_size, head)
        if isinstance(head, nn.Linear):  # of classification
            nn.init.zeros_(head.weight)

    @classmethod
    def check(cls, cfg: BiTConfig) -> None:
        """As `PyramidModel`."""
        super().check(cfg)
        for dim in cfg.embed_dim:
            if dim % (4 * _GROUPS):
                raise UserError(
                    f"--embed-dim must be multiples of {4 * _GROUPS}: a quarter of the channels "
                    f"has {_GROUPS} groups; not {dim}"
                )

    @classmethod
    def build_norm(cls, dim: int) -> nn.Module:
        """GroupNorm."""
        return nn.GroupNorm(_GROUPS, dim)

    @classmethod
    def build_convolution(cls, in_dim: int, dim: int, step: Step) -> nn.Module:
        """One with weight standardisation."""
        return StandardisedConv(in_dim, dim, *step)

    @classmethod
    def build_stem(cls, cfg: BiTConfig, in_chans: int) -> nn.Module:
        """A convolution; where the stride is 4, a maximum after it."""
        step, *pools = cls.STEMS[cfg.stem_stride]
        conv = cls.build_convolution(in_chans, cfg.embed_dim[0] // 4, step)
        pool = PaddedMaxPool() if pools else nn.Identity()
        return nn.Sequential(OrderedDict(conv=conv, pool=pool))

    @classmethod
    def build_downsample(cls, cfg: BiTConfig, stage: int) -> nn.Module:
        """Nothing: the first block does it."""
        return nn.Identity()

    @classmethod
    def build_blocks(
        cls, cfg: BiTConfig, stage: int, grid: Grid, drops: list[nn.Module]
    ) -> list[nn.Module]:
        """The first block has a stride, but in the first stage, and a shortcut that follows."""
        dim = cfg.embed_dim[stage]
        before = cfg.embed_dim[stage - 1] if stage else dim // 4
        first = cls._build_block(before, dim, 2 if stage else 1, drops[0])
        return [first, *(cls._build_block(dim, dim, 1, drop) for drop in drops[1:])]

    @classmethod
    def _build_block(cls, before: int, dim: int, stride: int, drop: nn.Module) -> nn.Module:
        inner, point = dim // 4, Step(1, 1, 0)
        changes = before != dim or stride > 1
        return PreActivationBlock(
            norm_1=cls.build_norm(before),
            conv_1=cls.build_convolution(before, inner, point),
            norm_2=cls.build_norm(inner),
            conv_2=cls.build_convolution(inner, inner, Step(3, stride, 1)),
            norm_3=cls.build_norm(inner),
            conv_3=cls.build_convolution(inner, dim, point),
            shortcut=cls.build_convolution(before, dim, Step(1, stride, 0)) if changes else None,
            drop=drop,
        )

    @classmethod
    def build_pool(cls, cfg: BiTConfig) -> nn.Module:
        """The mean of what is normalised and above 0."""
        parts = dict(norm=cls.build_norm(cfg.embed_dim[-1]), activate=nn.ReLU())
        return nn.Sequential(OrderedDict(**parts, mean=MapPooling(nn.Identity())))

    @staticmethod
    def init_part(part: nn.Module) -> None:
        """Initialise a convolution as He et al. do (arXiv 1502.01852)."""
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")


register_model("bit", dataclass=BiTConfig)(BiTModel)
register_presets("bit", BiTConfig, BIT_PRESETS)
