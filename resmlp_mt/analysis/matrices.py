"""The matrices of a trained model, as figures 2 and 3 of ResMLP (arXiv 2105.03404) show them.

A mixes positions; B and C are the first and the second matrix of the channel MLP. Legend of
shapes: H mixing heads, N positions, W weights.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from resmlp_mt.compat.checkpoints import find_and_read
from resmlp_mt.errors import UserError
from resmlp_mt.nn.mixers import FreeMatrix, ToeplitzMatrix

_BLOCK = re.compile(r"(?:(encoder|decoder)|stages\.(\d+))\.blocks\.(\d+)\.(.+)")
# name within a block: matrix
_LETTERS = {
    "mix_tokens.matrix.weight": "A",
    "mix_tokens.mix.matrix.weight": "A",
    "mix_channels.gate.mix_tokens.matrix.weight": "A",
    "mix_channels.fc1.weight": "B",
    "mix_channels.fc2.weight": "C",
}


@dataclass
class Part:
    """A stack of blocks.

    Attributes:
        name: encoder, decoder or, of a classifier, image.
        layers: For each block its parameters by letter: A, unless its token mixer has none, as
            (H, N, N) or, where a weight stands for a distance, (H, W); B and C.
    """

    name: str
    layers: list[dict[str, Tensor]]

    @property
    def causal(self) -> bool:
        """Whether only the lower triangle of A acts."""
        return self.name == "decoder"


@dataclass
class Sparsity:
    """The share of a matrix's weights that are small beside its largest."""

    part: str
    layer: int
    matrix: str
    share: float
    weights: int


def read_matrices(model: str | Path) -> tuple[str, list[Part]]:
    """Read a model's matrices from its checkpoint; its data are not needed.

    Returns:
        The name of its token mixer, and its encoder and decoder, or its one stack for images.

    Raises:
        UserError: If there is no such model, or it is no ResMLP, or its training diverged.
    """
    path, state = find_and_read(model)
    found: dict[str, dict[tuple[int, int], dict[str, Tensor]]] = {}
    for name, tensor in (state.get("model") or {}).items():
        block = _BLOCK.fullmatch(name)
        if block is None or block[4] not in _LETTERS:
            continue
        if not tensor.isfinite().all():
            raise UserError(f"{path}: {name} holds values that are no numbers; training diverged")
        letter, shape = _LETTERS[block[4]], tuple(tensor.shape)
        # Of a `ToeplitzMatrix`, or of a `FreeMatrix`.
        if letter == "A" and len(shape) != 2 and (len(shape) != 3 or shape[1] != shape[2]):
            raise UserError(f"{path}: {name}, {shape}, is no weight for each pair of positions")
        layers = found.setdefault(block[1] or "image", {})
        place = int(block[2] or 0), int(block[3])
        layers.setdefault(place, {})[letter] = tensor.float()
    cfg = getattr(state.get("cfg"), "model", None)
    if not found:
        raise UserError(
            f"{path}: no blocks of ResMLP in it; its model is '{getattr(cfg, '_name', 'unknown')}'"
        )
    parts = [
        Part(name, [found[name][i] for i in sorted(found[name])])
        for name in ("encoder", "decoder", "image")
        if name in found
    ]
    kind = getattr(cfg, "_name", "unknown")  # a model that has but one token mixer
    return str(getattr(cfg, "token_mixer", kind)), parts


