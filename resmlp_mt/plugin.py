"""Registers the models, tasks, criterions and optimizers with fairseq.

It is imported by itself as soon as both fairseq and `resmlp_mt` are.
"""

from resmlp_mt import compat

compat.apply()

from resmlp_mt import criterions, models, optim, tasks  # noqa: E402, F401
from resmlp_mt.inference.compiled_generator import compile_generator  # noqa: E402
from resmlp_mt.tasks.search import FASTER  # noqa: E402

FASTER.append(compile_generator)
