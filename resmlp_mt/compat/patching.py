"""How a function of fairseq is replaced."""

import functools


def patch(owner, name: str):
    """Decorate what shall stand in place of `owner.name`; it gets the original as first argument.

    Applying the same patch twice changes nothing. Another one of the same function gets the first
    as its original.
    """
    original = getattr(owner, name)
    installed = getattr(original, "patches", ())

    def install(replacement):
        patch_name = f"{replacement.__module__}.{replacement.__qualname__}"
        if patch_name not in installed:

            @functools.wraps(original)
            def patched(*args, **kwargs):
                return replacement(original, *args, **kwargs)

            patched.replaced, patched.patches = original, (*installed, patch_name)
            setattr(owner, name, patched)

    return install
