"""Naive twins of the layers: loops and sums, as the equations of arXiv 2105.03404 read."""

import math

import torch


def weight_index(kind: str, causal: bool, positions: int, i: int, j: int) -> int | None:
    """Which weight of its head A[i, j] is; None where A is zero."""
    if causal and j > i:
        return None
    if kind == "free":
        return i * positions + j
    if abs(i - j) >= positions:
        return None
    return i - j if causal else i - j + positions - 1


class LinearMix(torch.autograd.Function):
    """y[b, t, c] = bias[h, t] + sum over s of A[h, t, s] x[b, s, c], with h the head of c.

    Weights come as (H, K). Forward and backward on plain numbers.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, kind, causal, positions):
        ctx.save_for_backward(x, weight, bias)
        ctx.kind, ctx.causal, ctx.positions = kind, causal, positions
        y = torch.zeros_like(x).tolist()
        xs, ws, bs = x.tolist(), weight.tolist(), bias.tolist()
        for b, t, c, h in LinearMix.outputs(x, weight):
            y[b][t][c] = bs[h][t]
            for s in range(x.size(1)):
                k = weight_index(kind, causal, positions, t, s)
                if k is not None:
                    y[b][t][c] += ws[h][k] * xs[b][s][c]
        return x.new_tensor(y)

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        gx, gw, gb = (torch.zeros_like(z).tolist() for z in (x, weight, bias))
        xs, ws, gy = x.tolist(), weight.tolist(), grad.tolist()
        for b, t, c, h in LinearMix.outputs(x, weight):
            gb[h][t] += gy[b][t][c]
            for s in range(x.size(1)):
                k = weight_index(ctx.kind, ctx.causal, ctx.positions, t, s)
                if k is not None:
                    gx[b][s][c] += ws[h][k] * gy[b][t][c]
                    gw[h][k] += xs[b][s][c] * gy[b][t][c]
        return x.new_tensor(gx), x.new_tensor(gw), x.new_tensor(gb), None, None, None

    @staticmethod
    def outputs(x, weight):
        """Every b, t, c of y, and the head of c."""
        (batch, length, dim), heads = x.shape, weight.size(0)
        for b in range(batch):
            for t in range(length):
                for c in range(dim):
                    yield b, t, c, c // (dim // heads)


def mix(name: str, mixer, x, causal: bool, positions: int, mask=None):
    """The mixer called `name` in MIXERS, with the weights of `mixer`."""
    kind = "toeplitz" if "toeplitz" in name else "free"
    if name.startswith("projected"):
        shares = 1 / (1 + (-linear(mixer.gate, x)).exp())
        mixed = mix("toeplitz", mixer.mix, linear(mixer.value, x), causal, positions, mask)
        return linear(mixer.out, shares * mixed)
    if name.startswith("gated"):
        gate, x = linear(mixer.gate, x), linear(mixer.value, x)
        mixer = mixer.mix
    else:
        gate = 1
    if mask is not None:
        x = torch.where(mask.unsqueeze(-1), torch.zeros_like(x), x)
    weight = mixer.matrix.weight.flatten(1)
    bias = mixer.matrix.bias if kind == "free" else x.new_zeros(len(weight), x.size(1))
    return gate * LinearMix.apply(x, weight, bias, kind, causal, positions)


def linear(layer, x):
    return x @ layer.weight.t() + layer.bias


def normalise(name: str, norm, x):
    if name == "affine":
        return norm.alpha * x + norm.beta
    centred = x - x.mean(-1, keepdim=True)
    return (
        norm.weight * centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() + norm.bias
    )


def mix_channels(mlp, x):
    hidden = linear(mlp.fc1, x)
    return linear(mlp.fc2, hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2)


def attend(attention, x, memory, mask=None):
    """The output at each position, gathered from the memory, and the heads' mean weights."""
    query, key = linear(attention.query, x), linear(attention.key, memory)
    value = linear(attention.value, memory)
    width = x.size(-1) // attention.heads
    gathered, weights = [], x.new_zeros(x.size(0), x.size(1), memory.size(1))
    for b in range(x.size(0)):
        seen = [s for s in range(memory.size(1)) if mask is None or not mask[b, s]]
        for t in range(x.size(1)):
            for h in range(attention.heads):
                head = slice(h * width, (h + 1) * width)
                scores = [(query[b, t, head] * key[b, s, head]).sum() for s in seen]
                exps = [(score / math.sqrt(width)).exp() for score in scores]
                shares = [e / sum(exps) for e in exps]
                gathered.append(
                    sum(p * value[b, s, head] for p, s in zip(shares, seen, strict=True))
                )
                for p, s in zip(shares, seen, strict=True):
                    weights[b, t, s] += p.detach() / attention.heads
    return linear(attention.out, torch.cat(gathered).view_as(x)), weights


def encoder_block(block, x, norm: str, mix_tokens, mask):
    x = x + block.scale_1.gamma * mix_tokens(normalise(norm, block.norm_1, x), mask)
    return x + block.scale_2.gamma * mix_channels(
        block.mix_channels, normalise(norm, block.norm_2, x)
    )


def decoder_block(block, x, memory, norm: str, mix_tokens, memory_mask):
    """Features, and the averaged attention weights."""
    x = x + block.scale_1.gamma * mix_tokens(normalise(norm, block.norm_1, x), None)
    gathered, weights = attend(block.attend, normalise(norm, block.norm_c, x), memory, memory_mask)
    x = x + block.scale_c.gamma * gathered
    y = mix_channels(block.mix_channels, normalise(norm, block.norm_2, x))
    return x + block.scale_2.gamma * y, weights


def outputs_and_gradients(y, noise, *inputs):
    """y, and the gradients of its product with the noise."""
    return [y, *torch.autograd.grad(y, inputs, noise)]
