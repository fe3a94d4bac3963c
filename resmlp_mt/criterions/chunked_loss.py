"""Label-smoothed cross-entropy of features and an output matrix, without all of the logits.

At V 32k the logits of a batch, their logarithms and their gradients are most of what a training
holds. Here a chunk of tokens has logits at a time. Its share of the gradients is computed at once,
so that no product is done twice.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Tokens whose logits become gradients at a time, on a CPU: so few stay in its cache. Then they take
# the place of their logits, so that a chunk is held once. An accelerator wants more at a time.
FEW = 64


def chunked_cross_entropy(
    features: Tensor,
    weight: Tensor,
    target: Tensor,
    smoothing: float = 0.0,
    chunk: int = 512,
    count_hits: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Cross-entropy to base e of softmax(features weight^T), summed over the tokens.

    The target's share is 1 - smoothing. The other entries have the rest in equal shares, as in
    fairseq's criterion. Sums are in fp32 at least. The gradients are computed in the forward pass,
    where gradients are enabled, and can be fetched once.

    Args:
        features: (tokens, C).
        weight: The output matrix. (V, C).
        target: The right entries. (tokens,).
        smoothing: The share of the probability that the other entries have.
        chunk: Tokens that have logits at a time.
        count_hits: Count where the target has the largest logit.

    Returns:
        The loss, the negative log-likelihood of the target (without gradients), and the hits or
        None; each a scalar.
    """
    device = features.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        features, weight = features.to(dtype), weight.to(dtype)
    needs_grad = torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad)
    with torch.autocast(device, enabled=False):
        loss, nll, hits = _ChunkedCrossEntropy.apply(
            features, weight, target, smoothing, chunk, needs_grad, count_hits
        )
    return loss, nll, hits if count_hits else None


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, weight, target, smoothing, chunk, needs_grad, count_hits):
        """The loss of `chunked_cross_entropy`; arguments as there."""
        exact = torch.promote_types(features.dtype, torch.float32)
        others = smoothing / (len(weight) - 1)  # the share of each entry but the target
        own = 1 - smoothing - others  # the share of the target above that
        # The sum of a token's logits is the product of its features with this.
        weight_sum = weight.sum(0, dtype=exact)
        loss, nll = (torch.zeros((), dtype=exact, device=features.device) for _ in range(2))
        hits = torch.zeros((), dtype=torch.long, device=features.device)
        rows = min(chunk, len(target))
        few_rows = FEW if features.device.type == "cpu" else 8 * FEW
        buffer = features.new_empty(rows, len(weight))
        if needs_grad:
            scale = _scale_of_products(features, weight, rows)
            grad_features = torch.empty_like(features, dtype=exact)
            grad_weight = torch.zeros_like(weight, dtype=exact)
        for start in range(0, len(target), rows or 1):
            part = slice(start, start + rows)
            x, y = features[part], target[part].unsqueeze(1)
            logits = torch.mm(x, weight.t(), out=buffer[: len(x)])
            for few, right in zip(logits.split(few_rows), y.split(few_rows), strict=True):
                scores = few.to(exact)  # the same tensor where they are exact
                if count_hits:
                    hits += scores.argmax(1, keepdim=True).eq(right).sum()
                # On a CPU a softmax is faster than the exponential alone. The norm is the largest
                # logit less the logarithm of its share, which is at least 1 / V, so never 0.
                shares = scores.softmax(1)
                norm = scores.amax(1, keepdim=True) - shares.amax(1, keepdim=True).log()
                few_nll = (norm - scores.gather(1, right)).sum()
                nll += few_nll
                loss += own * few_nll + others * len(weight) * norm.sum()
                if needs_grad:
                    # p - own at the target. That - others is everywhere is made good at the end.
                    shares.scatter_add_(1, right, shares.new_full(right.shape, -own))
                    few.copy_(shares if scale is None else shares.mul_(scale))
            loss -= others * (x.to(exact) @ weight_sum).sum()
            if needs_grad:
                grad_features[part] = logits @ weight
                if exact == features.dtype:
                    grad_weight.addmm_(logits.t(), x)
                else:
                    grad_weight += logits.t() @ x
        if needs_grad:
            ctx.gradients = grad_features, grad_weight
            if scale is not None:
                for gradient in ctx.gradients:
                    gradient.div_(scale)
            grad_features.sub_(others * weight_sum)
            grad_weight.sub_(others * features.sum(0, dtype=exact))
            ctx.dtype = features.dtype
        ctx.mark_non_differentiable(nll, hits)
        return loss, nll, hits

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss, *_):
        """Scale the gradients in place; they are as large as the features and the matrix."""
        if ctx.gradients is None:
            raise RuntimeError("the gradients of this loss were fetched before")
        gradients, ctx.gradients = ctx.gradients, None
        scaled = (gradient.mul_(grad_loss).to(ctx.dtype) for gradient in gradients)
        return *scaled, None, None, None, None, None


def _scale_of_products(features: Tensor, weight: Tensor, rows: int) -> Tensor | None:
    """A power of two by which gradients in fp16 neither overflow in products nor vanish.

    fairseq's own loss scale comes later, in the backward pass. Other types need none.
    """
    if features.dtype != torch.float16 or not features.numel():
        return None
    # A gradient of logits is at most 1, and sums up to 2 over the entries.
    largest = torch.maximum(rows * _peak(features), 2 * _peak(weight))
    return (2.0**14 / largest).log2().floor().clamp(max=10).exp2()


def _peak(tensor: Tensor) -> Tensor:
    return tensor.abs().amax().float()
