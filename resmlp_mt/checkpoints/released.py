"""Published image weights and ours, by the table of `layouts.py`: names and shapes both ways."""

import re
from collections import Counter
from collections.abc import Iterable

from torch import Tensor, nn

from resmlp_mt.checkpoints.layouts import FAMILIES, Family, Key
from resmlp_mt.errors import UserError, name_some
from resmlp_mt.models.fit import list_differences

_FAMILY_NAMES = ", ".join(family.name for family in FAMILIES)
_BLOCK = re.compile(r"(?:stages\.(\d+)\.)?blocks\.(\d+)\.")


def to_format(state_dict: dict[str, Tensor], layout: str) -> dict[str, Tensor]:
    """Give our weights the names and shapes of a published layout.

    Args:
        state_dict: Of an `ImageModel`, with a head or without one.
        layout: A name in LAYOUTS.

    Raises:
        UserError: If the layout cannot hold the model. The message says why.
    """
    refused = f"{layout} weights cannot hold this model"
    family = _find_family(state_dict)
    if family is None:
        raise UserError(f"{refused}: it is none of {_FAMILY_NAMES}")
    if layout not in family.layouts:
        raise UserError(f"{refused}: {family.name} has the layout {' '.join(family.layouts)} alone")
    keys = _keys(family, layout, state_dict)
    if not any(name.startswith("head.") for name in state_dict):
        keys = {ours: key for ours, key in keys.items() if not ours.startswith("head.")}
    if unlike := keys.keys() ^ state_dict.keys():
        obstacles = {name: _find_obstacle(family, name) for name in unlike}
        reasons = sorted({reason for reason in obstacles.values() if reason})
        if others := sorted(name for name, reason in obstacles.items() if not reason):
            reasons.append(f"it differs in {name_some(others, 10)}")
        raise UserError(f"{refused}: {', '.join(reasons)}")
    return {keys[n].name: _shape(tensor, keys[n], 1) for n, tensor in state_dict.items()}


def from_format(weights: dict[str, Tensor]) -> tuple[dict[str, Tensor], str]:
    """The inverse of `to_format`: our weights, and the name of the layout.

    Args:
        weights: As `read_weights` gives them, in a published layout.

    Raises:
        UserError: If the weights are in no published layout, or have a name that it has not.
    """
    family, layout = recognise(weights)
    ours = {key.name: (name, key) for name, key in _keys(family, layout, weights).items()}
    if unknown := [name for name in weights if name not in ours]:
        raise UserError(
            f"not {layout} {family.name} weights; unknown names: {name_some(unknown, 10)}"
        )
    return {ours[n][0]: _shape(t, ours[n][1], -1) for n, t in weights.items()}, layout


def recognise(weights: dict[str, Tensor]) -> tuple[Family, str]:
    """The family, by names that no other has, and the layout that knows most of the names.

    Raises:
        UserError: If the table has no such family.
    """
    if any(".mix_channels." in name for name in weights):
        raise UserError("these are weights of this project already: they need no import")
    found, known = [], set()
    for family in FAMILIES:
        for layout in family.layouts:
            keys = _keys(family, layout, weights)
            names = {key.name for key in keys.values()} & weights.keys()
            if any(family.own.match(ours) and key.name in names for ours, key in keys.items()):
                found.append((len(names), family, layout))
            known |= names
    if found:
        return max(found, key=lambda row: row[0])[1:]
    others = [name for name in weights if name.startswith("blocks.") and name not in known]
    raise UserError(
        f"neither the official ResMLP weights for images nor timm's of {_FAMILY_NAMES}; it "
        f"holds {name_some(others or list(weights), 10)}"
    )


