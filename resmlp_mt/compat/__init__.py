"""The seam to fairseq and torch of today: the mends that they need, and their messages.

fairseq imports this plugin while it parses the command line, before it loads any checkpoint and
before hydra composes the configuration, so that the mends of this room hold for all commands.
docs/patches.md lists every function that is replaced. Of the modules without patches messages,
programs and noise need neither fairseq nor torch.
"""

import importlib

from resmlp_mt.compat.noise import quiet_import, silence_noise
from resmlp_mt.compat.programs import exit_with_explanation, is_program


def mend() -> None:
    """Put everything right; the second time changes nothing.

    Raises:
        UserError: If this fairseq is not known.
    """
    exit_with_explanation()
    if is_program():  # the warnings of others are theirs
        silence_noise()
    with quiet_import():
        for name in ("checkpoints", "flags", "resuming", "saving", "trainer", "workers"):
            importlib.import_module(f"resmlp_mt.compat.{name}")
    importlib.import_module("resmlp_mt.compat.archives").allow_harmless_classes()
    importlib.import_module("resmlp_mt.compat.patching").apply()
