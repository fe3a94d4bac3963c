"""Optimizers that fairseq lacks."""

from resmlp_mt.optim import adamw  # noqa: F401
