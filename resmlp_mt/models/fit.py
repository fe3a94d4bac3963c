"""The differences of a state dict from a model that it does not fit."""

from collections.abc import Iterable, Mapping

from resmlp_mt.errors import name_some


def list_differences(found: Mapping[str, Iterable], expected: Mapping[str, Iterable]) -> str:
    """The weights that are missing, unknown or of another shape, a line each; empty if all fit.

    Args:
        found, expected: The shapes of the weights, by name.
    """
    found, expected = ({n: tuple(s) for n, s in shapes.items()} for shapes in (found, expected))
    lists = {
        "missing": [name for name in expected if name not in found],
        "unknown": [name for name in found if name not in expected],
        "of another shape": [
            f"{name} {found[name]} instead of {shape}"
            for name, shape in expected.items()
            if found.get(name, shape) != shape
        ],
    }
    return "".join(f"\n  {what}: {name_some(names, 10)}" for what, names in lists.items() if names)
