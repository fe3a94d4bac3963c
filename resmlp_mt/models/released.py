"""Published image weights and ours, by the table of `layouts.py`: names and shapes both ways."""

import re
from collections.abc import Iterable

from torch import Tensor, nn

from resmlp_mt.errors import UserError, name_some
from resmlp_mt.models.fit import list_differences
from resmlp_mt.models.layouts import FAMILIES, LAYOUTS, Family, Key

_BLOCK = re.compile(r"(?:stages\.0\.)?blocks\.(\d+)\.")


def to_format(state_dict: dict[str, Tensor], layout: str) -> dict[str, Tensor]:
    """Give our weights the names and shapes of a published layout.

    Args:
        state_dict: Of a `ResMLPImageModel`, with a head or without one.
        layout: A name in LAYOUTS.

    Raises:
        UserError: If the layout cannot hold the model. The message says why.
    """
    family = max(FAMILIES, key=lambda row: len(_keys(row, layout, state_dict) & state_dict.keys()))
    keys = _keys(family, layout, state_dict)
    if not any(name.startswith("head.") for name in state_dict):
        keys = {ours: key for ours, key in keys.items() if not ours.startswith("head.")}
    if unlike := keys.keys() ^ state_dict.keys():
        obstacles = {name: _find_obstacle(family, name) for name in unlike}
        reasons = sorted({reason for reason in obstacles.values() if reason})
        if others := sorted(name for name, reason in obstacles.items() if not reason):
            reasons.append(f"it differs in {name_some(others, 10)}")
        raise UserError(f"{layout} weights cannot hold this model: {', '.join(reasons)}")
    return {keys[n].name: _lead(tensor, keys[n].leading) for n, tensor in state_dict.items()}


def from_format(weights: dict[str, Tensor]) -> tuple[dict[str, Tensor], str]:
    """The inverse of `to_format`: our weights, and the name of the layout.

    Args:
        weights: As `read_weights` gives them, in a published layout.

    Raises:
        UserError: If this is no such layout, or has a name that is not in it.
    """
    family, layout = recognise(weights)
    ours = {key.name: (name, key) for name, key in _keys(family, layout, weights).items()}
    if unknown := [name for name in weights if name not in ours]:
        raise UserError(
            f"not {layout} {family.name} weights; unknown names: {name_some(unknown, 10)}"
        )
    return {ours[n][0]: _lead(t, -ours[n][1].leading) for n, t in weights.items()}, layout


def recognise(weights: dict[str, Tensor]) -> tuple[Family, str]:
    """The family, and the layout from the names that the others do not have.

    Raises:
        UserError: If it is none of the table.
    """
    if any(".mix_channels." in name for name in weights):
        raise UserError("these are weights of this project already: they need no import")
    theirs = {
        (family.name, layout): {key.name for key in _keys(family, layout, weights).values()}
        for family in FAMILIES
        for layout in LAYOUTS
    }
    common = set.intersection(*theirs.values())
    found = {which: len(names & weights.keys() - common) for which, names in theirs.items()}
    name, layout = max(found, key=found.get)
    if found[name, layout]:
        family = next(family for family in FAMILIES if family.name == name)
        _check_family(weights, family, layout)
        return family, layout
    names = " and ".join(family.name for family in FAMILIES)
    holds = name_some(list(weights), 10)
    raise UserError(f"neither the official {names} weights for images nor timm's; it holds {holds}")


def check_fit(weights: dict[str, Tensor], model: nn.Module) -> None:
    """Compare weights in a published layout with a model, name by name and shape by shape.

    Args:
        weights: As `read_weights` gives them.
        model: A `ResMLPImageModel`.

    Raises:
        UserError: Listing all that is missing, unknown or of another shape.
    """
    family, layout = recognise(weights)
    expected = {n: t.shape for n, t in to_format(model.state_dict(), layout).items()}
    if differences := list_differences({n: t.shape for n, t in weights.items()}, expected):
        raise UserError(f"{layout} {family.name} weights, but of another model:{differences}")


def measure(weights: dict[str, Tensor]) -> dict[str, int]:
    """The sizes that can be seen from weights in a published layout.

    Returns:
        Some of `positions` (N), `in_chans`, `patch_size`, `embed_dim` (C), `layers` and
        `num_classes` (K; 0 where there is no head at all).
    """
    keys = _keys(*recognise(weights), weights)
    shapes = {n: weights[key.name].shape for n, key in keys.items() if key.name in weights}
    matrix = next((shape for name, shape in shapes.items() if ".matrix." in name), ())
    kernel, head = (shapes.get(f"{part}.weight", ()) for part in ("stem.proj", "head"))
    sizes = {"layers": len({match.group(1) for name in shapes if (match := _BLOCK.match(name))})}
    if matrix:
        sizes["positions"] = matrix[0]
    if len(kernel) == 4:
        sizes |= {"embed_dim": kernel[0], "in_chans": kernel[1], "patch_size": kernel[2]}
    if head or "head.bias" not in shapes:
        sizes["num_classes"] = head[0] if head else 0
    return sizes


def _check_family(weights: dict[str, Tensor], family: Family, layout: str) -> None:
    """Refuse other families, whose patch embedding and MLPs have the same names.

    Raises:
        UserError: If nothing is there that only this family has.
    """
    keys = _keys(family, layout, weights)
    if not any(family.own.match(n) and key.name in weights for n, key in keys.items()):
        known = {key.name for key in keys.values()}
        others = [n for n in weights if n.startswith("blocks.") and n not in known]
        raise UserError(
            f"weights of another family of models than {family.name}; they hold "
            f"{name_some(others or list(weights))}"
        )


def _find_obstacle(family: Family, name: str) -> str | None:
    return next((text for pattern, text in family.obstacles.items() if pattern.match(name)), None)


def _keys(family: Family, layout: str, state_dict: Iterable[str]) -> dict[str, Key]:
    """Our names, and the layout's keys for them, for the blocks that are in the state dict."""
    blocks = {match.group(1): None for name in state_dict if (match := _BLOCK.match(name))}
    keys = {}
    for ours, part in family.parts.items():
        key = getattr(part, layout)
        for leaf in part.leaves:
            for number in blocks if "#" in ours else [""]:
                name = (key.name + leaf).replace("#", number)
                keys[(ours + leaf).replace("#", number)] = Key(name, key.leading)
    return keys


def _lead(tensor: Tensor, dims: int) -> Tensor:
    """Add so many dimensions of size 1 at the beginning; if negative, remove them."""
    for _ in range(abs(dims)):
        tensor = tensor.unsqueeze(0) if dims > 0 else tensor.squeeze(0)
    return tensor
