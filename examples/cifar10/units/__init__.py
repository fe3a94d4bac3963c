"""Residual networks for the studies of normalisation and pre-activation: `--user-dir .../units`."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch.nn.functional as F
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn

import resmlp_mt  # noqa: F401  (registers the task and the loss)
from resmlp_mt.models.bit import BiTConfig, BiTModel
from resmlp_mt.nn.patches import Step


@dataclass
class NormConfig(BiTConfig):
    """BiT's flags, and what the study exchanges."""

    norm: ChoiceEnum(["group", "batch"]) = field(default="group", metadata={"help": "all norms"})
    plain_convolutions: bool = field(default=False, metadata={"help": "no weight standardisation"})


@register_model("bit_norms", dataclass=NormConfig)
class NormModel(BiTModel):
    """BiT with BatchNorm, or without weight standardisation."""

    @classmethod
    def build_norm(cls, dim: int) -> nn.Module:
        """The norm that the flags ask for."""
        return nn.BatchNorm2d(dim) if cls.chosen.norm == "batch" else super().build_norm(dim)

    @classmethod
    def build_convolution(cls, in_dim: int, dim: int, step: Step) -> nn.Module:
        """The convolution that the flags ask for."""
        if cls.chosen.plain_convolutions:
            return nn.Conv2d(in_dim, dim, *step, bias=False)
        return super().build_convolution(in_dim, dim, step)

    @classmethod
    def build_model(cls, cfg: NormConfig, task) -> "NormModel":
        """Build the model for the task's images."""
        cls.chosen = cfg
        return super().build_model(cfg, task)


def _convolve(channels: int, out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)


class Unit(nn.Module):
    """Two convolutions beside a shortcut, in one of the orders of arXiv 1603.05027, figure 4."""

    def __init__(self, order: str, channels: int, out: int, stride: int):
        super().__init__()
        self.order = order
        self.conv_1, self.conv_2 = _convolve(channels, out, stride), _convolve(out, out)
        first = channels if order == "full" else out
        self.norm_1, self.norm_2 = nn.BatchNorm2d(first), nn.BatchNorm2d(out)
        self.shortcut: Callable = nn.Identity()
        if channels != out:
            self.shortcut = nn.Conv2d(channels, out, 1, stride, bias=False)

    def _first(self, x: Tensor) -> Tensor:
        return self.conv_2(F.relu(self.norm_1(self.conv_1(x))))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, rows, columns), as the order says."""
        return getattr(self, self.order)(x)

    def original(self, x: Tensor) -> Tensor:
        """Figure 4 (a)."""
        return F.relu(self.shortcut(x) + self.norm_2(self._first(x)))

    def norm_after(self, x: Tensor) -> Tensor:
        """Figure 4 (b): the norm after the sum."""
        return F.relu(self.norm_2(self.shortcut(x) + self._first(x)))

    def relu_before(self, x: Tensor) -> Tensor:
        """Figure 4 (c): ReLU before the sum."""
        return self.shortcut(x) + F.relu(self.norm_2(self._first(x)))

    def full(self, x: Tensor) -> Tensor:
        """Figure 4 (e): full pre-activation."""
        y = self.conv_1(F.relu(self.norm_1(x)))
        return self.shortcut(x) + self.conv_2(F.relu(self.norm_2(y)))


ORDERS = ("original", "norm_after", "relu_before", "full")


@dataclass
class OrderConfig(FairseqDataclass):
    """The sizes, and the order."""

    order: ChoiceEnum(list(ORDERS)) = field(default="full", metadata={"help": "within a unit"})
    units: int = field(default=5, metadata={"help": "of each of 3 stages: 6n + 2 layers"})
    width: int = field(default=16, metadata={"help": "channels of the first stage"})


@register_model("resnet_orders", dataclass=OrderConfig)
class OrderModel(BaseFairseqModel):
    """The ResNet for CIFAR-10 of arXiv 1512.03385, section 4.2, with BatchNorm."""

    def __init__(self, cfg: OrderConfig, task):
        super().__init__()
        full, channels, units = cfg.order == "full", cfg.width, []
        self.stem = _convolve(task.in_chans, channels)
        self.first = nn.Identity() if full else nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU())
        for stage in range(3):
            out = cfg.width * 2**stage
            for i in range(cfg.units):
                stride = 2 if stage and not i else 1
                units.append(Unit(str(cfg.order), channels, out, stride))
                channels = out
        self.units = nn.Sequential(*units)
        last = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU())
        self.last = last if full else nn.Identity()
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        self.head = task.build_head(channels)

    @classmethod
    def build_model(cls, cfg: OrderConfig, task) -> "OrderModel":
        """Build the model for the task's images and classes."""
        return cls(cfg, task)

    def forward(self, images: Tensor) -> Tensor:
        """(B, in_chans, H, W) -> logits (B, K)."""
        return self.head(self.last(self.units(self.first(self.stem(images)))).mean((2, 3)))
