"""Losses that fairseq lacks."""

from resmlp_mt.criterions import image_classification  # noqa: F401
