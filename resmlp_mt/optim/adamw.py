"""AdamW in one pass over each weight: torch's fused kernels, for those without NVIDIA's apex."""

from dataclasses import dataclass, field

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam
from omegaconf import II

from resmlp_mt.nn.marks import group_by_decay


@dataclass
class FusedAdamWConfig(FairseqDataclass):
    """Flags of `--optimizer adamw`: those of fairseq's adam."""

    adam_betas: str = field(default="(0.9, 0.999)", metadata={"help": "betas for Adam optimizer"})
    adam_eps: float = field(default=1e-8, metadata={"help": "epsilon for Adam optimizer"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay"})
    lr: list[float] = II("optimization.lr")


class _AdamW(torch.optim.AdamW):
    supports_flat_params = True  # fairseq asks for it before it joins weights for --fp16


@register_optimizer("adamw", dataclass=FusedAdamWConfig)
class FusedAdamW(FairseqAdam):
    """`--optimizer adamw`: the updates of fairseq's adam, in torch's fused kernels.

    It differs in epsilon alone, which torch adds after the correction of the bias.
    """

    def __init__(self, cfg: FusedAdamWConfig, params):
        FairseqOptimizer.__init__(self, cfg)  # FairseqAdam's own would choose a kernel
        self._optimizer = _AdamW(group_by_decay(params), fused=True, **self.optimizer_config)
