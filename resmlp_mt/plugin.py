"""Registers the models, tasks, criterions and optimizers with fairseq.

It is imported by itself as soon as both fairseq and `resmlp_mt` are.
"""

from functools import partial

from hydra.core.config_store import ConfigStore

from resmlp_mt import compat

compat.mend()

import resmlp_mt.criterions  # noqa: E402
import resmlp_mt.models  # noqa: E402
import resmlp_mt.optim  # noqa: E402
import resmlp_mt.tasks  # noqa: E402, F401
from resmlp_mt.compat.patching import apply, replaces  # noqa: E402
from resmlp_mt.tasks.translation import (  # noqa: E402
    ResMLPTranslationConfig,
    ResMLPTranslationTask,
)


@replaces("fairseq.tasks:TASK_REGISTRY[translation]")
class TranslationTask(ResMLPTranslationTask):
    """`--task translation`, which searches in compiled code where that finds the same."""

    def build_generator(self, models, args, seq_gen_cls=None, *others, **kwargs):
        """Build the search; arguments as fairseq's."""
        if seq_gen_cls is None and not getattr(args, "print_alignment", None):
            # Imported on first use: a module that it takes may be the one that imports fairseq, and
            # so this one, and is not complete then.
            from resmlp_mt.engines.compiled import CompiledGenerator

            seq_gen_cls = partial(CompiledGenerator, self.source_dictionary)
        return super().build_generator(models, args, seq_gen_cls, *others, **kwargs)


apply()
# How fairseq's own command line, and hydra, find the flags of a task.
setattr(TranslationTask, "__dataclass", ResMLPTranslationConfig)  # noqa: B010
ConfigStore.instance().store(
    name="translation",
    group="task",
    node=ResMLPTranslationConfig(_name="translation"),
    provider="fairseq",
)
