"""Raw text in, raw text out."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from resmlp_mt.data.sentences import split_sentences
from resmlp_mt.data.text import mend_surrogates
from resmlp_mt.errors import UserError
from resmlp_mt.extras import Bar, import_with_fairseq
from resmlp_mt.files.finding import is_exported
from resmlp_mt.inference.codec import TextCodec
from resmlp_mt.inference.exported import load_exported_translator
from resmlp_mt.inference.guides import Guide, Row, lay_beside, make_guides
from resmlp_mt.inference.hypotheses import MOSTLY, Attention, Hypothesis, explain_unknown, join
from resmlp_mt.inference.options import SearchOptions
from resmlp_mt.inference.segments import Segment, split_text
from resmlp_mt.inference.threads import count_threads


class Translator:
    """Translates raw sentences with one model.

    Args:
        engine: What searches: an `OnnxSearch`, a `FairseqSearch` or an `Ensemble` of them.
        codec: The model's dictionaries and subwords.
        threads: Batches searched side by side.
    """

    def __init__(self, engine, codec: TextCodec, threads: int = 1):
        self.engine = engine
        self.codec = codec
        self.threads = threads
        # One position is for the end of the sentence.
        self.longest = min(engine.source_positions, 10**6) - 1

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | Sequence[str | Path],
        device: str = "auto",
        threads: int | None = None,
    ) -> "Translator":
        """Load a model with what it needs.

        Args:
            model: A name of `pretrained_names`, a folder, or a checkpoint; or a folder that
                `export_model` made, which is faster on a CPU. Several with the same dictionaries
                are an ensemble: at every step the mean of their probabilities counts.
            device: As torch names it; "auto" takes an accelerator where there is one. Exported
                models translate on the CPU alone, and others beside them.
            threads: An exported model searches as many batches side by side; for a checkpoint they
                are torch's, of the whole process. Default: one a core, or what the environment
                variable OMP_NUM_THREADS says.

        Raises:
            UserError: If something is missing, broken, or does not fit together.
        """
        models = [model] if isinstance(model, str | Path) else list(model)
        exported = [is_exported(Path(name)) for name in models]
        if device == "auto" and any(exported):
            device = "cpu"
        engines, codecs = zip(*(_load(name, device) for name in models), strict=True)
        codec = codecs[0]
        for name, other in zip(models, codecs, strict=True):
            if not codec.speaks_as(other):
                raise UserError(
                    f"{name}: its dictionaries or subwords are not those of {models[0]}; only "
                    "models that were trained on the same prepared data can translate together"
                )
        if all(exported):
            threads = threads or count_threads()
        elif threads is not None:  # within a batch
            import_with_fairseq("torch", "a checkpoint").set_num_threads(threads)
        side_by_side = threads if all(exported) else 1
        if len(models) == 1:
            return cls(engines[0], codec, side_by_side)
        ensemble = import_with_fairseq("resmlp_mt.inference.ensemble", "an ensemble")
        symbols, pad = codec.target_dictionary, codec.source_dictionary.pad()
        return cls(ensemble.Ensemble(engines, symbols, pad), codec, side_by_side)

    def translate(self, lines: str | Iterable[str], **options) -> str | list[str]:
        """Translate a text, or several; an empty one stays empty.

        Args:
            lines: A string is one text.
            options: As for `translate_nbest`, which alone returns more than the best.

        Returns:
            The best translation of each text in a list; of a string, a string.

        Raises:
            ValueError: If more than the best is asked for.
        """
        asked = options.get("options")
        if (asked.nbest if asked else options.get("nbest", 1)) != 1:
            raise ValueError("translate returns the best alone; translate_nbest yields the n best")
        texts = list(map(mend_surrogates, [lines] if isinstance(lines, str) else lines))
        found = [best[0] for best in self.translate_nbest(texts, **options)]
        for number, (text, best) in enumerate(zip(texts, found, strict=True), 1):
            if best.unknown > MOSTLY:
                warnings.warn(f"text {number}: {explain_unknown(text)}", stacklevel=2)
                break
        return found[0].text if isinstance(lines, str) else [best.text for best in found]

    def share_unknown(self, text: str) -> float:
        """Share of a text's characters that the model never saw; white space does not count."""
        return self.codec.share_unknown(self.codec.split(mend_surrogates(text)))

    def translate_nbest(
        self,
        lines: str | Iterable[str],
        options: SearchOptions | None = None,
        batch_tokens: int = 4096,
        buffer_size: int = 1000,
        attention: bool = False,
        progress: bool = False,
        split_sentences: bool | None = None,
        prefix: str | Iterable[str] = "",
        words: Iterable[Sequence[str]] | None = None,
        first: int = 1,
        **search,
    ) -> Iterator[list[Hypothesis]]:
        """Yield the best translations of each line, in the order of the lines.

        Args:
            lines: Raw text; read as they are needed, `buffer_size` at a time. A string is one.
                Halves of surrogate pairs, which no text file can hold, count as U+FFFD.
            options: How to search.
            batch_tokens: Source subwords in a batch, padding included.
            buffer_size: Lines that are sorted by length and batched together.
            attention: Find the attention of the translations too.
            progress: Show a bar on stderr.
            split_sentences: As for `split`; a line that has words to hold stays whole.
            prefix: What translations begin with: of all lines, or of each of them.
            words: Of each line those that its translation shall hold, in the given order if
                `constraints` says no other.
            first: Number of the first line. What is sampled depends on the numbers.
            **search: `beam`, `nbest` and whatever else `SearchOptions` takes, in its place.

        Raises:
            ValueError: At once, if an option is impossible.
            UserError: On the way, if a line cannot be translated so.
        """
        if options is not None and search:
            raise ValueError(f"{next(iter(search))}: give it in the options, or all without them")
        if batch_tokens < 1 or buffer_size < 1:
            raise ValueError(f"batch_tokens {batch_tokens}, buffer_size {buffer_size}: below 1")
        if words is not None:
            search = {"constraints": "ordered"} | search
        options = options or SearchOptions(**search)
        if (words is None) != (options.constraints is None):
            raise ValueError("words: go with constraints in the options, ordered or unordered")
        if words is not None and prefix:
            raise ValueError("prefix: cannot be forced where there are words to hold")
        lines = [lines] if isinstance(lines, str) else lines
        rows = lay_beside(map(mend_surrogates, lines), prefix, words)
        found = self._translate(
            rows, first, options, batch_tokens, buffer_size, attention, split_sentences
        )
        return iter(Bar(found, unit=" lines")) if progress else found

    def _translate(
        self,
        rows: Iterator[Row],
        first: int,
        options: SearchOptions,
        batch_tokens: int,
        buffer_size: int,
        attention: bool,
        split_sentences: bool | None,
    ) -> Iterator[list[Hypothesis]]:
        while buffer := list(islice(rows, buffer_size)):
            # Words may stand in any sentence of their line.
            parts = [
                self.split(line, split_sentences if not words else False)
                for line, _, words in buffer
            ]
            guides = None
            if options.sampling or any(prefix or words for _, prefix, words in buffer):
                guides = make_guides(self.codec, buffer, list(map(len, parts)), first)
            segments = [segment for line in parts for segment in line]
            found = self.translate_segments(segments, options, batch_tokens, attention, guides)
            for line in parts:
                hypotheses = list(islice(found, len(line)))
                best = join(hypotheses, line, self.codec.target_language)
                unknown = self.codec.share_unknown(piece for s in line for piece in s.pieces)
                yield [replace(hypothesis, unknown=unknown) for hypothesis in best]
            first += len(buffer)

    def translate_segments(
        self,
        segments: list[Segment],
        options: SearchOptions,
        batch_tokens: int = 4096,
        attention: bool = False,
        guides: list[Guide] | None = None,
        threads: int | None = None,
    ) -> Iterator[list[Hypothesis]]:
        """Yield the best translations of each segment: `translate_nbest` without its buffers.

        Args:
            segments: What `split` returned.
            options, batch_tokens, attention: As for `translate_nbest`.
            guides: What leads the search of each segment, if anything does.
            threads: Batches searched side by side. Default: as many as this translator has.
        """
        sources = [self.codec.encode(segment.pieces) for segment in segments]
        found = self.search(sources, options, batch_tokens, guides, threads)
        for source, beams in zip(sources, found, strict=True):
            yield self.describe(source, beams[: options.nbest], attention)

    def search(
        self,
        sources: list[np.ndarray],
        options: SearchOptions,
        batch_tokens: int,
        guides: list[Guide] | None = None,
        threads: int | None = None,
    ) -> list[list[tuple[np.ndarray, float]]]:
        """Translate token indices: the part of `translate_nbest` that takes the time.

        Args:
            sources: Of each sentence the indices that `TextCodec.encode` makes.
            options, batch_tokens: As for `translate_nbest`.
            guides, threads: As for `translate_segments`.

        Returns:
            The beams of each sentence, best first: token indices without the end, and score.

        Raises:
            UserError: If there is none, as where weights overflow.
        """
        # An engine lets a batch grow as long as its longest source may.
        alike = options.max_len_a > 0
        batches = list(_batches(list(map(len, sources)), batch_tokens, alike))
        batches.reverse()  # long ones first, so that the threads end together
        results: list = [None] * len(sources)

        def search(batch: list[int]) -> list:
            led = guides and [guides[i] for i in batch]
            return self.engine.search([sources[i] for i in batch], options, led)

        threads = threads or self.threads
        with ThreadPoolExecutor(threads) as pool:  # starts threads only when used
            results_of = (pool.map if min(threads, len(batches)) > 1 else map)(search, batches)
            for batch, found in zip(batches, results_of, strict=True):
                for i, beams in zip(batch, found, strict=True):
                    results[i] = beams
        if not all(results):
            raise UserError("the model finds no translation; its weights are broken")
        return results

    def split(self, text: str, split_sentences: bool | None = None) -> list[Segment]:
        """Split a text into what is translated at once. Joined, the parts are the text.

        Lines are translated apart. Those that are too long for the model are cut in any case.

        Args:
            text: Raw text.
            split_sentences: Cut lines into sentences. Default: where the model wants it, as most
                do that were trained on single ones.

        Returns:
            The parts, in order; none of a blank text.
        """
        if split_sentences is None:
            split_sentences = self.codec.wants_sentences
        return split_text(
            text, self._cut_line, self.codec.split, self.longest, sentences=split_sentences
        )

    def _cut_line(self, line: str) -> list[str]:
        return split_sentences(line, self.codec.source_language)

    def describe(self, source: np.ndarray, beams: list, attention: bool) -> list[Hypothesis]:
        """Beams of a source, as `search` returns them, as text, with their attention if asked."""
        hypotheses = [Hypothesis(self.codec.decode(tokens), score) for tokens, score in beams]
        if attention:
            subwords = self.codec.name_source(source)
            weights = self.engine.attend(source, [tokens for tokens, _ in beams])
            for hypothesis, (tokens, _), rows in zip(hypotheses, beams, weights, strict=True):
                target = [*self.codec.name_target(tokens), subwords[-1]]
                hypothesis.attention = [Attention(subwords, target, rows)]
        return hypotheses


def import_engines(models: Sequence[str | Path]) -> None:
    """Import what models need, which takes seconds for checkpoints, before anything else is done.

    Raises:
        UserError: If that is not installed.
    """
    if not all(is_exported(Path(model)) for model in models):
        _import_trained()


def _import_trained():
    return import_with_fairseq("resmlp_mt.inference.trained", "a checkpoint (not an export)")


def _load(model: str | Path, device: str) -> tuple:
    """The engine of a model, and its `TextCodec`."""
    if is_exported(Path(model)):
        return load_exported_translator(Path(model), device)
    return _import_trained().load_trained(model, device)


def _batches(lengths: list[int], batch_tokens: int, alike: bool) -> Iterator[list[int]]:
    """Group indices of similar lengths, or of the same where they shall be alike.

    A batch has at most `batch_tokens`, or one sentence.
    """
    batch = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        longer = alike and batch and lengths[i] > lengths[batch[0]]
        if batch and (longer or lengths[i] * (len(batch) + 1) > batch_tokens):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
