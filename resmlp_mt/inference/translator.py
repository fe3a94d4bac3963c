"""Raw text in, raw text out: a trained model with its dictionaries and subwords."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from fairseq.data.data_utils import infer_language_pair
from fairseq.sequence_generator import SequenceGenerator
from tqdm import tqdm

from resmlp_mt.data.checkpoints import find_checkpoint
from resmlp_mt.data.subwords import find_subwords, load_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.inference.device import choose_device
from resmlp_mt.inference.segments import split_line
from resmlp_mt.tasks.image_classification import is_for_images

logger = logging.getLogger(__name__)


@dataclass
class Hypothesis:
    """A translation and its score: mean log-probability (base e) of its subwords."""

    text: str
    score: float


def find_companions(checkpoint: Path, task_cfg) -> tuple[Path, str, str]:
    """Where a checkpoint's dictionaries and SentencePiece models are, and its two languages.

    Args:
        checkpoint: The file; its own folder is searched first, then the data of its training.
        task_cfg: The configuration of the translation task in it.

    Raises:
        UserError: If they are in neither, or the languages are nowhere named.
    """
    trained_from = Path(str(task_cfg.get("data", "")).split(":")[0])
    source, target = task_cfg.get("source_lang"), task_cfg.get("target_lang")
    if source is None or target is None:  # fairseq-train read them from the names of the data
        try:
            source, target = infer_language_pair(str(trained_from))
        except OSError:
            source = None
    if source is None:
        raise UserError(
            f"{checkpoint}: its languages are not in it, and its data folder {trained_from} is not "
            "here; run in the folder of the training, or pack the model there with 'resmlp-mt pack'"
        )
    for folder in (checkpoint.parent, trained_from):
        dictionaries = all((folder / f"dict.{lang}.txt").is_file() for lang in (source, target))
        if dictionaries and find_subwords(folder, source) and find_subwords(folder, target):
            return folder, source, target
    raise UserError(
        f"{checkpoint}: dict.{source}.txt, dict.{target}.txt and spm.model (or spm.{source}.model "
        f"and spm.{target}.model) must lie beside the checkpoint, or in {trained_from}"
    )


class Translator:
    """Translates raw sentences with one model.

    Args:
        model: A model that fairseq loaded.
        task: Its translation task, with the dictionaries.
        source_subwords, target_subwords: Their SentencePiece models.
        device: Where to translate: "cpu", "cuda", "cuda:1" ...
    """

    def __init__(self, model, task, source_subwords, target_subwords, device: str = "cpu"):
        self.model = model.to(device)
        self.model.eval()
        self.device = device
        self.source_dictionary = task.source_dictionary
        self.target_dictionary = task.target_dictionary
        self.source_subwords = source_subwords
        self.target_subwords = target_subwords
        # One position is for the end of the sentence.
        self.longest = min(model.encoder.max_positions(), 10**6) - 1

    @classmethod
    def from_pretrained(cls, model: str | Path, device: str = "auto") -> "Translator":
        """Load a model with what it needs.

        Dictionaries and SentencePiece models are looked for beside the checkpoint, then in the
        data folder that it was trained from.

        Args:
            model: A name of `pretrained_names`, a folder, or a checkpoint.
            device: As torch names it; "auto" takes an accelerator where there is one.

        Raises:
            UserError: If something is missing, broken, or does not fit together.
        """
        path = find_checkpoint(model)
        state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
        if is_for_images(state["cfg"].task):
            raise UserError(f"{path}: a model of images; see 'resmlp-mt classify'")
        folder, source, target = find_companions(path, state["cfg"].task)
        state["cfg"].task.update(data=str(folder), source_lang=source, target_lang=target)
        try:
            models, cfg, task = checkpoint_utils.load_model_ensemble_and_task(
                [str(path)], state=state
            )
        except (ValueError, RuntimeError) as error:
            raise UserError(f"{path}: {error}") from None
        models[0].prepare_for_inference_(cfg)
        return cls(
            models[0].float(),
            task,
            load_subwords(find_subwords(folder, source)),
            load_subwords(find_subwords(folder, target)),
            choose_device(device),
        )

    def translate(self, lines: Iterable[str], **options) -> list[str]:
        """Translate lines; an empty line stays empty. Options as for `translate_nbest`."""
        return [best[0].text for best in self.translate_nbest(lines, **options)]

    def translate_nbest(
        self,
        lines: Iterable[str],
        beam: int = 5,
        nbest: int = 1,
        lenpen: float = 1.0,
        batch_tokens: int = 4096,
        buffer_size: int = 1000,
        progress: bool = False,
    ) -> Iterator[list[Hypothesis]]:
        """Yield the best translations of each line, in the order of the lines.

        Args:
            lines: Raw text; read as they are needed, `buffer_size` at a time.
            beam: Hypotheses kept in the search.
            nbest: Translations returned for each line, at most `beam`.
            lenpen: Exponent of the length that scores are divided by; above 1 favours long ones.
            batch_tokens: Source subwords in a batch, padding included.
            buffer_size: Lines that are sorted by length and batched together.
            progress: Show a bar on stderr.

        Raises:
            ValueError: If `nbest` is more than `beam`.
        """
        if not 1 <= nbest <= beam:
            raise ValueError(f"nbest must be between 1 and the beam size {beam}, not {nbest}")
        generator = SequenceGenerator(
            [self.model],
            self.target_dictionary,
            beam_size=beam,
            len_penalty=lenpen,
            max_len_a=0,
            max_len_b=200,
            unk_penalty=float("inf"),  # raw text has no <unk>
        )
        lines = iter(lines)
        with tqdm(unit=" lines", disable=not progress) as bar:
            while buffer := list(islice(lines, buffer_size)):
                for hypotheses in self._translate_buffer(buffer, generator, nbest, batch_tokens):
                    yield hypotheses
                    bar.update()

    def _translate_buffer(
        self, lines: list[str], generator: SequenceGenerator, nbest: int, batch_tokens: int
    ) -> Iterator[list[Hypothesis]]:
        # A segment is what the model translates at once: mostly a whole line.
        segments = [self._segment(line) for line in lines]
        sources = [self._encode(text) for texts in segments for text in texts]
        results: list[list[Hypothesis]] = [[]] * len(sources)
        for batch in _batches(list(map(len, sources)), batch_tokens):
            translated = self._translate_batch([sources[i] for i in batch], generator, nbest)
            for i, hypotheses in zip(batch, translated, strict=True):
                results[i] = hypotheses
        results = iter(results)
        for texts in segments:
            yield _join(list(islice(results, len(texts))), nbest)

    def _segment(self, line: str) -> list[str]:
        if not self.source_subwords.encode(line):  # blank, or nothing but control characters
            return []
        texts = split_line(line, lambda text: len(self.source_subwords.encode(text)), self.longest)
        if len(texts) > 1:
            logger.info("a line of more than %d subwords is split in %d", self.longest, len(texts))
        return texts

    def _encode(self, text: str) -> torch.Tensor:
        pieces = self.source_subwords.encode(text, out_type=str)[: self.longest]
        return self.source_dictionary.encode_line(
            pieces, line_tokenizer=list, add_if_not_exist=False
        ).long()

    def _translate_batch(
        self, sources: list[torch.Tensor], generator: SequenceGenerator, nbest: int
    ) -> list[list[Hypothesis]]:
        tokens = torch.nn.utils.rnn.pad_sequence(
            sources, batch_first=True, padding_value=self.source_dictionary.pad()
        ).to(self.device)
        lengths = torch.tensor([len(source) for source in sources], device=self.device)
        sample = {"net_input": {"src_tokens": tokens, "src_lengths": lengths}}
        return [
            [self._decode(hypothesis) for hypothesis in hypotheses[:nbest]]
            for hypotheses in generator.generate([self.model], sample)
        ]

    def _decode(self, hypothesis: dict) -> Hypothesis:
        end = self.target_dictionary.eos()
        pieces = [self.target_dictionary[i] for i in hypothesis["tokens"].tolist() if i != end]
        return Hypothesis(self.target_subwords.decode(pieces), float(hypothesis["score"]))


def _batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """Group indices of similar lengths; a batch has at most `batch_tokens`, or one sentence."""
    batch = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and lengths[i] * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _join(segments: list[list[Hypothesis]], nbest: int) -> list[Hypothesis]:
    """Put a line together: its k-th translation from the k-th of every segment."""
    if not segments:
        return [Hypothesis("", 0.0)]
    if len(segments) == 1:
        return segments[0]
    ranks = range(min(nbest, *map(len, segments)))
    return [
        Hypothesis(
            " ".join(hypotheses[k].text for hypotheses in segments),
            sum(hypotheses[k].score for hypotheses in segments) / len(segments),
        )
        for k in ranks
    ]
