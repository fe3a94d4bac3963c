"""Optimizers and learning-rate schedulers that fairseq lacks."""

from resmlp_mt.optim import adamw, hyperrule, lamb, muon  # noqa: F401
