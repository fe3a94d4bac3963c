"""Models of images that keep one grid: patches, blocks of one kind, pooling and a head."""

from dataclasses import dataclass, field

from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.images import BlocksConfig, ImageModel, build_drops, check_least
from resmlp_mt.nn.grids import Grid
from resmlp_mt.nn.patches import PatchEmbedding, init_linear
from resmlp_mt.nn.pooling import AveragePooling
from resmlp_mt.nn.stages import Stage


@dataclass
class IsotropicConfig(BlocksConfig):
    """The flags that all these models have; image size and classes are the task's."""

    patch_size: int = field(default=16, metadata={"help": "side of a patch in pixels"})
    embed_dim: int = field(default=384, metadata={"help": "channels C"})
    layers: int = field(default=12, metadata={"help": "blocks"})


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
        blocks = (self.build_block(cfg, grid, drop) for drop in build_drops(cfg, cfg.layers))
        stage = Stage(grid, nn.Identity(), blocks, recomputes=cfg.checkpoint_activations)
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
            drop: The dropout of its residual lines.
        """
        raise NotImplementedError

    @classmethod
    def build_stem(cls, cfg: IsotropicConfig, in_chans: int) -> nn.Module:
        """The map from images to (B, N, C)."""
        return PatchEmbedding(in_chans, cfg.embed_dim, cfg.patch_size)

    @classmethod
    def build_pool(cls, cfg: IsotropicConfig, grid: Grid) -> nn.Module:
        """The map from (B, N, C) to (B, C)."""
        return AveragePooling(cls.build_norm(cfg))

    @staticmethod
    def init_part(part: nn.Module) -> None:
        """Initialise a layer; the head is the task's to initialise."""
        init_linear(part)


def _check(cfg: IsotropicConfig, image_size: int) -> None:
    sizes = dict(patch_size=1, embed_dim=1, layers=1, ffn_embed_dim=0, token_ffn_embed_dim=0)
    check_least(cfg, **sizes, layer_scale_init=0)
    if image_size % cfg.patch_size or image_size < cfg.patch_size:
        raise UserError(
            f"an image of {image_size} x {image_size} pixels cannot be cut into patches of "
            f"{cfg.patch_size} x {cfg.patch_size}: choose --image-size as a multiple of "
            "--patch-size"
        )
