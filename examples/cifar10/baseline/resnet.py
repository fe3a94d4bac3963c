"""A small residual network of convolutions, to compare with."""

from dataclasses import dataclass, field

import torch.nn.functional as F
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn


@dataclass
class SmallResNetConfig(FairseqDataclass):
    """The sizes."""

    width: int = field(default=16, metadata={"help": "channels of the first stage, of 8 each"})
    blocks: int = field(default=1, metadata={"help": "residual blocks of each of 3 stages"})


class _Block(nn.Module):
    """y = ReLU(shortcut(x) + norm(conv(ReLU(norm(conv(x))))))."""

    def __init__(self, channels: int, out: int, stride: int):
        super().__init__()
        self.conv_1 = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
        self.conv_2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm_1, self.norm_2 = nn.GroupNorm(8, out), nn.GroupNorm(8, out)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(channels, out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm_1(self.conv_1(x)))
        return F.relu(self.shortcut(x) + self.norm_2(self.conv_2(y)))


@register_model("resnet_cifar", dataclass=SmallResNetConfig)
class SmallResNet(BaseFairseqModel):
    """The network of section 4.2 of arXiv 1512.03385, which halves the image twice.

    It has GroupNorm where that has BatchNorm: fairseq cannot average the counters of the latter.
    """

    def __init__(self, cfg: SmallResNetConfig, task):
        super().__init__()
        widths = [cfg.width * 2**stage for stage in range(3)]
        self.stem = nn.Conv2d(task.in_chans, cfg.width, 3, padding=1)
        layers, channels = [], cfg.width
        for stage, out in enumerate(widths):
            for i in range(cfg.blocks):
                layers.append(_Block(channels, out, 2 if stage and not i else 1))
                channels = out
        self.blocks = nn.Sequential(*layers)
        self.head = task.build_head(channels)

    @classmethod
    def build_model(cls, cfg: SmallResNetConfig, task) -> "SmallResNet":
        """Build the model for the task's images and classes."""
        return cls(cfg, task)

    def forward(self, images: Tensor) -> Tensor:
        """(B, in_chans, H, W) -> logits (B, K)."""
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))
