"""Muon for the matrices of the layers, AdamW for all other weights."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import torch
import torch.distributed as dist
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam
from torch import Tensor

from resmlp_mt.compat.processor import multiplies_bf16
from resmlp_mt.errors import UserError
from resmlp_mt.nn.marks import group_by_decay, is_map, is_marked
from resmlp_mt.optim.adamw import FusedAdamWConfig

_STEPS = 5  # of Newton and Schulz's iteration, by Jordan et al.
_LONG = 2  # times as long as wide: from there on it pays to iterate on the product alone


@dataclass
class MuonConfig(FusedAdamWConfig):
    """Flags of `--optimizer muon`: those of adamw, and Muon's own."""

    muon_momentum: float = field(default=0.95, metadata={"help": "momentum of Muon, with Nesterov"})


class Muon(torch.optim.Optimizer):
    """Momentum (Nesterov's) whose matrices are made orthogonal (Jordan et al., 2024).

    torch's own Muon computes in bf16 everywhere. Many processors have no instructions for that, and
    it took them 70 times as long as fp32. It also takes one matrix at a time.

    Args:
        maps: Matrices, (out, in).
        lr: Learning rate. The updates are scaled to the size that AdamW's have, 0.2 in the root
            mean square before they are multiplied by this.
        weight_decay: Decoupled.
        momentum: Of the mean of gradients.
    """

    def __init__(self, maps: list[Tensor], lr: float, weight_decay: float, momentum: float):
        super().__init__(maps, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        """Update every matrix that has a gradient. Workers share the work."""
        for group in self.param_groups:
            momentum, lr = group["momentum"], group["lr"]
            weights, updates = [], []
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(weight)
                mean = state["momentum_buffer"].lerp_(weight.grad, 1 - momentum)
                weights.append(weight)
                updates.append(weight.grad.lerp(mean, momentum))
            for weight, update in zip(weights, _share_out(updates), strict=True):
                weight.mul_(1 - lr * group["weight_decay"])
                weight.add_(update, alpha=-0.2 * lr * max(weight.shape) ** 0.5)


def _share_out(matrices: list[Tensor]) -> list[Tensor]:
    """Each matrix made orthogonal, by one of the workers that train together."""
    if not dist.is_initialized() or dist.get_world_size() == 1 or not matrices:
        return orthogonalize_all(matrices)
    # By turns in order of size, so that all have as much to do.
    order = sorted(range(len(matrices)), key=lambda i: -matrices[i].numel())
    mine = order[dist.get_rank() :: dist.get_world_size()]
    found = [torch.zeros_like(matrix) for matrix in matrices]
    for place, matrix in zip(mine, orthogonalize_all([matrices[i] for i in mine]), strict=True):
        found[place].copy_(matrix)
    together = torch.cat([matrix.flatten() for matrix in found])
    dist.all_reduce(together)
    parts = together.split([matrix.numel() for matrix in matrices])
    return [part.view_as(matrix) for part, matrix in zip(parts, matrices, strict=True)]


def orthogonalize_all(matrices: list[Tensor]) -> list[Tensor]:
    """Each matrix with singular values near 1. Those of one shape are worked on together.

    Small products keep neither a GPU nor the cores of a processor busy.

    Args:
        matrices: (out, in) each. One that is taller than wide is worked on as it lies.

    Returns:
        (out, in) each, in bf16 where the hardware multiplies in it, in fp32 elsewhere.
    """
    found: list[Tensor] = [*matrices]
    lying = [matrix.T if matrix.size(0) > matrix.size(1) else matrix for matrix in matrices]
    for shape in dict.fromkeys(matrix.shape for matrix in lying):
        places = [i for i, matrix in enumerate(lying) if matrix.shape == shape]
        stack = torch.stack([lying[i] for i in places])
        exact = stack.device.type == "cpu" and not multiplies_bf16()
        made = orthogonalize(stack.to(torch.float32 if exact else torch.bfloat16))
        for i, matrix in zip(places, made, strict=True):
            found[i] = matrix if lying[i] is matrices[i] else matrix.T
    return found


def orthogonalize(x: Tensor) -> Tensor:
    """Matrices with singular values near 1, by five steps of Newton and Schulz's iteration.

    Its coefficients are those of Jordan et al. (2024). They bring small singular values up quickly,
    and stop between about 0.7 and 1.2.

    Args:
        x: (matrices, rows, columns), no more rows than columns.
    """
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    if x.dtype == torch.float32 and x.size(2) >= _LONG * x.size(1):
        return _find_factor(x @ x.mT) @ x
    for _ in range(_STEPS):
        x = torch.baddbmm(x, _choose_factor(x @ x.mT), x, beta=3.4445)
    return x


def _choose_factor(gram: Tensor) -> Tensor:
    """The factor of a step, less 3.4445 on the diagonal."""
    return torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)


def _find_factor(gram: Tensor) -> Tensor:
    """All steps as one square matrix. The small products spare those with the long matrix.

    A step makes P X of X, and P X X^T P of its product. All of these commute.
    """
    whole = None
    for step in range(_STEPS):
        factor = _choose_factor(gram)
        factor.diagonal(dim1=1, dim2=2).add_(3.4445)
        whole = factor if whole is None else factor @ whole
        if step < _STEPS - 1:
            gram = factor @ gram @ factor
    return whole


class MuonWithAdamW(torch.optim.Optimizer):
    """Two optimizers as one: fairseq knows a single one, its groups and its state.

    Args:
        maps: Matrices that map features to features, (out, in), for Muon. There may be none.
        others: Weights or groups of weights for AdamW, at least one.
        lr, weight_decay: Of both.
        momentum: Muon's.
        **adamw: Further arguments of torch's AdamW.
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
        self.parts = [Muon(maps, **both, momentum=momentum)] if maps else []
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
    """`--optimizer muon`: Muon (Jordan et al., 2024) for weights that are marked as maps.

    Raises:
        UserError: If the momentum is none, or the task did not mark the model's weights.
    """

    def __init__(self, cfg: MuonConfig, params):
        FairseqOptimizer.__init__(self, cfg)  # FairseqAdam's own would build Adam
        if not 0 <= cfg.muon_momentum < 1:
            raise UserError(f"--muon-momentum is at least 0 and below 1, not {cfg.muon_momentum:g}")
        params = list(params)
        if any(weight.dim() > 1 and not is_marked(weight) for weight in params):
            raise UserError(
                "--optimizer muon: this task does not say which matrices it is for, as translation "
                "and the tasks of images do; take one of these, or another optimizer"
            )
        maps = [weight for weight in params if is_map(weight)]
        others = group_by_decay(weight for weight in params if not is_map(weight))
        self._optimizer = MuonWithAdamW(maps, others, fused=True, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict:
        """The optimizer's arguments."""
        return super().optimizer_config | {"momentum": self.cfg.muon_momentum}
