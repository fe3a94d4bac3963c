"""ResMLP's published image weights: their names for ours, and the files that hold them.

"official" is the layout of facebookresearch/deit, "timm" that of huggingface/pytorch-image-models.
Both have the released form alone: the linear mixer, Affine for a norm, average pooling.
"""

import errno
import logging
import pickle
import re
import warnings
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from resmlp_mt.errors import UserError, name_some, refused_class
from resmlp_mt.models.fit import list_differences

logger = logging.getLogger(__name__)
LAYOUTS = ("official", "timm")
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".tar")

# What a training calls its weights, and their moving average; the outer name first.
_PLAIN, _AVERAGES = ("model", "state_dict"), ("model_ema", "state_dict_ema")
_LINEAR = (".weight", ".bias")
_AFFINE = (".alpha", ".beta")
# Our name, the official one, timm's, and how they go on; # is the number of a block.
_PARTS = (
    ("embed.proj", "patch_embed.proj", "stem.proj", _LINEAR),
    ("blocks.#.norm_1", "blocks.#.norm1", "blocks.#.norm1", _AFFINE),
    ("blocks.#.mix_tokens.matrix", "blocks.#.attn", "blocks.#.linear_tokens", _LINEAR),
    ("blocks.#.scale_1.gamma", "blocks.#.gamma_1", "blocks.#.ls1", ("",)),
    ("blocks.#.norm_2", "blocks.#.norm2", "blocks.#.norm2", _AFFINE),
    ("blocks.#.mix_channels.fc1", "blocks.#.mlp.fc1", "blocks.#.mlp_channels.fc1", _LINEAR),
    ("blocks.#.mix_channels.fc2", "blocks.#.mlp.fc2", "blocks.#.mlp_channels.fc2", _LINEAR),
    ("blocks.#.scale_2.gamma", "blocks.#.gamma_2", "blocks.#.ls2", ("",)),
    ("pool.norm", "norm", "norm", _AFFINE),
    ("head", "head", "head", _LINEAR),
)
_BLOCK = re.compile(r"blocks\.(\d+)\.")
# What a name of ours says that is not in the released form, or is there alone.
_OBSTACLES = {
    re.compile(r"blocks\.\d+\.mix_tokens\."): "its token mixer is not 'linear'",
    re.compile(r"(blocks\.\d+|pool)\.norm"): "its norm is not 'affine'",
    re.compile(r"pool\."): "its pooling is not 'average'",
    re.compile(r"head\."): "its head is not one linear layer",
}


def to_format(state_dict: dict[str, Tensor], layout: str) -> dict[str, Tensor]:
    """Our weights as a published layout names and shapes them.

    Args:
        state_dict: Of a `ResMLPImageModel`, with a head or without one.
        layout: A name in LAYOUTS.

    Raises:
        UserError: If the layout has no place for the model, naming what stands against it.
    """
    names = _names(layout, state_dict)
    if not any(name.startswith("head.") for name in state_dict):
        names = {ours: name for ours, name in names.items() if not ours.startswith("head.")}
    if unlike := names.keys() ^ state_dict.keys():
        found = {n: next((o for p, o in _OBSTACLES.items() if p.match(n)), None) for n in unlike}
        obstacles = sorted({obstacle for obstacle in found.values() if obstacle})
        if others := sorted(name for name, obstacle in found.items() if not obstacle):
            obstacles.append(f"it differs in {name_some(others, 10)}")
        raise UserError(f"{layout} weights cannot hold this model: {', '.join(obstacles)}")
    return {names[n]: _to_theirs(n, tensor, layout) for n, tensor in state_dict.items()}


def from_format(state_dict: dict) -> tuple[dict[str, Tensor], str]:
    """The inverse of `to_format`: our weights, and the name of the layout.

    Args:
        state_dict: Weights in a published layout, maybe wrapped as `unwrap` knows.

    Raises:
        UserError: If this is neither layout, or has a name that is not in it.
    """
    weights = unwrap(state_dict)
    layout = recognise(weights)
    ours = {theirs: name for name, theirs in _names(layout, weights).items()}
    if unknown := [name for name in weights if name not in ours]:
        raise UserError(f"not {layout} ResMLP weights; unknown names: {name_some(unknown, 10)}")
    return {ours[n]: _to_ours(ours[n], tensor, layout) for n, tensor in weights.items()}, layout


def recognise(weights: dict[str, Tensor]) -> str:
    """The layout, from the names that the other one does not have.

    Raises:
        UserError: If it is none of LAYOUTS.
    """
    theirs = {layout: set(_names(layout, weights).values()) for layout in LAYOUTS}
    common = set.intersection(*theirs.values())
    found = {layout: len(names & weights.keys() - common) for layout, names in theirs.items()}
    best = max(found, key=found.get)
    if found[best]:
        _check_family(weights, best)
        return best
    if "embed.proj.weight" in weights:
        raise UserError("these are weights of this project already: they need no import")
    holds = name_some(list(weights), 10)
    raise UserError(f"neither the official ResMLP weights for images nor timm's; it holds {holds}")


def check_fit(weights: dict[str, Tensor], model: nn.Module) -> None:
    """Compare weights in a published layout with a model, name by name and shape by shape.

    Args:
        weights: As `read_weights` gives them.
        model: A `ResMLPImageModel`.

    Raises:
        UserError: Listing all that is missing, unknown or of another shape.
    """
    layout = recognise(weights)
    expected = {n: t.shape for n, t in to_format(model.state_dict(), layout).items()}
    if differences := list_differences({n: t.shape for n, t in weights.items()}, expected):
        raise UserError(f"{layout} ResMLP weights, but of another model:{differences}")


