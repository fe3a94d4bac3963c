"""LAMB (arXiv 1904.00962) as NVIDIA's apex and timm compute it, for those without apex."""

from collections.abc import Callable

import torch
from fairseq.optim import fused_lamb
from torch import Tensor

from resmlp_mt.compat.patching import replaces
from resmlp_mt.nn.marks import group_by_decay


class Lamb(torch.optim.Optimizer):
    """Adam's update and weight decay, scaled to the norm of each weight.

        g <- g / max(|all gradients|, 1)
        m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2
        u <- (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + decay w
        w <- w - lr (|w| / |u|) u

    A weight without weight decay is not adapted: its last line is w <- w - lr u, as in Adam. The
    same holds where |w| or |u| is 0.

    Args:
        params: Weights, or groups of them.
        lr, betas, eps, weight_decay: As above.
        bias_correction: Divide the averages by 1 - b^t, as apex and timm do by default. The third
            version of the paper does not.
    """

    def __init__(
        self,
        params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        bias_correction: bool = True,
    ):
        flags = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        super().__init__(params, flags | dict(bias_correction=bias_correction))

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        """Update the weights that have gradients. The gradients stay as they are."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gradients = [p.grad for group in self.param_groups for p in group["params"]]
        norms = [g.norm(dtype=torch.float32) for g in gradients if g is not None]
        if norms:
            scale = 1 / torch.stack(norms).norm().clamp(min=1)
            for group in self.param_groups:
                group["step"] = group.get("step", 0) + 1
                for weight in group["params"]:
                    if weight.grad is not None:
                        self._update(weight, weight.grad * scale.to(weight.grad), group)
        return loss

    def _update(self, weight: Tensor, gradient: Tensor, group: dict) -> None:
        (beta1, beta2), decay, state = group["betas"], group["weight_decay"], self.state[weight]
        for name in ("exp_avg", "exp_avg_sq"):
            if name not in state:
                state[name] = torch.zeros_like(weight)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        corrections = [1 - beta ** group["step"] for beta in (beta1, beta2)]
        first, second = corrections if group["bias_correction"] else (1, 1)
        update = (mean / first).div_((square / second).sqrt_().add_(group["eps"]))
        if decay:
            update.add_(weight, alpha=decay)
            ratio = weight.norm() / update.norm()
            # No branch: it would have to wait for the GPU.
            update.mul_(torch.where(ratio.isfinite() & (ratio > 0), ratio, 1.0))
        weight.sub_(update, alpha=group["lr"])


@replaces("fairseq.optim:OPTIMIZER_REGISTRY[lamb]")
class FairseqLAMB(fused_lamb.FairseqLAMB):
    """`--optimizer lamb`. Checkpoints hold the name of the class, which is that of fairseq's."""

    def __init__(self, args, params):
        params = group_by_decay(params)
        try:
            super().__init__(args, params)
        except ImportError:
            self._optimizer = Lamb(params, **self.optimizer_config)

    @staticmethod
    def add_args(parser):
        """Add the flags of fairseq's, and one that apex has and fairseq does not pass on."""
        fused_lamb.FairseqLAMB.add_args(parser)
        parser.add_argument(
            "--lamb-no-bias-correction",
            action="store_true",
            help="leave the averages of the first updates as small as they are",
        )

    @property
    def optimizer_config(self) -> dict:
        """The optimizer's arguments, which stay when a checkpoint is loaded."""
        # getattr: the flag is not in checkpoints from before it.
        corrects = not getattr(self.args, "lamb_no_bias_correction", False)
        return super().optimizer_config | {"bias_correction": corrects}
