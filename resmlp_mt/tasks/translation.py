"""fairseq's translation, with its errors put right: `--task translation`."""

import logging
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II
from torch import nn

from resmlp_mt.compat.languages import infer_languages
from resmlp_mt.compat.patching import replaces
from resmlp_mt.data.binary_check import check_pairs
from resmlp_mt.data.identity import KEY, Identity
from resmlp_mt.data.vocabulary import Vocabulary
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.batches import AllInBatches
from resmlp_mt.tasks.optimizers import mark_for_optimizer
from resmlp_mt.tasks.search import mend_generator
from resmlp_mt.tasks.subword_sampling import sample_subwords

logger = logging.getLogger(__name__)
_UNKNOWN = "%s does not say which dictionaries and subwords it was trained with: going on"


def _split_pieces(line: str) -> list[str]:
    return [piece for piece in line.rstrip("\r\n").split(" ") if piece]


class PieceDictionary(Dictionary):
    """A dictionary of subwords, which plain blanks alone part.

    Within them may be what Unicode takes for blanks too, as U+3000, U+00A0 and U+202F.
    """

    def encode_line(self, line: str, line_tokenizer=_split_pieces, *others, **kwargs):
        """Token indices of a line; arguments as fairseq's."""
        return super().encode_line(line, line_tokenizer, *others, **kwargs)


@replaces("fairseq.tasks:TASK_DATACLASS_REGISTRY[translation]")
@dataclass
class ResMLPTranslationConfig(TranslationConfig):
    """fairseq's flags, and ours."""

    subword_sampling: float = field(
        default=0.0,
        metadata={
            "help": "cut the training text into subwords anew in every epoch: for BPE the share of "
            "merges that are left out (0.1 is usual), for unigrams SentencePiece's alpha; batches "
            "are made by the lengths as prepared, and may hold some more tokens than --max-tokens"
        },
    )
    # fairseq's default, -1, fails where there is a train1.
    upsample_primary: int = field(
        default=1,
        metadata={"help": "how often an epoch has each pair of train, of train1, train2 ... once"},
    )
    seed: int = II("common.seed")


