"""Sequence-to-sequence ResMLP as a fairseq plugin: `--user-dir resmlp_mt`.

Importing the package registers the plugin. Without fairseq, `resmlp_mt.nn` can still be imported.
"""

import sys
from importlib.util import find_spec

from resmlp_mt import starting

__version__ = "0.1.0"
__all__ = ["Classifier", "Translator"]

if starting.is_our_command():
    starting.start()

if find_spec("fairseq"):
    try:
        from resmlp_mt import compat

        compat.apply()
        from resmlp_mt import criterions, models, optim, tasks  # noqa: F401
    except Exception:
        # A torch or fairseq that does not import, which `resmlp-mt doctor` has to live to tell.
        if sys.argv[1:] != ["doctor"]:
            raise


def __getattr__(name: str):
    # On first use: training needs neither.
    if name == "Translator":
        from resmlp_mt.inference.translator import Translator

        return Translator
    if name == "Classifier":
        from resmlp_mt.inference.classifier import Classifier

        return Classifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
