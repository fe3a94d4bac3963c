"""Sequence-to-sequence ResMLP as a fairseq plugin: `--user-dir resmlp_mt`."""

__version__ = "0.1.0"

from resmlp_mt import compat  # noqa: F401
from resmlp_mt.models import translation  # noqa: F401