def check_fit(weights: dict[str, Tensor], model: nn.Module) -> None:
    """Compare weights in a published layout with a model, name by name and shape by shape.

    Args:
        weights: As `read_weights` gives them.
        model: An `ImageModel`.

    Raises:
        UserError: Listing all that is missing, unknown or of another shape.
    """
    family, layout = recognise(weights)
    own = model.state_dict()
    of_model = _find_family(own)
    # Names of our own stand for those of a model that has none in this layout.
    named = to_format(own, layout) if of_model and layout in of_model.layouts else own
    expected = {name: tensor.shape for name, tensor in named.items()}
    differences = list_differences({n: t.shape for n, t in weights.items()}, expected)
    if of_model is not family:
        raise UserError(
            f"{layout} {family.name} weights, but the model is of another family:{differences}"
        )
    if differences:
        raise UserError(f"{layout} {family.name} weights, but of another model:{differences}")


def measure(weights: dict[str, Tensor]) -> dict[str, int]:
    """The sizes that weights in a published layout show.

    Returns:
        Some of `positions` (N), `in_chans`, `patch_size`, `embed_dim` (C), `layers` and
        `num_classes` (K; 0 where there is no head at all). Where there are several stages, each has
        its own C and layers.
    """
    family, layout = recognise(weights)
    keys = _keys(family, layout, weights)
    shapes = {n: weights[key.name].shape for n, key in keys.items() if key.name in weights}
    mixers = [n for n in shapes if family.positions and n.endswith(family.positions)]
    mixer = shapes[mixers[0]] if mixers else ()
    kernel, head = shapes.get(family.stem, ()), shapes.get("head.weight", ())
    blocks = {match.groups() for name in shapes if (match := _BLOCK.match(name))}
    stages = Counter(stage for stage, _ in blocks)
    if family.channels:
        names = {f"stages.{i}.{family.channels}" for i in range(len(stages))}
        sizes = {"layers": [stages[str(i)] for i in range(len(stages))]}
        if names <= shapes.keys():
            sizes["embed_dim"] = [shapes[name][0] for name in sorted(names)]
    else:
        sizes = {"layers": len(blocks)}
    if mixer:
        sizes["positions"] = mixer[0]
    if len(kernel) == 4:
        sizes["in_chans"] = kernel[1]
        if not family.channels:
            sizes |= {"embed_dim": kernel[0], "patch_size": kernel[2]}
    if head or "head.bias" not in shapes:
        sizes["num_classes"] = head[0] if head else 0
    return sizes


def _find_family(state_dict: Iterable[str]) -> Family | None:
    """The family that our weights are of."""
    for row in FAMILIES:
        if all(any(map(mark.match, state_dict)) for mark in row.marks):
            return row
    return None


def _find_obstacle(family: Family, name: str) -> str | None:
    return next((text for pattern, text in family.obstacles.items() if pattern.match(name)), None)


def _keys(family: Family, layout: str, state_dict: Iterable[str]) -> dict[str, Key]:
    """Our names, and the layout's keys for them, for the blocks that are in the state dict."""
    matches = (match.groups() for name in state_dict if (match := _BLOCK.match(name)))
    blocks = list(dict.fromkeys((stage or "0", block) for stage, block in matches))
    stages = [(stage, "") for stage in dict.fromkeys(stage for stage, _ in blocks)]
    later = [place for place in stages if place[0] != "0"]
    keys = {}
    for ours, part in family.parts.items():
        key = getattr(part, layout)
        places = [("", "")]
        for sign, known in (("@", stages), ("+", later), ("#", blocks)):
            places = known if sign in ours else places
        for leaf in part.leaves:
            for stage, block in places:
                own, name = (
                    re.sub(r"[@+]", stage, text + leaf).replace("#", block)
                    for text in (ours, key.name)
                )
                keys[own] = key._replace(name=name)
    return keys


def _shape(tensor: Tensor, key: Key, sign: int) -> Tensor:
    """Add the dimensions of size 1 that a layout's tensor has; with a sign of -1 remove them."""
    for place, dims in ((0, sign * key.leading), (-1, sign * key.trailing)):
        for _ in range(abs(dims)):
            tensor = tensor.unsqueeze(place) if dims > 0 else tensor.squeeze(place)
    return tensor