class ResMLPTranslationTask(AllInBatches, TranslationTask):
    """fairseq's task of this name, on all of the data, and for models of its text alone.

    Attributes:
        identity: Of the text in the data folder, where `setup_task` made the task.
        first: Of the first model whose state was loaded.
    """

    identity: Identity | None = None
    first: Identity | None = None

    @classmethod
    def setup_task(cls, cfg: ResMLPTranslationConfig, **kwargs):
        """Set the task up; arguments as fairseq's.

        Raises:
            UserError: If neither the flags nor the data tell the languages.
        """
        if None in (cfg.source_lang, cfg.target_lang):
            folder = utils.split_paths(cfg.data)[0]
            pair = infer_languages(folder)
            if pair is None:
                raise UserError(
                    f"{folder} has no prepared text, dict.SOURCE.txt and dict.TARGET.txt, whose "
                    "names tell the languages; for text give --source-lang and --target-lang, for "
                    "images give --task image_classification"
                )
            cfg.source_lang, cfg.target_lang = pair
        task = super().setup_task(cfg, **kwargs)
        folder, languages = Path(utils.split_paths(cfg.data)[0]), (cfg.source_lang, cfg.target_lang)
        task.identity = Identity.of_folder(
            folder, languages, (task.src_dict.symbols, task.tgt_dict.symbols)
        )
        # fairseq writes this into every checkpoint, and reads over what it does not know.
        task.state.merge_state_dict({KEY: task.identity.as_state()})
        return task

    def adopt_state(self, state: dict, path: str, model: nn.Module, tunes: bool) -> None:
        """Let a training take only a checkpoint of its own text.

        Fine-tuning may be for other languages with the same subwords, as from en-de to de-en with
        one vocabulary for both. A warning says so.

        Args:
            state: The checkpoint.
            path: Its file.
            model: The model that will take its weights.
            tunes: Whether fine-tuning starts from it; else a training goes on.

        Raises:
            UserError: If it knows other languages, dictionaries or subwords.
        """
        trained = Identity.of_checkpoint(path, state)
        if trained is None:
            logger.info(_UNKNOWN, path)
            return
        if told := trained.differences(self.identity, languages=not tunes):
            advice = f"prepare the text anew with 'resmlp-mt prepare --like {path}'"
            if not tunes:
                advice = "train on that, or into another --save-dir"
            raise UserError(
                f"{self.cfg.data}: not the text that {path} was trained on: {told}; {advice}"
            )
        if trained.languages != self.identity.languages:
            told = trained.differences(self.identity)
            logger.warning("%s: not the languages of %s: %s", self.cfg.data, path, told)

    def load_state_dict(self, state_dict: dict) -> None:
        """Take the state of a model's checkpoint, of several one after the other.

        Raises:
            UserError: If a model has other dictionaries or subwords than this task, or other
                languages than those before it.
        """
        super().load_state_dict({k: v for k, v in state_dict.items() if k != KEY})
        trained = Identity.of_state(state_dict)
        if trained is None or self.identity is None:
            logger.info(_UNKNOWN, "the checkpoint")
            return
        if told := trained.differences(self.identity, languages=False):
            raise UserError(
                f"not trained on text as in {self.cfg.data}: there {told}; prepare the text anew "
                "with 'resmlp-mt prepare --like MODEL'"
            )
        self.first = self.first or trained
        if told := self.first.differences(trained):
            raise UserError(f"not trained on the text of the models before it: {told}")

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """Read a dictionary.

        Raises:
            UserError: If it is broken, with the line.
        """
        try:
            return PieceDictionary.load(filename)
        except OSError:
            raise
        except Exception:  # of a text that is not UTF-8, fairseq raises no less
            Vocabulary(Path(filename))
            raise

    def load_dataset(self, split, epoch=1, combine=False, task_cfg=None, **kwargs):
        """Load a part of the data.

        Args:
            split, epoch, combine, **kwargs: As fairseq's.
            task_cfg: A configuration, by fairseq-validate and -generate and not by fairseq-train:
                the training text is then cut as it was prepared.

        Raises:
            UserError: If its subwords shall be sampled, and are not known or not to be sampled so.
        """
        self._check_files(split, combine)
        super().load_dataset(split, epoch, combine, **kwargs)
        alpha = getattr(self.cfg, "subword_sampling", 0.0)
        if not 0 <= alpha < 1:
            raise UserError(f"--subword-sampling is at least 0 and below 1, not {alpha:g}")
        if alpha and split == self.cfg.train_subset and task_cfg is None:
            folders = utils.split_paths(self.cfg.data)
            sample_subwords(
                self.datasets[split],
                Path(folders[(epoch - 1) % len(folders)]),
                (self.cfg.source_lang, self.cfg.target_lang),
                alpha,
                self.cfg.seed,
                self.max_positions(),
            )

    def _check_files(self, split: str, combine: bool) -> None:
        """Refuse damaged files of all folders, also of those that later epochs read.

        fairseq takes the dictionaries of the first folder for all.
        """
        if self.cfg.dataset_impl not in (None, "mmap"):
            return
        langs = self.cfg.source_lang, self.cfg.target_lang
        sizes = len(self.src_dict), len(self.tgt_dict)
        folders = list(map(Path, utils.split_paths(self.cfg.data)))
        for folder in folders if split == self.cfg.train_subset else folders[:1]:
            own = all((folder / f"dict.{lang}.txt").is_file() for lang in langs)
            if own and folder != folders[0]:
                told = self.identity.differences(Identity.of_folder(folder, langs))
            else:
                told = ""
            if told:
                raise UserError(
                    f"{folder}: not the text of {folders[0]}, whose dictionaries are taken: "
                    f"{told}; prepare both with the same ones (--like, or --srcdict)"
                )
            for k in count() if combine else range(1):
                name = f"{split}{k or ''}"
                if not any(folder.glob(f"{name}.*-*.*")):
                    break
                check_pairs(folder, name, langs, sizes)

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """The sentences that fairseq-interactive has read; arguments as fairseq's.

        fairseq reads over --truncate-source there.
        """
        if self.cfg.truncate_source:
            end = torch.tensor([self.source_dictionary.eos()])
            longest = self.cfg.max_source_positions
            src_tokens = [
                tokens if len(tokens) <= longest else torch.cat([tokens[: longest - 1], end])
                for tokens in src_tokens
            ]
            src_lengths = [len(tokens) for tokens in src_tokens]
        return super().build_dataset_for_inference(src_tokens, src_lengths, constraints)

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
        model = super().build_model(cfg, from_checkpoint)
        mark_for_optimizer(model, cfg)
        if self.cfg.truncate_source:  # to what the model takes
            self.cfg.max_source_positions = min(self.max_positions()[0], model.max_positions()[0])
        return model

    def build_generator(self, models, args, *others, **kwargs):
        """Build the search; arguments as fairseq's."""
        for model in models:
            if hasattr(model.decoder, "need_attn"):  # torch.hub asks for it after loading
                model.decoder.need_attn = bool(getattr(args, "print_alignment", None))
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
        return infer_languages(folder) if folder.is_dir() else None
    return pair
