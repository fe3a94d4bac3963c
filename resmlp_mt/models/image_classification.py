"""ResMLP for images (arXiv 2105.03404, section 2) as a fairseq model on the shared blocks."""

from dataclasses import dataclass, field
from functools import partial

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import register_model
from torch import nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.images import ImageModel
from resmlp_mt.models.parts import GRID_MIXERS, SEQUENCE_NORMS, build_mixer, build_norm
from resmlp_mt.models.presets import IMAGE_PRESETS, register_presets
from resmlp_mt.nn.blocks import ChannelMLP, DropPath, ResMLPBlock
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.patches import PatchEmbedding, init_linear
from resmlp_mt.nn.pooling import Aggregate, AveragePooling, ClassMLP, ClassMLPLayer
from resmlp_mt.nn.stages import Stage

POOLINGS = ("average", "class-mlp")


@dataclass
class ResMLPImageConfig(FairseqDataclass):
    """The flags of the classifier's backbone; image size and classes are the task's."""

    patch_size: int = field(default=16, metadata={"help": "side of a patch in pixels"})
    embed_dim: int = field(default=384, metadata={"help": "channels C"})
    ffn_embed_dim: int = field(
        default=0, metadata={"help": "hidden channels of the channel MLP; 0: 4C, as in the paper"}
    )
    layers: int = field(default=12, metadata={"help": "blocks"})
    token_mixer: ChoiceEnum(list(GRID_MIXERS)) = field(
        default="linear",
        metadata={"help": "what mixes patches: the paper's matrix is 'linear'"},
    )
    norm: ChoiceEnum(list(SEQUENCE_NORMS)) = field(
        default="affine", metadata={"help": "norm before every sublayer and the head"}
    )
    pooling: ChoiceEnum(list(POOLINGS)) = field(
        default="average", metadata={"help": "how the patches become one vector"}
    )
    layer_scale_init: float = field(
        default=0.0,
        metadata={
            "help": "LayerScale that every sublayer's output starts with; 0: by depth, 0.1 up to "
            "18 layers, 1e-5 up to 24, 1e-6 beyond"
        },
    )
    drop_path: float = field(
        default=0.1, metadata={"help": "stochastic depth, the same rate for all blocks"}
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout on sublayers"})


class ResMLPImageModel(ImageModel):
    """Images -> the task's head. Its defaults are the paper's ResMLP-S12.

    Args:
        cfg: The flags.
        in_chans: Channels of the images.
        image_size: Side of the images, in pixels.
        head: Maps (B, C) to the output.

    Raises:
        UserError: If the patches do not divide the image, or a size is impossible.
    """

    def __init__(self, cfg: ResMLPImageConfig, in_chans: int, image_size: int, head: nn.Module):
        _check(cfg, image_size)
        dim, side = cfg.embed_dim, image_size // cfg.patch_size
        hidden_dim = cfg.ffn_embed_dim or 4 * dim
        scale = partial(LayerScale, dim, cfg.layer_scale_init or _scale_by_depth(cfg.layers))
        norm = partial(build_norm, str(cfg.norm), dim)
        grid = (side, side)
        stem = PatchEmbedding(in_chans, dim, cfg.patch_size)
        blocks = (
            ResMLPBlock(
                norm_1=norm(),
                mix_tokens=build_mixer(str(cfg.token_mixer), dim, grid),
                scale_1=scale(),
                norm_2=norm(),
                mix_channels=ChannelMLP(dim, hidden_dim),
                scale_2=scale(),
                drop=nn.Sequential(nn.Dropout(cfg.dropout), DropPath(cfg.drop_path)),
            )
            for _ in range(cfg.layers)
        )
        stage = Stage(grid, nn.Identity(), blocks)
        pool = AveragePooling(norm())
        if cfg.pooling == "class-mlp":
            layers = (
                ClassMLPLayer(
                    norm_1=norm(),
                    aggregate=Aggregate(side * side),
                    scale_1=scale(),
                    norm_2=norm(),
                    mix_channels=ChannelMLP(dim, hidden_dim),
                    scale_2=scale(),
                )
                for _ in range(2)
            )
            pool = ClassMLP(dim, layers, norm())
        for part in (stem, stage, pool):
            part.apply(init_linear)
        super().__init__(image_size, stem, [stage], pool, head)

    @classmethod
    def build_model(cls, cfg: ResMLPImageConfig, task) -> "ResMLPImageModel":
        """Build the model for the task's images, with the head that the task asks for."""
        return cls(cfg, task.in_chans, task.image_size, task.build_head(cfg.embed_dim))


def _check(cfg: ResMLPImageConfig, image_size: int) -> None:
    if cfg.patch_size < 1 or image_size % cfg.patch_size or image_size < cfg.patch_size:
        raise UserError(
            f"an image of {image_size} x {image_size} pixels cannot be cut into patches of "
            f"{cfg.patch_size} x {cfg.patch_size}: choose --image-size as a multiple of "
            "--patch-size"
        )
    least = {"embed_dim": 1, "layers": 1, "ffn_embed_dim": 0, "layer_scale_init": 0}
    for name, smallest in least.items():
        if getattr(cfg, name) < smallest:
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} must be at least {smallest}, not {getattr(cfg, name)}")
    if not 0 <= cfg.dropout <= 1:
        raise UserError(f"--dropout is a probability, not {cfg.dropout}")


def _scale_by_depth(layers: int) -> float:
    if layers <= 18:
        return 0.1
    return 1e-5 if layers <= 24 else 1e-6


register_model("resmlp_image", dataclass=ResMLPImageConfig)(ResMLPImageModel)
register_presets("resmlp_image", ResMLPImageConfig, IMAGE_PRESETS)
