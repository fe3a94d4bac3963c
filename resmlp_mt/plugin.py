"""Registers the models, tasks, criterions and optimizers with fairseq.

It is imported by itself as soon as both fairseq and `resmlp_mt` are.
"""

from resmlp_mt import compat

compat.apply()

from resmlp_mt import criterions, models, optim, tasks  # noqa: E402, F401
from resmlp_mt.tasks.search import FASTER  # noqa: E402


def _compile_generator(generator, source_dictionary) -> None:
    # Imported on first use: a module that it takes may be the one that imports fairseq, and so this
    # one, and is not complete then.
    from resmlp_mt.engines.compiled_generator import compile_generator

    compile_generator(generator, source_dictionary)


FASTER.append(_compile_generator)
