"""Registers the models, tasks, criterions and optimizers with fairseq.

It is imported by itself as soon as both fairseq and `resmlp_mt` are.
"""

from resmlp_mt import compat

compat.apply()

from resmlp_mt import criterions, models, optim, tasks  # noqa: E402, F401
