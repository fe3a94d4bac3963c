"""Sequence-to-sequence ResMLP: translation and image classification without self-attention.

A fairseq plugin. This package itself imports neither torch nor fairseq, so that exported models run
without them. Where fairseq is imported too, before or after, everything is registered with it:
`resmlp_mt.plugin` does that.
"""

import importlib
import os
import sys

# Else ONNX Runtime reports to its maker from the moment when it is imported: it makes an identity
# and a database in ~/.cache, and a thread that asks the network. Whoever wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

TYPE_CHECKING = False  # known to type checkers; typing is slow to import
if TYPE_CHECKING:  # which is what `__getattr__` returns
    from resmlp_mt.engines.classifier import Classifier as Classifier
    from resmlp_mt.engines.classifier import Prediction as Prediction
    from resmlp_mt.engines.options import SearchOptions as SearchOptions
    from resmlp_mt.errors import UserError as UserError
    from resmlp_mt.translating.hypotheses import Hypothesis as Hypothesis
    from resmlp_mt.translating.translator import Translator as Translator

__version__ = "0.1.0"
__all__ = ["Classifier", "Hypothesis", "Prediction", "SearchOptions", "Translator", "UserError"]

_MODULES = {
    "Classifier": "resmlp_mt.engines.classifier",
    "Hypothesis": "resmlp_mt.translating.hypotheses",
    "Prediction": "resmlp_mt.engines.classifier",
    "SearchOptions": "resmlp_mt.engines.options",
    "Translator": "resmlp_mt.translating.translator",
    "UserError": "resmlp_mt.errors",
}


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # On first use, since most of them take other packages.
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _RegisterLater:
    """Sees fairseq imported, and registers the plugin behind it: the one hook of its kind.

    What the plugin mends must hold before the first checkpoint is loaded, whatever imports fairseq
    first: one of our modules, of which any can be the first import, or a program that has imported
    `Translator`. An import of the plugin in the place of the hook would have to stand before each
    import of fairseq, in theirs too, and make those wait who never need it.
    """

    def find_spec(self, fullname, path, target=None):
        """The usual spec of fairseq, whose module then registers the plugin; of others, none."""
        if fullname != "fairseq":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("fairseq")
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module) -> None:
                compat = importlib.import_module("resmlp_mt.compat")
                if compat.is_program():
                    compat.silence_noise()
                with compat.quiet_import():
                    execute(module)
                importlib.import_module("resmlp_mt.plugin")

            spec.loader.exec_module = execute_and_register
        return spec


if sys.modules.get("fairseq"):
    importlib.import_module("resmlp_mt.plugin")
else:
    sys.meta_path.insert(0, _RegisterLater())
