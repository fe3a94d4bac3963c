"""Models of images whose grid becomes coarser from stage to stage, while their channels grow."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, List  # noqa: UP035  (fairseq knows lists by this name)

from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.images import BlocksConfig, ImageModel, build_drops, check_least
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.patches import Step, init_pointwise
from resmlp_mt.nn.stages import Stage


@dataclass
class PyramidConfig(BlocksConfig):
    """The flags that all these models have; image size and classes are the task's."""

    layers: List[int] = field(  # noqa: UP006
        default_factory=lambda: [2, 2, 6, 2], metadata={"help": "blocks of each stage, as 2,2,6,2"}
    )
    embed_dim: List[int] = field(  # noqa: UP006
        default_factory=lambda: [64, 128, 320, 512], metadata={"help": "channels C of each stage"}
    )
    stem_stride: int = field(
        default=4,
        metadata={
            "help": "pixels a side for a position of the first stage: 4, or for small images 2 or 1"
        },
    )


class PyramidModel(ImageModel):
    """Images -> the task's head. A family is a subclass that builds its blocks.

    Args:
        cfg: The flags.
        in_chans: Channels of the images.
        image_size: Side of the images, in pixels.
        head: Maps (B, C) to the output, C being those of the last stage.

    Raises:
        UserError: If the image is too small for its stages, or a size is impossible.
    """

    # By --stem-stride: what brings pixels to the first grid, one after the other.
    STEMS: ClassVar[dict[int, tuple[Step, ...]]] = {
        4: (Step(7, 4, 2),),
        2: (Step(3, 2, 1),),
        1: (Step(3, 1, 1),),
    }
    # The step from a stage to the grid of the next one.
    BETWEEN: ClassVar[Step] = Step(3, 2, 1)

    def __init__(self, cfg: PyramidConfig, in_chans: int, image_size: int, head: nn.Module):
        self.check(cfg)
        stem = self.build_stem(cfg, in_chans)
        drops = iter(build_drops(cfg, sum(cfg.layers)))
        stages = [
            Stage(
                grid,
                self.build_downsample(cfg, i) if i else nn.Identity(),
                self.build_blocks(cfg, i, grid, list(islice(drops, cfg.layers[i]))),
                self.build_shared(cfg, i, grid),
                cfg.checkpoint_activations,
            )
            for i, grid in enumerate(self.list_grids(cfg, image_size))
        ]
        pool = self.build_pool(cfg)
        for part in (stem, *stages, pool):
            part.apply(self.init_part)
        super().__init__(image_size, stem, stages, pool, head)

    @classmethod
    def build_model(cls, cfg: PyramidConfig, task) -> "PyramidModel":
        """Build the model for the task's images, with the head that the task asks for."""
        return cls(cfg, task.in_chans, task.image_size, task.build_head(cfg.embed_dim[-1]))

    @classmethod
    def check(cls, cfg: PyramidConfig) -> None:
        """Refuse flags that mean nothing.

        Raises:
            UserError: Naming the flag.
        """
        check_least(cfg, layers=1, embed_dim=1)
        if len(cfg.layers) != len(cfg.embed_dim):
            raise UserError(
                f"--layers {_join(cfg.layers)} and --embed-dim {_join(cfg.embed_dim)}: give one of "
                "each for every stage"
            )
        if cfg.stem_stride not in cls.STEMS:
            raise UserError(f"--stem-stride {cfg.stem_stride}: it is one of {_join(cls.STEMS)}")

    @classmethod
    def list_grids(cls, cfg: PyramidConfig, image_size: int) -> Iterator[Grid]:
        """The grid of each stage.

        Raises:
            UserError: If the image has no pixels for one.
        """
        side = image_size
        for step in cls.STEMS[cfg.stem_stride]:
            side = step.count(side)
        for stage in range(len(cfg.layers)):
            if stage:
                side = cls.BETWEEN.count(side)
            if side < 1:
                raise UserError(
                    f"an image of {image_size} x {image_size} pixels is too small for a stem of "
                    f"stride {cfg.stem_stride}: choose a larger --image-size, or --stem-stride 1"
                )
            yield side, side

    @classmethod
    def build_stem(cls, cfg: PyramidConfig, in_chans: int) -> nn.Module:
        """The map from images to the features of the first stage."""
        (step,) = cls.STEMS[cfg.stem_stride]
        return step.build(in_chans, cfg.embed_dim[0])

    @classmethod
    def build_downsample(cls, cfg: PyramidConfig, stage: int) -> nn.Module:
        """The map from the features of the stage before to this one's grid and channels."""
        return cls.BETWEEN.build(cfg.embed_dim[stage - 1], cfg.embed_dim[stage])

    @classmethod
    def build_blocks(
        cls, cfg: PyramidConfig, stage: int, grid: Grid, drops: list[nn.Module]
    ) -> list[nn.Module]:
        """The blocks of a stage.

        Args:
            cfg: The flags.
            stage: Counted from 0.
            grid: Its rows and columns.
            drops: The dropout of the residual lines, for each block.
        """
        raise NotImplementedError

    @classmethod
    def build_shared(cls, cfg: PyramidConfig, stage: int, grid: Grid) -> nn.Module | None:
        """The weights that the blocks of a stage share, as `Stage` takes them."""
        return None

    @classmethod
    def build_pool(cls, cfg: PyramidConfig) -> nn.Module:
        """The map from the features of the last stage to (B, C)."""
        raise NotImplementedError

    @staticmethod
    def init_part(part: nn.Module) -> None:
        """Initialise a layer; the head is the task's to initialise."""
        init_pointwise(part)


@dataclass
class RatioConfig(PyramidConfig):
    """The flags of those whose blocks have an MLP over channels."""

    mlp_ratio: List[int] = field(  # noqa: UP006
        default_factory=lambda: [4],
        metadata={"help": "hidden channels of the channel MLP, in C; one, or one for each stage"},
    )


class RatioModel(PyramidModel):
    """A pyramid whose blocks have an MLP over channels."""

    @classmethod
    def check(cls, cfg: RatioConfig) -> None:
        """As `PyramidModel`."""
        super().check(cfg)
        check_least(cfg, mlp_ratio=1, layer_scale_init=0)
        if len(cfg.mlp_ratio) not in (1, len(cfg.layers)):
            raise UserError(
                f"--mlp-ratio {_join(cfg.mlp_ratio)}: give one for all stages, or one for each"
            )

    @classmethod
    def hidden_dim(cls, cfg: RatioConfig, stage: int) -> int:
        """The hidden channels of a stage."""
        return cfg.embed_dim[stage] * cfg.mlp_ratio[stage if len(cfg.mlp_ratio) > 1 else 0]


def _join(values) -> str:
    return ",".join(map(str, values))
