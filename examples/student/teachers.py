"""Teachers: whatever translates. Each takes lines, and yields the best translations of each line.

A translation is a pair of its text and its score, which is None where the teacher tells of none.
Those of a line come best first; an empty line has none.
"""

import inspect
import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import Protocol
from urllib.error import HTTPError

from sentencepiece import SentencePieceProcessor

from resmlp_mt import SearchOptions, Translator
from resmlp_mt.data.reading import decode_lines
from resmlp_mt.engines.batches import fill
from resmlp_mt.errors import UserError, name_some
from resmlp_mt.translating.likelihood import score_pairs

Found = list[tuple[str, float | None]]


class Teacher(Protocol):
    """Translates lines, in several ways each."""

    def translate(self, lines: Sequence[str], first: int) -> Iterator[Found]:
        """Yield the best translations of each line, as they come.

        Args:
            lines: Of source text.
            first: The number of the first of them in the whole text; samples go by numbers.

        Raises:
            UserError: If there is nothing more to be had.
        """


class Judge(Protocol):
    """Scores translations: a teacher whose model is at hand."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> Iterator[float]:
        """Yield how unlikely each target is, given its source: nats a subword."""


def make_teacher(kind: str, **settings) -> Teacher:
    """Make the teacher that a table [teacher] describes.

    Raises:
        UserError: If there is no such kind, or it does not take these settings.
    """
    if kind not in KINDS:
        raise UserError(f"[teacher] kind = {kind!r}: there are {', '.join(KINDS)}")
    try:
        inspect.signature(KINDS[kind]).bind(**settings)
    except TypeError as error:
        raise UserError(f"[teacher] of kind {kind}: {error}") from None
    return KINDS[kind](**settings)


class Checkpoint:
    """Checkpoints of fairseq, of any architecture, or our exports; several are an ensemble.

    Args:
        models: As for `Translator.from_pretrained`. Checkpoints need dictionaries and
            SentencePiece models beside them, or the data of their training.
        nbest: How many translations of each line.
        user_dir: The plugin that has their architecture.
        device, threads: As for `Translator.from_pretrained`.
        search: Other options of `SearchOptions`.
    """

    def __init__(
        self,
        models: list[str],
        nbest: int = 1,
        user_dir: str | None = None,
        device: str = "auto",
        threads: int = 1,
        **search,
    ):
        if user_dir:
            from resmlp_mt.compat.plugins import import_plugin

            import_plugin(Path(user_dir))
        if not search.get("sampling"):
            search = {"beam": max(5, nbest), **search}
        try:
            self.options = SearchOptions(nbest=nbest, **search)
        except (TypeError, ValueError) as error:
            raise UserError(f"[teacher] of kind checkpoint: {error}") from None
        self.translator = Translator.from_pretrained(models, device, threads)

    def translate(self, lines: Sequence[str], first: int) -> Iterator[Found]:
        """As `Teacher.translate`. Lines are translated as they are typed."""
        found = self.translator.translate_nbest(lines, self.options, recase=False, first=first)
        for line, best in zip(lines, found, strict=True):
            yield [(each.text, each.score) for each in best] if line.strip() else []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Iterator[float]:
        """As `Judge.score`."""
        return score_pairs(self.translator, pairs, per_subword=True)


class CTranslate2:
    """A folder that a converter of CTranslate2 wrote, and its SentencePiece models.

    Args:
        model: The folder.
        nbest, threads: As for `Checkpoint`.
        beam: Of the search.
        source_spm, target_spm: The SentencePiece models, if they are not in the folder under a
            usual name.
        source_prefix, source_suffix: Tokens before and behind the subwords of each line, such as
            [">>deu<<"]. Without a suffix, the end of the sentence where the model wants one.
        target_prefix: Tokens that each translation begins with, such as ["deu_Latn"]. They are
            taken off again.
        compute_type: As CTranslate2 names it: "int8", "float32" ...
        batch_tokens: Source subwords in a batch.
        search: Other options of `ctranslate2.Translator.translate_batch`.
    """

    _SPM = ("{side}.spm", "spm.model", "sentencepiece.bpe.model", "sentencepiece.model")
    _MORE = ("spiece.model", "tokenizer.model", "spm.{lang}.model")

    def __init__(
        self,
        model: str,
        nbest: int = 1,
        beam: int = 5,
        source_spm: str | None = None,
        target_spm: str | None = None,
        source_prefix: Sequence[str] = (),
        source_suffix: Sequence[str] | None = None,
        target_prefix: Sequence[str] = (),
        threads: int = 1,
        compute_type: str = "default",
        batch_tokens: int = 2048,
        **search,
    ):
        import ctranslate2

        self.folder, options = Path(model), {"compute_type": compute_type}
        try:
            self.model = ctranslate2.Translator(model, intra_threads=threads, **options)
            config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        except (RuntimeError, OSError, ValueError) as error:
            raise UserError(f"{model}: not a folder of a converter ({error})") from None
        self.subwords = [self._read_subwords("source", source_spm, source_prefix)]
        self.subwords += [self._read_subwords("target", target_spm, target_prefix)]
        if source_suffix is None:  # not all converters let CTranslate2 add it
            source_suffix = [] if config.get("add_source_eos") else [config["eos_token"]]
        self.before, self.behind = list(source_prefix), list(source_suffix)
        self.begun = list(target_prefix)
        self.search = {
            "beam_size": max(beam, nbest) if not search.get("sampling_topk") else 1,
            "num_hypotheses": nbest,
            "return_scores": True,
            "disable_unk": True,  # raw text has none
            "max_input_length": 0,  # else it cuts what is longer, and says nothing
            "max_batch_size": batch_tokens,
            "batch_type": "tokens",
            **search,
        }

    def _read_subwords(
        self, side: str, path: str | None, tags: Sequence[str]
    ) -> SentencePieceProcessor:
        """A SentencePiece model whose subwords, and these tags, are those of the vocabulary."""
        names = [name.format(side=side, lang="*") for name in (*self._SPM, *self._MORE)]
        found = [Path(path)] if path else list(chain(*map(self.folder.glob, names)))
        if not found or not found[0].is_file():
            raise UserError(
                f"{path or self.folder}: no SentencePiece model for the {side}; copy it there as "
                f"{side}.spm, or name it as {side}_spm"
            )
        subwords = SentencePieceProcessor(model_file=str(found[0]))
        known = self._read_vocabulary(side)
        if missing := [tag for tag in tags if tag not in known]:
            alike = sorted(token for token in known if token[:2] == missing[0][:2])
            raise UserError(
                f"{self.folder}: no {missing[0]} in the {side} vocabulary"
                + (f"; it has {name_some(alike)}" if alike else "")
            )
        pieces = [subwords.id_to_piece(i) for i in range(len(subwords))]
        share = sum(piece in known for piece in pieces) / len(pieces)
        if share < 0.8:  # some subwords are in no training text
            raise UserError(
                f"{found[0]}: {share:.0%} of its subwords are in the {side} vocabulary of "
                f"{self.folder}: it is of another model"
            )
        return subwords

    def _read_vocabulary(self, side: str) -> set[str]:
        for name in (f"{side}_vocabulary", "shared_vocabulary"):
            if (path := self.folder / f"{name}.json").is_file():
                return set(json.loads(path.read_text(encoding="utf-8")))
            if (path := self.folder / f"{name}.txt").is_file():  # of older converters
                return set(path.read_text(encoding="utf-8").split("\n"))
        raise UserError(f"{self.folder}: no {side}_vocabulary.json, nor shared_vocabulary.json")

    def translate(self, lines: Sequence[str], first: int) -> Iterator[Found]:
        """As `Teacher.translate`."""
        for batch in fill(lines, 512):
            read = self._cut(0, batch)
            full = [[*self.before, *pieces, *self.behind] for pieces in read if pieces]
            begun = {"target_prefix": [self.begun] * len(full)} if self.begun else {}
            with self._explaining(len(batch)):
                results = iter(self.model.translate_batch(full, **begun, **self.search))
            for pieces in read:
                yield self._read(next(results)) if pieces else []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Iterator[float]:
        """As `Judge.score`."""
        options = {name: self.search[name] for name in ("max_batch_size", "batch_type")}
        for batch in fill(pairs, 512):
            sources, targets = (
                self._cut(side, texts) for side, texts in enumerate(zip(*batch, strict=True))
            )
            full = [[*self.before, *pieces, *self.behind] for pieces in sources]
            begun = [[*self.begun, *pieces] for pieces in targets]
            with self._explaining(len(batch)):
                results = self.model.score_batch(full, begun, max_input_length=0, **options)
            for result in results:
                nats = result.log_probs[len(self.begun) :]
                yield -sum(nats) / len(nats)

    def _cut(self, side: int, texts: Sequence[str]) -> list[list[str]]:
        return self.subwords[side].encode([text.strip() for text in texts], out_type=str)

    @contextmanager
    def _explaining(self, lines: int) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError, TypeError) as error:
            raise UserError(
                f"CTranslate2: {error}; in this line, or one of the {lines} from it on"
            ) from None

    def _read(self, result) -> Found:
        texts = (self.subwords[1].decode(h[len(self.begun) :]) for h in result.hypotheses)
        return list(zip(texts, result.scores, strict=True))


class LibreTranslate:
    """A server that speaks LibreTranslate's API.

    It is asked again while it is busy (429) or away (5xx, or no connection): after as many seconds
    as it says, or after more and more.

    Args:
        url: Of the server, as http://localhost:5000.
        source, target: Languages, by its names for them.
        nbest: How many translations of each line; it is asked for one less as alternatives.
        key: For the server.
        lines: In a question.
        patience: Seconds of asking again, until it answers a question.
    """

    def __init__(
        self,
        url: str,
        source: str,
        target: str,
        nbest: int = 1,
        key: str | None = None,
        lines: int = 16,
        patience: float = 3600,
    ):
        self.url, self.lines, self.patience = f"{url.rstrip('/')}/translate", lines, patience
        self.asked = {"source": source, "target": target, "format": "text"}
        self.asked |= {"alternatives": nbest - 1} if nbest > 1 else {}
        self.asked |= {"api_key": key} if key else {}

    def translate(self, lines: Sequence[str], first: int) -> Iterator[Found]:
        """As `Teacher.translate`."""
        for batch in fill(lines, self.lines):
            texts = [line for line in batch if line.strip()]
            answer = self._ask(texts) if texts else {"translatedText": []}
            try:
                best = answer["translatedText"]
                others = answer.get("alternatives") or [[]] * len(best)
                found = iter([[b, *o] for b, o in zip(best, others, strict=True)])
                if len(best) != len(texts) or not all(isinstance(b, str) for b in best):
                    raise ValueError
            except (ValueError, KeyError, TypeError, AttributeError):
                raise UserError(
                    f"{self.url}: not a translation for each of {len(texts)} lines: {answer!s:.80}"
                ) from None
            for line in batch:
                yield [(text, None) for text in next(found)] if line.strip() else []

    def _ask(self, texts: list[str]) -> dict:
        body = json.dumps({"q": texts, **self.asked}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        began, pause = time.monotonic(), 1.0
        while True:
            wait = pause
            try:
                with urllib.request.urlopen(request, timeout=max(self.patience, 1)) as answer:
                    return json.load(answer)
            except HTTPError as error:
                said = f"{error.code}, {_read_error(error)}"
                if error.code != 429 and error.code < 500:
                    raise UserError(f"{self.url}: {said}") from None
                wait = _read_wait(error.headers.get("Retry-After"), pause)
            except (OSError, HTTPException, ValueError) as error:
                said = str(error)
            if time.monotonic() + wait - began > self.patience:
                raise UserError(
                    f"{self.url}: no answer in {self.patience:g} seconds ({said})"
                ) from None
            time.sleep(wait)
            pause = min(2 * pause, 60)


def _read_error(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return error.reason


def _read_wait(said: str | None, pause: float) -> float:
    """The seconds of a header Retry-After, which has them or a date."""
    try:
        if said and not said.strip().isdecimal():
            return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
        return float(said or pause)
    except ValueError:
        return pause


class Program:
    """Any program that reads lines, and writes a line for a line.

    It is started for each part of the text, so it may answer when it has read all.

    Args:
        command: The program and its arguments.
        nbest: With more than one, a line holds so many translations at most, with tabs between
            them.
    """

    def __init__(self, command: list[str], nbest: int = 1):
        self.command, self.nbest = command, nbest

    def translate(self, lines: Sequence[str], first: int) -> Iterator[Found]:
        """As `Teacher.translate`."""
        try:
            pipe = subprocess.PIPE
            process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe)
        except OSError as error:
            raise UserError(f"{self.command[0]}: {error.strerror}") from None
        writing = threading.Thread(target=self._tell, args=(process.stdin, lines), daemon=True)
        with process:
            try:
                writing.start()
                answered = 0
                for line, answer in zip(lines, process.stdout, strict=False):
                    if not answer.endswith(b"\n"):  # it ended within a line
                        break
                    (text,) = decode_lines([answer], self.command[0], answered + 1)
                    texts = text.split("\t")[: self.nbest]
                    yield [(text, None) for text in texts] if line.strip() else []
                    answered += 1
                more = process.stdout.readline() if answered == len(lines) else b""
            finally:
                if process.poll() is None and answered < len(lines):
                    process.terminate()
                process.stdout.close()
                writing.join()
        if process.returncode or answered < len(lines) or more:
            said = f"{answered} lines" if not more else "more lines than it was given"
            raise UserError(
                f"{self.command[0]} ended with status {process.returncode} after {said} of "
                f"{len(lines)}"
            )

    @staticmethod
    def _tell(stdin, lines: Sequence[str]) -> None:
        try:
            with stdin:
                stdin.writelines(f"{line}\n".encode() for line in lines)
        except BrokenPipeError:  # it has ended, of which its answers tell
            pass


KINDS: dict[str, Callable[..., Teacher]] = {
    "checkpoint": Checkpoint,
    "ctranslate2": CTranslate2,
    "libretranslate": LibreTranslate,
    "program": Program,
}
