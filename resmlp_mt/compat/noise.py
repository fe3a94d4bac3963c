"""Warnings of fairseq on today's libraries that no user can act on."""

import importlib
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

# Warnings of every fairseq command on today's libraries, on which no user could act.
_NOISE = (
    r"hydra\.experimental\.\w+\(\) is no longer experimental",
    r"\s*The version_base parameter is not specified",
    r"In '.*': Usage of deprecated keyword in package header",
    r"\s*'.*' is validated against ConfigStore schema with the same name",
    r"\s*The strict flag in the compose API is deprecated",
    r"`torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"Support for mismatched key_padding_mask and attn_mask is deprecated",
    r"enable_nested_tensor is True, but",
    r"The PyTorch API of nested tensors is in prototype stage",
    r"amp_C fused kernels unavailable",
    r"`torch\.jit\.\w+` is (not supported in Python|deprecated)",
    r"`broadcast_buffers` is deprecated",
)


def silence_noise() -> None:
    """Drop the warnings in _NOISE, and no others; take back fairseq's logging of all libraries."""
    for message in _NOISE:
        warnings.filterwarnings("ignore", message=message)
    # Importing fairseq's speech models sets the root logger to DEBUG.
    if logging.getLogger().level == logging.DEBUG:
        logging.getLogger().setLevel(logging.INFO)


# Modules that fairseq imports for the scores of other tasks, in a third of its own time.
_LATER = ("sklearn", "sklearn.metrics", "scipy", "scipy.stats")


class _Later(ModuleType):
    """Stands for a module while fairseq is imported; its functions import it when called."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if standing := sys.modules.get(f"{self.__name__}.{name}"):
            return standing

        def call(*args, **kwargs):
            return getattr(importlib.import_module(self.__name__), name)(*args, **kwargs)

        return call


@contextmanager
def quiet_import() -> Iterator[None]:
    """Import fairseq, whose speech models set up the root logger and ask for tensorboardX."""
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    root, here = logging.getLogger(), {}
    before = root.handlers[:], root.level
    if not any(name in sys.modules for name in _LATER):
        sys.modules.update(here := {name: _Later(name) for name in _LATER})
    try:
        yield
    finally:
        for name in here:
            sys.modules.pop(name, None)
        root.handlers[:], root.level = before
