"""What fairseq says on today's libraries that no user can act on."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

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
)


def silence_noise() -> None:
    """Drop the warnings in _NOISE, and no others; take back fairseq's logging of all libraries."""
    for message in _NOISE:
        warnings.filterwarnings("ignore", message=message)
    # Importing fairseq's speech models sets the root logger to DEBUG.
    if logging.getLogger().level == logging.DEBUG:
        logging.getLogger().setLevel(logging.INFO)


@contextmanager
def quiet_import() -> Iterator[None]:
    """Import fairseq, whose speech models set up the root logger and ask for tensorboardX."""
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
