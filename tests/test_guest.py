"""What a program sees of itself after it has imported `Translator` and translated."""

import subprocess
import sys

from cli.commands import ENVIRONMENT

PROGRAM = """
import logging, signal, sys, warnings, torch

def look():
    signals = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    root = logging.getLogger()
    hooks = sys.excepthook, sys.unraisablehook, warnings.showwarning
    return root.level, root.handlers[:], signals, hooks, torch.get_num_threads()

before = look()
from resmlp_mt import Translator
translator = Translator.from_pretrained("multi30k-en-de")
assert translator.translate("A man rides a bike.")
assert look() == before, (before, look())
with warnings.catch_warnings(record=True) as caught:
    warnings.warn("'pin_memory' argument is set as true but no accelerator is found")
    warnings.warn("hydra.experimental.compose() is no longer experimental")
assert len(caught) == 2
"""


def test_a_program_that_imports_a_translator_stays_as_it_was():
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == result.stdout == ""
