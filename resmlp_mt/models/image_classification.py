"""ResMLP for images (arXiv 2105.03404, section 2) as a fairseq model on the shared blocks."""

import logging
from dataclasses import dataclass, field
from functools import partial

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

from resmlp_mt.models.fit import list_differences
from resmlp_mt.models.parts import GRID_MIXERS, SEQUENCE_NORMS, build_mixer, build_norm
from resmlp_mt.models.presets import IMAGE_PRESETS, register_presets
from resmlp_mt.models.resize import resize_weights
from resmlp_mt.nn.blocks import ChannelMLP, DropPath, ResMLPBlock
from resmlp_mt.nn.norm import LayerScale
from resmlp_mt.nn.old_names import rename
from resmlp_mt.nn.patches import (
    Aggregate,
    AveragePooling,
    ClassMLP,
    ClassMLPLayer,
    PatchEmbedding,
    init_linear,
)

logger = logging.getLogger(__name__)
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


class ResMLPImageModel(BaseFairseqModel):
    """Images -> the task's head. Its defaults are the paper's ResMLP-S12.

    Args:
        cfg: The flags.
        in_chans: Channels of the images.
        image_size: Side of the images, in pixels.
        head: Maps (B, C) to the output.

    Raises:
        ValueError: If the patches do not divide the image, or a size is impossible.
    """

    def __init__(self, cfg: ResMLPImageConfig, in_chans: int, image_size: int, head: nn.Module):
        super().__init__()
        if cfg.patch_size < 1 or image_size % cfg.patch_size or image_size < cfg.patch_size:
            raise ValueError(
                f"an image of {image_size} x {image_size} pixels cannot be cut into patches of "
                f"{cfg.patch_size} x {cfg.patch_size}: choose --image-size as a multiple of "
                "--patch-size"
            )
        _check(cfg)
        dim, side = cfg.embed_dim, image_size // cfg.patch_size
        hidden_dim = cfg.ffn_embed_dim or 4 * dim
        scale_init = cfg.layer_scale_init or _scale_by_depth(cfg.layers)
        norm = partial(build_norm, str(cfg.norm), dim)
        self.grid = (side, side)
        self.image_size = image_size
        self.embed = PatchEmbedding(in_chans, dim, cfg.patch_size)
        self.blocks = nn.ModuleList(
            ResMLPBlock(
                norm_1=norm(),
                mix_tokens=build_mixer(str(cfg.token_mixer), dim, self.grid),
                scale_1=LayerScale(dim, scale_init),
                norm_2=norm(),
                mix_channels=ChannelMLP(dim, hidden_dim),
                scale_2=LayerScale(dim, scale_init),
                drop=nn.Sequential(nn.Dropout(cfg.dropout), DropPath(cfg.drop_path)),
            )
            for _ in range(cfg.layers)
        )
        if cfg.pooling == "class-mlp":
            layers = (
                ClassMLPLayer(
                    norm_1=norm(),
                    aggregate=Aggregate(side * side),
                    scale_1=LayerScale(dim, scale_init),
                    norm_2=norm(),
                    mix_channels=ChannelMLP(dim, hidden_dim),
                    scale_2=LayerScale(dim, scale_init),
                )
                for _ in range(2)
            )
            self.pool = ClassMLP(dim, layers, norm())
        else:
            self.pool = AveragePooling(norm())
        self.apply(init_linear)
        self.head = head
        # What `load_state_dict` may do to weights; the task says when.
        self.resizes, self.restarts_head = True, False

    @classmethod
    def build_model(cls, cfg: ResMLPImageConfig, task) -> "ResMLPImageModel":
        """Build the model for the task's images, with the head that the task asks for."""
        return cls(cfg, task.in_chans, task.image_size, task.build_head(cfg.embed_dim))

    def forward(self, images: Tensor) -> Tensor:
        """Score images.

        Args:
            images: Normalised pixels. (B, in_chans, image_size, image_size).

        Returns:
            What the head makes of them; logits (B, K) in classification.
        """
        return self.head(self.extract_features(images))

    def extract_features(self, images: Tensor) -> Tensor:
        """One vector an image, which the head reads. (B, C)."""
        if images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(
                f"images of {images.size(-2)} x {images.size(-1)} pixels given to a model for "
                f"{self.image_size} x {self.image_size}"
            )
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        return self.pool(x)

    def load_state_dict(self, state_dict: dict, strict: bool = True, model_cfg=None, args=None):
        """Load weights; arguments as fairseq's.

        Where the model `resizes`, mixing matrices for another image size are interpolated to its
        grid. Where it `restarts_head`, a head of other shape is left as it was initialised, for
        fine-tuning on other classes. Both are logged.

        Raises:
            ValueError: Listing what is missing, unknown or of another shape.
        """
        state_dict = rename(state_dict)
        if self.resizes:
            state_dict = resize_weights(state_dict, self)
        if self.restarts_head:
            state_dict = self._with_fitting_head(state_dict)
        shapes = {name: tensor.shape for name, tensor in state_dict.items()}
        own = {name: tensor.shape for name, tensor in self.state_dict().items()}
        if strict and (differences := list_differences(shapes, own)):
            raise ValueError(f"the checkpoint is of another model:{differences}")
        return super().load_state_dict(state_dict, strict, model_cfg, args)

    def _with_fitting_head(self, state_dict: dict) -> dict:
        own = {f"head.{name}": tensor for name, tensor in self.head.state_dict().items()}
        head = {n: tensor for n, tensor in state_dict.items() if n.startswith("head.")}
        if {n: t.shape for n, t in head.items()} == {n: t.shape for n, t in own.items()}:
            return state_dict
        found = "'s head has other classes" if head else " has no head"
        logger.warning("the checkpoint%s: the head starts anew", found)
        return {n: tensor for n, tensor in state_dict.items() if n not in head} | own


def _check(cfg: ResMLPImageConfig) -> None:
    least = {"embed_dim": 1, "layers": 1, "ffn_embed_dim": 0, "layer_scale_init": 0}
    for name, smallest in least.items():
        if getattr(cfg, name) < smallest:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag} must be at least {smallest}, not {getattr(cfg, name)}")
    if not 0 <= cfg.dropout <= 1:
        raise ValueError(f"--dropout is a probability, not {cfg.dropout}")


def _scale_by_depth(layers: int) -> float:
    if layers <= 18:
        return 0.1
    return 1e-5 if layers <= 24 else 1e-6


register_model("resmlp_image", dataclass=ResMLPImageConfig)(ResMLPImageModel)
register_presets("resmlp_image", ResMLPImageConfig, IMAGE_PRESETS)
