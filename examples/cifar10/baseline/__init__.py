"""Baselines for the mixers, of torch's own modules: `--user-dir .../baseline`.

A small Vision Transformer stands here, a small ResNet in resnet.py. They are trained by the same
task, loss and recipe as the ResMLP; only the model is another.
"""

from dataclasses import dataclass, field

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import nn

import resmlp_mt  # noqa: F401  (registers the task and the loss)

from . import resnet  # noqa: F401  (registers it)


@dataclass
class TinyViTConfig(FairseqDataclass):
    """The sizes."""

    patch_size: int = field(default=4, metadata={"help": "side of a patch in pixels"})
    embed_dim: int = field(default=128, metadata={"help": "channels"})
    layers: int = field(default=6, metadata={"help": "encoder layers"})
    heads: int = field(default=4, metadata={"help": "attention heads"})


@register_model("vit_cifar", dataclass=TinyViTConfig)
class TinyViT(BaseFairseqModel):
    """ViT (arXiv 2010.11929) with learned positions, classifying by the mean of the patches."""

    def __init__(self, cfg: TinyViTConfig, task):
        super().__init__()
        dim, positions = cfg.embed_dim, (task.image_size // cfg.patch_size) ** 2
        self.embed = nn.Conv2d(task.in_chans, dim, cfg.patch_size, stride=cfg.patch_size)
        self.positions = nn.Parameter(0.02 * torch.randn(positions, dim))
        layer = nn.TransformerEncoderLayer(
            dim, cfg.heads, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, cfg.layers, nn.LayerNorm(dim), enable_nested_tensor=False
        )
        self.head = task.build_head(dim)

    @classmethod
    def build_model(cls, cfg: TinyViTConfig, task) -> "TinyViT":
        """Build the model for the task's images and classes."""
        return cls(cfg, task)

    def forward(self, images):
        """(B, in_chans, H, W) -> logits (B, K)."""
        x = self.embed(images).flatten(2).transpose(1, 2)
        return self.head(self.encoder(x + self.positions).mean(1))
