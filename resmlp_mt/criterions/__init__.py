"""Losses that fairseq lacks."""

from resmlp_mt.criterions import (  # noqa: F401
    dino,
    image_classification,
    label_smoothed_cross_entropy,
)
