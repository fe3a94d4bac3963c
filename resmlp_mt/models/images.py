"""The base of all models of images: a stem, stages, pooling and a head."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel
from omegaconf import ListConfig
from torch import Tensor, nn

from resmlp_mt.errors import UserError
from resmlp_mt.models.fit import list_differences
from resmlp_mt.models.resize import resize_weights
from resmlp_mt.nn.blocks import DropPath
from resmlp_mt.nn.dropout import Dropout
from resmlp_mt.nn.old_names import rename
from resmlp_mt.nn.stages import Stage

logger = logging.getLogger(__name__)


@dataclass
class BlocksConfig(FairseqDataclass):
    """Stochastic depth and recomputation, for the blocks of all of these models."""

    drop_path: float = field(default=0.1, metadata={"help": "rate of stochastic depth"})
    drop_path_schedule: ChoiceEnum(["constant", "linear"]) = field(
        default="constant",
        metadata={"help": "the same rate for all blocks, or from 0 in the first to it in the last"},
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout on sublayers"})
    checkpoint_activations: bool = field(
        default=False,
        metadata={
            "help": "compute the blocks once more in the backward pass: slower, with less memory"
        },
    )


def build_drops(cfg: BlocksConfig, layers: int) -> list[nn.Module]:
    """The stochastic depth of each of so many blocks.

    Raises:
        UserError: If a rate is none.
    """
    if not 0 <= cfg.dropout <= 1:
        raise UserError(f"--dropout is a probability, not {cfg.dropout}")
    last = max(layers - 1, 1)
    shares = [i / last if cfg.drop_path_schedule == "linear" else 1 for i in range(layers)]
    return [
        nn.Sequential(Dropout(cfg.dropout), DropPath(cfg.drop_path * share)) for share in shares
    ]


def check_least(cfg: FairseqDataclass, **least: float) -> None:
    """Refuse flags below the least that each may be; a flag may be a list, or not be there.

    Raises:
        UserError: Naming the flag.
    """
    for name, smallest in least.items():
        values = getattr(cfg, name, smallest)
        for value in values if isinstance(values, (list, tuple, ListConfig)) else [values]:
            if value < smallest:
                flag = name.replace("_", "-")
                raise UserError(f"--{flag} must be at least {smallest}, not {value}")


class ImageModel(BaseFairseqModel):
    """A model of images. A family of models is a subclass that builds the parts.

    Args:
        image_size: Side of the images, in pixels.
        stem: Maps images to the features of the first grid.
        stages: At least one; an isotropic model has one.
        pool: Maps the features of the last grid to one vector an image, (B, C).
        head: Maps (B, C) to the output.
    """

    modality = "images"  # what `compat/flags/models.py` asks, so that no task of text takes it

    def __init__(
        self,
        image_size: int,
        stem: nn.Module,
        stages: Iterable[Stage],
        pool: nn.Module,
        head: nn.Module,
    ):
        super().__init__()
        self.image_size = image_size
        # Checkpoints keep the optimizer's state in the order of the parameters. Keep this order.
        self.stem, self.stages = stem, nn.ModuleList(stages)
        self.pool, self.head = pool, head
        # Changes that `load_state_dict` may make; the task sets these.
        self.resizes, self.restarts_head = True, False

    def forward(self, images: Tensor) -> Tensor:
        """Score images.

        Args:
            images: Normalised pixels. (B, in_chans, image_size, image_size).

        Returns:
            The output of the head; logits (B, K) in classification.
        """
        return self.head(self.extract_features(images))

    def extract_features(self, images: Tensor) -> Tensor:
        """One vector an image, which the head reads. (B, C)."""
        if images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(
                f"images of {images.size(-2)} x {images.size(-1)} pixels given to a model for "
                f"{self.image_size} x {self.image_size}"
            )
        x = self.stem(images)
        for stage in self.stages:
            x = stage(x)
        return self.pool(x)

    def load_state_dict(self, state_dict: dict, strict: bool = True, model_cfg=None, args=None):
        """Load weights; arguments as fairseq's.

        Where the model `resizes`, mixing matrices for another image size are interpolated to its
        grid. Where it `restarts_head`, a head of other shape is left as it was initialised, for
        fine-tuning on other classes. Both are logged.

        Raises:
            UserError: Listing what is missing, unknown or of another shape.
        """
        state_dict = rename(state_dict)
        if self.resizes:
            state_dict = resize_weights(state_dict, self)
        if self.restarts_head:
            state_dict = self._with_fitting_head(state_dict)
        shapes = {name: tensor.shape for name, tensor in state_dict.items()}
        own = {name: tensor.shape for name, tensor in self.state_dict().items()}
        if strict and (differences := list_differences(shapes, own)):
            raise UserError(f"the checkpoint is of another model:{differences}")
        return super().load_state_dict(state_dict, strict, model_cfg, args)

    def _with_fitting_head(self, state_dict: dict) -> dict:
        own, head = head_of(self.state_dict()), head_of(state_dict)
        if {n: t.shape for n, t in head.items()} == {n: t.shape for n, t in own.items()}:
            return state_dict
        found = "'s head is another" if head else " has no head"
        logger.warning("the checkpoint%s: the head starts anew", found)
        return with_head(state_dict, own)


def head_of(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model's head."""
    return {name: tensor for name, tensor in weights.items() if name.startswith("head.")}


def with_head(weights: dict[str, Tensor], head: dict[str, Tensor]) -> dict[str, Tensor]:
    """A model's weights with another head, by the names that `head_of` gave its weights."""
    old = head_of(weights)
    return {name: tensor for name, tensor in weights.items() if name not in old} | head
