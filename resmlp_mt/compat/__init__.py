"""The seam to fairseq and torch of today. Each patch has a guard, a reason and a test.

fairseq imports this plugin while it parses the command line, before it loads any checkpoint and
before hydra composes the configuration, so that what is put right here holds for all commands.
"""

import logging
import warnings

# Importing fairseq asks for tensorboardX, which nothing here needs.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

from resmlp_mt.compat.batches import (  # noqa: E402
    go_on_with_other_workers,
    keep_batches_on_resuming,
    keep_last_batch,
    take_archives_for_data,
)
from resmlp_mt.compat.checkpoints import (  # noqa: E402
    allow_harmless_classes,
    explain_broken_checkpoints,
    limit_models,
    refuse_resolvers,
)
from resmlp_mt.compat.dictionaries import name_broken_dictionaries  # noqa: E402
from resmlp_mt.compat.flags import mend_parsed_flags  # noqa: E402
from resmlp_mt.compat.languages import warn_of_other_languages  # noqa: E402
from resmlp_mt.compat.noise import silence_noise  # noqa: E402
from resmlp_mt.compat.programs import (  # noqa: E402
    check_apex,
    exit_with_explanation,
)
from resmlp_mt.compat.resuming import (  # noqa: E402
    find_where_to_go_on,
    refuse_misfit_optimizers,
)
from resmlp_mt.compat.saving import write_whole_checkpoints  # noqa: E402
from resmlp_mt.compat.search import (  # noqa: E402
    bar_repeats_on_cpus,
    mend_constraints,
    mend_diverse_beam,
)
from resmlp_mt.compat.training import (  # noqa: E402
    fit_optimizers_to_precision,
    log_once,
    offer_lamb_without_apex,
    stop_on_sigterm,
    survive_the_search_for_nan,
)
from resmlp_mt.compat.workers import (  # noqa: E402
    join_workers,
    resume_together,
    stop_spawned_workers,
)


def apply() -> None:
    """Apply every patch; the second time changes nothing."""
    silence_noise()
    allow_harmless_classes()
    explain_broken_checkpoints()
    limit_models()
    refuse_resolvers()
    name_broken_dictionaries()
    warn_of_other_languages()
    keep_last_batch()
    keep_batches_on_resuming()
    go_on_with_other_workers()
    mend_diverse_beam()
    bar_repeats_on_cpus()
    mend_constraints()
    log_once()
    take_archives_for_data()
    mend_parsed_flags()
    join_workers()
    resume_together()
    stop_spawned_workers()
    write_whole_checkpoints()
    find_where_to_go_on()
    stop_on_sigterm()
    survive_the_search_for_nan()
    offer_lamb_without_apex()
    fit_optimizers_to_precision()
    refuse_misfit_optimizers()
    exit_with_explanation()
    if complaint := check_apex():
        warnings.warn(complaint, stacklevel=2)