def read_axis_weights(model: str | Path) -> list[tuple[Tensor, Tensor]]:
    """AdaFC's W of each stage, as softmax makes shares of it, the mean over its channels.

    Returns:
        For each stage, of how far a position looks down the rows, (rows,), and along the columns,
        (columns,). Distance 0 stands in the middle, at P // 2 of P.

    Raises:
        UserError: If there is no such model, or it is no AdaFC.
    """
    path, state = find_and_read(model)
    weights = state.get("model") or {}
    names = [f"stages.{i}.shared." for i in range(len(weights))]
    names = [name for name in names if f"{name}vertical" in weights]
    if not names:
        raise UserError(f"{path}: no AdaFC: its stages share no weights between positions")
    ways = [(weights[f"{name}vertical"], weights[f"{name}horizontal"]) for name in names]
    shares = [[weight.float().softmax(1).mean(0) for weight in pair] for pair in ways]
    return [tuple(share.roll(len(share) // 2) for share in pair) for pair in shares]


def expand(weight: Tensor, causal: bool, positions: int) -> Tensor:
    """A between the first positions, whatever it is stored as.

    Args:
        weight: The parameter of a `FreeMatrix` or of a `ToeplitzMatrix`. (H, N, N) or (H, W).
        causal: Whether the matrix is.
        positions: How many to show; fewer if A has fewer.

    Returns:
        A, zero where nothing acts. (H, positions, positions).
    """
    free = weight.dim() == 3
    longest = weight.size(-1) if free or causal else (weight.size(-1) + 1) // 2
    with torch.device("meta"):  # what it would start with is not needed
        kind = FreeMatrix if free else ToeplitzMatrix
        matrix = kind(longest, weight.size(0), causal, init_std=1.0)
    matrix.load_state_dict({"weight": weight}, strict=False, assign=True)
    return matrix(0, min(positions, longest))[0].detach()


def central_rows(matrix: Tensor, most: int) -> Tensor:
    """The rows of a classifier's A that belong to its central patches, each as an image (figure 2).

    Args:
        matrix: A over the patches of a square grid with G patches a side. (N = G G, N).
        most: K, the central patches a side; G if the grid has fewer.

    Returns:
        [r, c, i, j]: the weight of patch (i, j) for the central patch (r, c). (K, K, G, G).
    """
    grid = math.isqrt(len(matrix))
    count = min(most, grid)
    central = slice((grid - count) // 2, (grid - count) // 2 + count)
    return matrix.unflatten(1, (grid, grid)).unflatten(0, (grid, grid))[central, central]


def mosaic(tiles: Tensor) -> Tensor:
    """Lay images out in rows and columns: (R, S, height, width) -> (R height, S width)."""
    return tiles.transpose(1, 2).flatten(2).flatten(0, 1)


def arrange_heads(heads: Tensor) -> Tensor:
    """Set a layer's heads in rows and columns, as near to a square as they fill without a rest.

    Args:
        heads: Maps of A. (H, N, N).

    Returns:
        Shape: (R, H / R, N, N).
    """
    rows = max(r for r in range(1, math.isqrt(len(heads)) + 1) if len(heads) % r == 0)
    return heads.unflatten(0, (rows, -1))


def acting_weights(letter: str, weight: Tensor, causal: bool) -> Tensor:
    """The parameters of A, B or C that act, a row for each matrix. (H, W); for B and C (1, W)."""
    if letter != "A":
        return weight.reshape(1, -1)
    if causal and weight.dim() == 3:  # what lies above the diagonal is never used
        rows, columns = torch.tril_indices(*weight.shape[1:])
        return weight[:, rows, columns]
    return weight.flatten(1)


def find_matrix(name: str) -> tuple[str, str] | None:
    """The part and the letter of a parameter's name, or None where it is no such matrix."""
    block = _BLOCK.fullmatch(name)
    return block and block[4] in _LETTERS and (block[1] or "image", _LETTERS[block[4]]) or None


def share_of_small(weights: Tensor, threshold: float) -> float:
    """The share of weights below `threshold` times the largest of their row, in absolute value.

    Args:
        weights: A matrix a row. (H, W).
        threshold: 0.05 in the paper.
    """
    sizes = weights.double().abs()
    return (sizes < threshold * sizes.amax(1, keepdim=True)).double().mean().item()


def measure_sparsity(parts: list[Part], threshold: float) -> list[Sparsity]:
    """Measure every matrix of every layer (figure 3). Each head of A has its own largest weight."""
    rows = []
    for part in parts:
        for layer, matrices in enumerate(part.layers):
            for letter in sorted(matrices):
                weights = acting_weights(letter, matrices[letter], part.causal)
                share = share_of_small(weights, threshold)
                rows.append(Sparsity(part.name, layer, letter, share, weights.numel()))
    return rows