def measure(weights: dict[str, Tensor]) -> dict[str, int]:
    """Sizes that weights in a published layout tell, as far as they hold the parts to see it.

    Returns:
        Some of `positions` (N), `in_chans`, `patch_size`, `embed_dim` (C), `layers` and
        `num_classes` (K; 0 where there is no head at all).
    """
    names = _names(recognise(weights), weights)
    shapes = {name: weights[theirs].shape for name, theirs in names.items() if theirs in weights}
    matrix = next((shape for name, shape in shapes.items() if ".matrix." in name), ())
    kernel, head = (shapes.get(f"{part}.weight", ()) for part in ("embed.proj", "head"))
    sizes = {"layers": len({name.split(".")[1] for name in shapes if name.startswith("blocks.")})}
    if matrix:
        sizes["positions"] = matrix[0]
    if len(kernel) == 4:
        sizes |= {"embed_dim": kernel[0], "in_chans": kernel[1], "patch_size": kernel[2]}
    if head or "head.bias" not in shapes:
        sizes["num_classes"] = head[0] if head else 0
    return sizes


def read_weights(path: Path, ema: bool | None = None) -> dict[str, Tensor]:
    """The tensors of a file, by name. No code that the file may hold is run.

    Args:
        path: Ends in one of SUFFIXES, which says how it is read.
        ema: As for `unwrap`.

    Raises:
        UserError: If the file cannot be read, may not be, or holds something else.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"{path}: weights are read from files that end in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        with warnings.catch_warnings(action="ignore"):  # torch's, of what is refused anyway
            if suffix == ".safetensors":
                content = load_file(path)
            else:
                content = torch.load(path, map_location="cpu", weights_only=True)
        return unwrap(content, ema)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # the disk's trouble, not the file's
            raise
        raise UserError(f"{path}: {_explain(error)}") from None
    except Exception as error:  # a damaged pickle can raise any
        raise UserError(f"{path}: {_explain(error)}") from None


def unwrap(content: object, ema: bool | None = None) -> dict[str, Tensor]:
    """The weights themselves, without the training's wrapper and its prefix `module.`.

    Args:
        content: What a training saved.
        ema: Take the moving average of the weights; None: where there is one, as timm does, which
            is logged.

    Raises:
        UserError: If something in it is no weight, or there is no average and one is asked for.
    """
    averages = [
        key
        for key in _AVERAGES
        if isinstance(content, dict) and isinstance(content.get(key), dict) and content[key]
    ]
    if ema and not averages:
        raise UserError(f"it holds no moving average ({' or '.join(_AVERAGES)})")
    if averages and ema is None:
        logger.warning("took %s, the moving average; --no-ema takes the others", averages[0])
    for key in _PLAIN if ema is False else [*averages[:1], *_PLAIN]:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not content:
        raise UserError("it holds no weights by their names")
    others = [f"{n} ({_kind(v)})" for n, v in content.items() if not _is_weight(n, v)]
    if others:
        raise UserError(f"it holds what are no weights: {name_some(others, 10)}")
    if all(name.startswith("module.") for name in content):
        return {name.removeprefix("module."): tensor for name, tensor in content.items()}
    return dict(content)


def _check_family(weights: dict[str, Tensor], layout: str) -> None:
    """Refuse other families, whose patch embedding and MLPs have the same names.

    Raises:
        UserError: If nothing is there that only ResMLP has: A, or an Aff within a block.
    """
    names = _names(layout, weights).items()
    own = {n for o, n in names if ".matrix." in o or ".norm_" in o}
    if not own & weights.keys():
        others = [n for n in weights if n.startswith("blocks.") and n not in dict(names).values()]
        raise UserError(
            "weights of another family of models than ResMLP; they hold "
            f"{name_some(others or list(weights))}"
        )


def _names(layout: str, state_dict: Iterable[str]) -> dict[str, str]:
    """Our names and the layout's, for the blocks that are in the state dict."""
    column = 1 + LAYOUTS.index(layout)
    blocks = {match.group(1): None for name in state_dict if (match := _BLOCK.match(name))}
    return {
        (part[0] + leaf).replace("#", number): (part[column] + leaf).replace("#", number)
        for part in _PARTS
        for leaf in part[3]
        for number in (blocks if "#" in part[0] else [""])
    }


def _to_theirs(name: str, tensor: Tensor, layout: str) -> Tensor:
    if ".matrix." in name:
        return tensor.squeeze(0)  # of one head
    if layout == "timm" and name.endswith(_AFFINE):
        return tensor.view(1, 1, -1)
    return tensor


def _to_ours(name: str, tensor: Tensor, layout: str) -> Tensor:
    if ".matrix." in name:
        return tensor.unsqueeze(0)
    if layout == "timm" and name.endswith(_AFFINE):
        return tensor.flatten()
    return tensor


def _is_weight(name: object, value: object) -> bool:
    return isinstance(name, str) and isinstance(value, Tensor) and value.is_floating_point()


def _kind(value: object) -> str:
    return str(value.dtype) if isinstance(value, Tensor) else type(value).__name__


def _explain(error: Exception) -> str:
    """Why a file could not be read."""
    text = str(error)
    if name := refused_class(text):
        return (
            f"refused, since it holds pickled code or objects ({name}) that could run "
            "commands on this computer; ask for the same weights as .safetensors"
        )
    if "weights_only" in text and not isinstance(error, pickle.UnpicklingError):
        return "refused: TorchScript and torch's old tar files can hold code; save a state dict"
    if isinstance(error, pickle.UnpicklingError):
        return "no weights that can be read without running code from the file, or corrupt"
    reason = re.split(r"\.\s|\n", text)[0] or "it ends too early"
    return f"truncated or corrupt weights ({reason}); download or copy it again"
