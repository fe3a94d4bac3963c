"""Optimizers that fairseq lacks."""

from resmlp_mt.optim import adamw, lamb  # noqa: F401
