"""How a function of fairseq is replaced."""

import functools


def patch(owner, name: str):
    """Decorate what shall stand in place of `owner.name`; it gets the original as first argument.

    What was replaced before stays: applying a patch twice changes nothing.
    """
    original = getattr(owner, name)

    def install(replacement):
        if not hasattr(original, "replaced"):

            @functools.wraps(original)
            def patched(*args, **kwargs):
                return replacement(original, *args, **kwargs)

            patched.replaced = original
            setattr(owner, name, patched)

    return install
