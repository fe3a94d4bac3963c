"""Muon for the matrices of the layers, AdamW for all other weights."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import torch
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam
from torch import Tensor

from resmlp_mt.nn.marks import group_by_decay, is_map
from resmlp_mt.optim.adamw import FusedAdamWConfig


@dataclass
class MuonConfig(FusedAdamWConfig):
    """Flags of `--optimizer muon`: those of adamw, and Muon's own."""

    muon_momentum: float = field(default=0.95, metadata={"help": "momentum of Muon, with Nesterov"})


class MuonWithAdamW(torch.optim.Optimizer):
    """torch's two optimizers as one: fairseq knows a single one, its groups and its state.

    Args:
        maps: Matrices that map features to features, (out, in), for Muon. There may be none.
        others: Weights or groups of weights for AdamW, at least one.
        lr: Of both. Muon's updates are scaled to the size that AdamW's have, 0.2 in the root mean
            square before they are multiplied by this.
        weight_decay: Of both, decoupled.
        momentum: Muon's.
        **adamw: What else torch's AdamW takes.
    """

    def __init__(
        self,
        maps: list[Tensor],
        others: Iterable,
        lr: float,
        weight_decay: float,
        momentum: float,
        **adamw,
    ):
        both = {"lr": lr, "weight_decay": weight_decay}
        muon = {"momentum": momentum, "adjust_lr_fn": "match_rms_adamw"}
        self.parts = [torch.optim.Muon(maps, **both, **muon)] if maps else []
        self.parts.append(torch.optim.AdamW(others, **both, **adamw))
        super().__init__([group for part in self.parts for group in part.param_groups], {})
        self._share()

    def __setstate__(self, state: dict) -> None:
        """Take the groups and the state of a checkpoint."""
        super().__setstate__(state)
        self._share()

    @torch.no_grad()
    def step(self, closure=None):
        """Update every weight."""
        if closure is not None:
            raise ValueError("a closure would be called twice; call it before the step")
        for part in self.parts:
            part.step()

    def _share(self) -> None:
        """Let the parts work on these very groups and this state."""
        groups = iter(self.param_groups)
        for part in self.parts:
            part.state = self.state
            part.param_groups = list(islice(groups, len(part.param_groups)))


@register_optimizer("muon", dataclass=MuonConfig)
class FairseqMuon(FairseqAdam):
    """`--optimizer muon`: Muon (Jordan et al., 2024) for weights that are marked as maps."""

    def __init__(self, cfg: MuonConfig, params):
        FairseqOptimizer.__init__(self, cfg)  # FairseqAdam's own would build Adam
        params = list(params)
        maps = [weight for weight in params if is_map(weight)]
        others = group_by_decay(weight for weight in params if not is_map(weight))
        self._optimizer = MuonWithAdamW(maps, others, fused=True, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict:
        """What the optimizer is built with."""
        return super().optimizer_config | {"momentum": self.cfg.muon_momentum}
