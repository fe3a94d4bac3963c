"""fairseq's translation, with what its own gets wrong put right: `--task translation`."""

import logging
from pathlib import Path

from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair
from fairseq.tasks.translation import TranslationTask

from resmlp_mt.compat.patching import Patch
from resmlp_mt.data.vocabulary import Vocabulary
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.batches import AllInBatches
from resmlp_mt.tasks.search import mend_generator

logger = logging.getLogger(__name__)

PATCH = Patch(
    "translation",
    "leaves the last lines of a set untranslated, orders batches anew after a resume, fails with "
    "--diverse-beam-groups and --constraints, does nothing with --no-repeat-ngram-size, writes a "
    "line to --log-file once for every epoch so far, and names no line of a broken dictionary",
    "whoever trains or translates with --task translation, which fairseq takes where none is given",
    "a subclass stands under that name, so that commands and checkpoints stay as they are",
)


@PATCH.replaces(
    "fairseq.tasks:TASK_REGISTRY[translation]",
    "4a35d598f8f3",
    "ecb26a7129f2",
    "(self, cfg, from_checkpoint)",
    guards=(
        "fairseq.tasks.fairseq_task:FairseqTask.get_batch_iterator",
        "fairseq.tasks.fairseq_task:FairseqTask.build_generator",
        "fairseq.tasks.translation:TranslationTask.build_model",
    ),
)
class ResMLPTranslationTask(AllInBatches, TranslationTask):
    """What fairseq's task of this name does, on all of the data."""

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """Read a dictionary.

        Raises:
            UserError: If it is broken, with the line.
        """
        try:
            return super().load_dictionary(filename)
        except OSError:
            raise
        except Exception:  # of a text that is not UTF-8, fairseq raises no less
            Vocabulary(Path(filename))
            raise

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build a model, and warn where it was trained to translate from another language.

        With one dictionary for both languages fairseq translates from either, and scores almost 0.
        """
        # A model's configuration hangs in the whole one: a checkpoint's, where it is from one.
        whole = cfg._get_root() if hasattr(cfg, "_get_root") else {}
        trained, asked = _languages(whole.get("task")), _languages(self.cfg)
        if trained and asked and trained != asked:
            logger.warning(
                "the model was trained to translate from %s to %s, not from %s to %s: look at "
                "--source-lang and --target-lang",
                *trained, *asked,
            )  # fmt: skip
        return super().build_model(cfg, from_checkpoint)

    def build_generator(self, models, args, *others, **kwargs):
        """Build what searches; arguments as fairseq's."""
        return mend_generator(super().build_generator(models, args, *others, **kwargs))

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Translate a batch; arguments as fairseq's.

        Raises:
            UserError: If a translation has no room for the words that it is constrained to.
        """
        try:
            return super().inference_step(generator, models, sample, prefix_tokens, constraints)
        except AssertionError:  # after the last step nothing is finished
            if constraints is None:
                raise
            raise UserError(
                "--constraints: a translation has no room for its words; allow longer ones "
                "(--max-len-b), or constrain it to fewer"
            ) from None


def _languages(cfg) -> tuple[str, str] | None:
    pair = tuple(getattr(cfg, name, None) for name in ("source_lang", "target_lang"))
    if None in pair:  # fairseq-train reads them from the names of the data
        folder = Path(str(getattr(cfg, "data", None)).split(":")[0])
        pair = infer_language_pair(str(folder)) if folder.is_dir() else pair
    return None if None in pair else tuple(pair)


PATCH.apply()
