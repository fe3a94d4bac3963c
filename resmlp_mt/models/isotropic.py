"""Models of images that keep one grid: patches, blocks of one kind, pooling and a head."""

from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.images import ImageModel
from resmlp_mt.nn.blocks import DropPath
from resmlp_mt.nn.dropout import Dropout
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.patches import PatchEmbedding, init_linear
from resmlp_mt.nn.pooling import AveragePooling
from resmlp_mt.nn.stages import Stage


@dataclass
class IsotropicConfig(FairseqDataclass):
    """The flags that all these models have; image size and classes are the task's."""

    patch_size: int = field(default=16, metadata={"help": "side of a patch in pixels"})
    embed_dim: int = field(default=384, metadata={"help": "channels C"})
    layers: int = field(default=12, metadata={"help": "blocks"})
    drop_path: float = field(default=0.1, metadata={"help": "rate of stochastic depth"})
    drop_path_schedule: ChoiceEnum(["constant", "linear"]) = field(
        default="constant",
        metadata={"help": "the same rate for all blocks, or from 0 in the first to it in the last"},
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout on sublayers"})


class IsotropicModel(ImageModel):
    """Images -> the task's head. A family is a subclass that builds its norm and its block.

    Args:
        cfg: The flags.
        in_chans: Channels of the images.
        image_size: Side of the images, in pixels.
        head: Maps (B, C) to the output.

    Raises:
        UserError: If the patches do not divide the image, or a size is impossible.
    """

    def __init__(self, cfg: IsotropicConfig, in_chans: int, image_size: int, head: nn.Module):
        _check(cfg, image_size)
        side = image_size // cfg.patch_size
        grid = (side, side)
        stem = self.build_stem(cfg, in_chans)
        blocks = (self.build_block(cfg, grid, drop) for drop in _build_drops(cfg))
        stage = Stage(grid, nn.Identity(), blocks)
        pool = self.build_pool(cfg, grid)
        for part in (stem, stage, pool):
            part.apply(self.init_part)
        super().__init__(image_size, stem, [stage], pool, head)

    @classmethod
    def build_model(cls, cfg: IsotropicConfig, task) -> "IsotropicModel":
        """Build the model for the task's images, with the head that the task asks for."""
        return cls(cfg, task.in_chans, task.image_size, task.build_head(cfg.embed_dim))

    @classmethod
    def build_norm(cls, cfg: IsotropicConfig) -> nn.Module:
        """The norm before every sublayer and the head."""
        raise NotImplementedError

    @classmethod
    def build_block(cls, cfg: IsotropicConfig, grid: Grid, drop: nn.Module) -> nn.Module:
        """A block on (B, N, C).

        Args:
            cfg: The flags.
            grid: Rows and columns of the N patches.
            drop: What its residual lines leave out in training.
        """
        raise NotImplementedError

    @classmethod
    def build_stem(cls, cfg: IsotropicConfig, in_chans: int) -> nn.Module:
        """What maps images to (B, N, C)."""
        return PatchEmbedding(in_chans, cfg.embed_dim, cfg.patch_size)

    @classmethod
    def build_pool(cls, cfg: IsotropicConfig, grid: Grid) -> nn.Module:
        """What maps (B, N, C) to (B, C)."""
        return AveragePooling(cls.build_norm(cfg))

    @staticmethod
    def init_part(part: nn.Module) -> None:
        """Initialise a layer; the head is the task's to initialise."""
        init_linear(part)


def _build_drops(cfg: IsotropicConfig) -> list[nn.Module]:
    """What each block leaves out in training."""
    last = max(cfg.layers - 1, 1)
    shares = [i / last if cfg.drop_path_schedule == "linear" else 1 for i in range(cfg.layers)]
    return [
        nn.Sequential(Dropout(cfg.dropout), DropPath(cfg.drop_path * share)) for share in shares
    ]


def _check(cfg: IsotropicConfig, image_size: int) -> None:
    least = dict(patch_size=1, embed_dim=1, layers=1, ffn_embed_dim=0, token_ffn_embed_dim=0)
    least |= dict(layer_scale_init=0)
    for name, smallest in least.items():
        if (value := getattr(cfg, name, smallest)) < smallest:
            raise UserError(f"--{name.replace('_', '-')} must be at least {smallest}, not {value}")
    if image_size % cfg.patch_size or image_size < cfg.patch_size:
        raise UserError(
            f"an image of {image_size} x {image_size} pixels cannot be cut into patches of "
            f"{cfg.patch_size} x {cfg.patch_size}: choose --image-size as a multiple of "
            "--patch-size"
        )
    if not 0 <= cfg.dropout <= 1:
        raise UserError(f"--dropout is a probability, not {cfg.dropout}")
