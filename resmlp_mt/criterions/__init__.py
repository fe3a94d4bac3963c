"""Losses that fairseq lacks."""

from resmlp_mt.criterions import dino, image_classification  # noqa: F401
