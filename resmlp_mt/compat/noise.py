"""What fairseq says on today's libraries that no user can act on."""

import importlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

# Said by every fairseq command on today's libraries, and nothing that a user could act on.
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
)


def silence_noise() -> None:
    """Drop the warnings in _NOISE, and no others; take back fairseq's logging of all libraries."""
    for message in _NOISE:
        warnings.filterwarnings("ignore", message=message)
    # Importing fairseq's speech models sets the root logger to DEBUG.
    if logging.getLogger().level == logging.DEBUG:
        logging.getLogger().setLevel(logging.INFO)


# What fairseq imports for the scores of tasks that are not ours, a quarter of its own time.
_LATER = ("sklearn", "sklearn.metrics", "scipy", "scipy.stats")


class _Importing:
    """The threads that import fairseq. What is kept from them is not kept from others.

    A program may load a model in one thread while another sets up logging, or imports SciPy.
    """

    def __init__(self):
        self.threads: list[int] = []  # one twice where it imports within an import
        self.lock = threading.RLock()
        self.configure = logging.basicConfig

    def here(self) -> bool:
        """Whether this thread is one of them."""
        return threading.get_ident() in self.threads

    def enter(self) -> None:
        """Begin to keep things from this thread."""
        with self.lock:
            if not self.threads:
                self.configure, logging.basicConfig = logging.basicConfig, _configure
                if not any(name in sys.modules for name in _LATER):
                    sys.modules.update({name: _Later(name) for name in _LATER})
            self.threads.append(threading.get_ident())

    def leave(self) -> None:
        """End it."""
        with self.lock:
            self.threads.remove(threading.get_ident())
            if not self.threads:
                self.forget_later()
                if logging.basicConfig is _configure:
                    logging.basicConfig = self.configure

    def forget_later(self) -> None:
        """Let the next import of what stands for a module import it."""
        with self.lock:
            for name in _LATER:
                if isinstance(sys.modules.get(name), _Later):
                    del sys.modules[name]


_importing = _Importing()


def _configure(**options) -> None:
    """Set up the root logger, unless it is fairseq that asks."""
    if not _importing.here():
        _importing.configure(**options)


class _Later(ModuleType):
    """Stands for a module whose functions import it when they are called.

    Whoever imports fairseq gets it. Everyone else gets the module at once.
    """

    def __getattr__(self, name: str):
        if not _importing.here():
            _importing.forget_later()
            return getattr(importlib.import_module(self.__name__), name)
        if name.startswith("__"):
            raise AttributeError(name)
        if standing := sys.modules.get(f"{self.__name__}.{name}"):
            return standing

        def call(*args, **kwargs):
            return getattr(importlib.import_module(self.__name__), name)(*args, **kwargs)

        return call


@contextmanager
def quiet_import() -> Iterator[None]:
    """Import fairseq, whose speech models set up the root logger and ask for tensorboardX.

    What it needs for the scores of other tasks is imported when one of them is computed.
    """
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    _importing.enter()
    try:
        yield
    finally:
        _importing.leave()
