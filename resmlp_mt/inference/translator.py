"""Raw text in, raw text out."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from reprlib import repr as shorten
from typing import Any, Self, overload

import numpy as np

from resmlp_mt.errors import UserError
from resmlp_mt.extras import Bar
from resmlp_mt.files.finding import locate_model
from resmlp_mt.inference.batches import fill
from resmlp_mt.inference.codec import TextCodec
from resmlp_mt.inference.glossary import Glossary, read_glossary
from resmlp_mt.inference.guides import (
    Guide,
    Row,
    check_beside,
    hold_terms,
    lay_beside,
    make_guides,
)
from resmlp_mt.inference.hypotheses import MOSTLY, Hypothesis, explain_unknown, join
from resmlp_mt.inference.loaded import Loaded
from resmlp_mt.inference.loading import load_engine
from resmlp_mt.inference.options import (
    FROM_1,
    ReadingOptions,
    SearchOptions,
    choose_search,
    is_count,
)
from resmlp_mt.inference.reader import Reader
from resmlp_mt.inference.search.batched import search_batches
from resmlp_mt.inference.search.engine import Engine
from resmlp_mt.inference.segments import Composed, Segment, list_pieces
from resmlp_mt.inference.writer import Writer
from resmlp_mt.text.surrogates import mend_surrogates


class Translator(Loaded):
    """Translates raw sentences with one model.

    >>> translator = Translator.from_pretrained("multi30k-en-de")
    >>> translator.translate("Two dogs play in the snow.")
    'Zwei Hunde spielen im Schnee.'
    >>> translator.translate(["A man rides a bike.", ""], prefix=["Ein Junge", ""])
    ['Ein Junge fährt auf einem Fahrrad.', '']

    Several threads may use one at the same time. Where it was loaded by `from_pretrained` it can be
    pickled, for pools of processes: each process loads the model once, from the same place, and
    again where its files have changed. Copies share the model. Its memory is freed at the end of a
    `with` block, or by `close`, unless a copy has it.

    Args:
        engine: What searches: a `FoldedSearch`, a `FairseqSearch` or an `Ensemble` of them.
        codec: The model's dictionaries and subwords.
        threads: Batches searched side by side.
    """

    def __init__(self, engine: Engine, codec: TextCodec, threads: int = 1):
        self.engine: Engine | None = engine
        # One position is for the end of the sentence.
        self.longest = min(engine.source_positions, 10**6) - 1
        self.codec, self.reader, self.writer = codec, Reader(codec, self.longest), Writer(codec)
        self.threads = threads

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | Sequence[str | Path],
        device: str = "auto",
        threads: int | None = None,
    ) -> Self:
        """Load a model with what it needs.

        Args:
            model: A name of `pretrained_names`, a folder, or a checkpoint; or a folder that
                `export_model` made, which starts faster and takes less memory. Several with the
                same dictionaries are an ensemble: at every step the mean of their probabilities
                counts.
            device: As torch names it; "auto" takes an accelerator where there is one. Exported
                models translate on the CPU alone, and others beside them. Those that come with the
                package are exports in 8 bits there, and checkpoints on any other device.
            threads: An exported model searches as many batches side by side; for a checkpoint they
                are torch's, of the whole process. Default: one a core, or what the environment
                variable OMP_NUM_THREADS says.

        Raises:
            UserError: If something is missing, broken, or does not fit together.
            ValueError: If no model is named, or `threads` is no number above 0.
        """
        models = [model] if isinstance(model, str | Path) else model
        models = list(models) if isinstance(models, Iterable) else []
        if not models or not all(isinstance(name, str | Path) for name in models):
            raise ValueError(
                f"model {shorten(model)} must be the name of a model, its folder or checkpoint, or "
                "a list of at least one of these"
            )
        if threads is not None and not is_count(threads, 1):
            raise ValueError(f"threads {threads!r} {FROM_1}")
        places = tuple(locate_model(name, "text") for name in models)
        translator = cls(*load_engine(models, device, threads))
        translator._loaded = places, device, threads
        return translator

    def close(self) -> None:
        """Free the model, unless a copy has it. After that nothing can be translated.

        Searches of other threads end well before it is freed.
        """
        self.engine = None

    def _get_engine(self) -> Engine:
        if (engine := self.engine) is None:
            raise ValueError("the translator is closed")
        return engine

    @overload
    def translate(self, lines: str, **options: Any) -> str: ...

    @overload
    def translate(self, lines: Iterable[str], **options: Any) -> list[str]: ...

    def translate(self, lines: str | Iterable[str], **options: Any) -> str | list[str]:
        """Translate a text, or several; an empty one stays empty.

        Args:
            lines: A string is one text.
            options: As for `translate_nbest`, which alone returns more than the best.

        Returns:
            The best translation of each text in a list; of a string, a string.

        Raises:
            ValueError: If more than the best is asked for, or something else than text is given.
        """
        asked = options.get("options")
        if getattr(asked, "nbest", options.get("nbest", 1)) != 1:
            raise ValueError("translate returns the best alone; translate_nbest yields the n best")
        texts = list(_read_texts(lines))
        found = [best[0] for best in self.translate_nbest(texts, **options)]
        for number, (text, best) in enumerate(zip(texts, found, strict=True), 1):
            if best.unknown > MOSTLY:
                warnings.warn(f"text {number}: {explain_unknown(text)}", stacklevel=2)
                break
        return found[0].text if isinstance(lines, str) else [best.text for best in found]

    def share_unknown(self, text: str) -> float:
        """Share of a text's characters that the model never saw, as `Hypothesis.unknown` has it.

        Neither white space counts nor a sentence without letters, which stays as it is.
        """
        return self.codec.share_unknown(list_pieces(self.split(_read_text(text))))

    def translate_nbest(
        self,
        lines: str | Iterable[str],
        options: SearchOptions | None = None,
        batch_tokens: int = 4096,
        buffer_size: int = 1000,
        attention: bool = False,
        progress: bool = False,
        split_sentences: bool | None = None,
        recase: bool = True,
        prefix: str | Iterable[str] = "",
        words: Iterable[Sequence[str]] | None = None,
        glossary: Mapping[str, str] | str | Path | Glossary | None = None,
        first: int = 1,
        **search: Any,
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
            split_sentences: As for `Reader.split`; a line that has words to hold stays whole.
            recase: As for `Reader.split`; a line that has a prefix or words to hold is taken as
                typed.
            prefix: What translations begin with: of all lines, or of each of them. Sentences that
                are finished in it stand for as many of the line, of which the rest is translated.
            words: Of each line those that its translation shall hold, in the given order if
                `constraints` says no other.
            glossary: Terms of the source and what a translation shall hold for each, or a file
                with them, as `read_glossary` takes it. Sentences without any are translated as
                without a glossary.
            first: Number of the first line. What is sampled depends on the numbers.
            **search: `beam`, `nbest` and whatever else `SearchOptions` takes, in its place.

        Raises:
            ValueError: At once, if an option is impossible; on the way, if a line is no text.
            UserError: At once, if the beam is wider than the vocabulary. On the way, if a line
                cannot be translated so.
        """
        reading = ReadingOptions(
            batch_tokens, buffer_size, split_sentences, recase, attention, first
        )
        if words is not None and glossary is not None:
            raise ValueError("glossary: goes without words to hold")
        held = "words" if words is not None else "glossary" if glossary is not None else ""
        options = choose_search(options, search, held)
        self._check_beam(options.beam)
        if held and prefix:
            raise ValueError("prefix: cannot be forced where there are words to hold")
        check_beside(lines, prefix, words)
        if isinstance(glossary, str | Path):
            glossary = read_glossary(Path(glossary))
        if glossary is not None and not isinstance(glossary, Glossary):
            glossary = Glossary(glossary, self.codec)
        rows = lay_beside(_read_texts(lines), prefix, words)
        found = self._translate(rows, glossary, options, reading)
        return iter(Bar(found, unit=" lines")) if progress else found

    def _translate(
        self,
        rows: Iterator[Row],
        glossary: Glossary | None,
        options: SearchOptions,
        reading: ReadingOptions,
    ) -> Iterator[list[Hypothesis]]:
        first = reading.first
        for buffer in fill(rows, reading.buffer_size):
            lines = [self.reader.begin(*row, reading, glossary) for row in buffer]
            guides = None
            if glossary or options.sampling or any(line.prefix or line.words for line in lines):
                guides = make_guides(self.codec, lines, first)
            found = self.translate_segments(
                [segment for line in lines for segment in line.left],
                options,
                reading.batch_tokens,
                reading.attention,
                guides,
            )
            for line in lines:
                parts = list(islice(found, len(line.left)))
                before = self.writer.keep(
                    line.segments, line.kept, reading.attention, self._get_engine
                )
                yield self.join(line.text, line.segments, parts, before)
            first += len(lines)

    def join(
        self,
        text: str,
        segments: list[Segment],
        found: list[list[Hypothesis]],
        before: Sequence[Hypothesis] = (),
    ) -> list[Hypothesis]:
        """The translations of a text, of those of its parts, with the share that is unknown.

        Args:
            text: What was split.
            segments: All its parts.
            found: The translations of each part, but for the first ones that `before` has.
            before: Translations that a prefix had.
        """
        best = join(text, found, segments, self.codec.target_language, before)
        unknown = self.codec.share_unknown(list_pieces(segments))
        return [replace(hypothesis, unknown=unknown) for hypothesis in best]

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

        A segment without letters stays as it is, and so does one that the model cannot read, unless
        something leads its search. So does one with words that it cannot read and that no
        translation keeps.

        Args:
            segments: What `split` returned.
            options, batch_tokens, attention: As for `translate_nbest`.
            guides: What leads the search of each segment, if anything does.
            threads: Batches searched side by side. Default: as many as this translator has.
        """
        if any(segment.composed for segment in segments):
            kind = options, batch_tokens, attention
            yield from self._translate_composed(segments, *kind, guides, threads)
            return
        each = guides or [Guide()] * len(segments)
        ways = [guide.list_ways(segment) for guide, segment in zip(each, segments, strict=True)]
        found: dict[int, tuple[Segment, list]] = {}
        for turn in range(max([1, *map(len, ways)])):
            left = {i: w[turn] for i, w in enumerate(ways) if i not in found and turn < len(w)}
            # Terms that have names need not be held besides.
            of_each = guides and [
                replace(guides[i], constraints=()) if read.names else guides[i]
                for i, read in left.items()
            ]
            sources = [self.codec.encode(read.pieces) for read in left.values()]
            results = self.search(sources, options, batch_tokens, of_each, threads)
            for (i, read), beams in zip(left.items(), results, strict=True):
                # What leads a search says itself which beams are best.
                if read.names or not each[i].leads:
                    beams = self.writer.rank(read, beams)
                if beams:
                    found[i] = read, beams[: options.nbest]
        for i, segment in enumerate(segments):
            read, beams = found.get(i, (segment, []))
            source = self.codec.encode(read.pieces)
            if beams:
                yield self.describe(read, source, beams, attention)
            else:
                yield [self.writer.copy(segment, source, attention) for _ in range(options.nbest)]

    def _translate_composed(
        self,
        segments: list[Segment],
        options: SearchOptions,
        batch_tokens: int,
        attention: bool,
        guides: list[Guide] | None,
        threads: int | None,
    ) -> Iterator[list[Hypothesis]]:
        """`translate_segments` where some are composed: the parts of these are translated.

        A message stays as it is where a translation lost the number that stands for "#" in it.
        """
        parts = [
            segment.composed.segments if segment.composed else [segment] for segment in segments
        ]
        led = guides and [
            Guide(constraints=hold_terms(part), number=(*guide.number, i))
            if segment.composed
            else guide
            for guide, segment, of_it in zip(guides, segments, parts, strict=True)
            for i, part in enumerate(of_it)
        ]
        found = self.translate_segments(
            [part for of_it in parts for part in of_it],
            options,
            batch_tokens,
            attention,
            led,
            threads,
        )
        for segment in segments:
            composed = segment.composed
            if composed is None:
                yield next(found)
                continue
            texts = [
                self.join(text, list(of_it), list(islice(found, len(of_it))))
                for text, of_it in zip(composed.form.texts, composed.parts, strict=True)
            ]
            # Of a text that stays there is one translation, whatever was asked for.
            ranks = range(max(map(len, texts)))
            made = [
                _put_together(composed, [kth[min(k, len(kth) - 1)] for kth in texts]) for k in ranks
            ]
            yield [m for m in made if m] or [Hypothesis(segment.text.strip(), 0.0)] * len(ranks)

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
            UserError: If there is none, as where weights overflow, or the beam is wider than the
                vocabulary.
            ValueError: If the translator was closed.
        """
        self._check_beam(options.beam)
        engine, threads = self._get_engine(), threads or self.threads
        return search_batches(engine, sources, options, batch_tokens, guides, threads)

    def _check_beam(self, beam: int) -> None:
        if beam >= (symbols := len(self.codec.target_dictionary)):
            raise UserError(f"beam {beam} must be less than the model's {symbols} subwords")

    def split(self, text: str, **reading: bool | None) -> list[Segment]:
        """Split a text into what is translated at once; arguments as for `Reader.split`."""
        return self.reader.split(text, **reading)

    def describe(
        self, segment: Segment, source: np.ndarray, beams: list, attention: bool
    ) -> list[Hypothesis]:
        """Make text of beams, as `search` returns them; arguments as for `Writer.write`."""
        return self.writer.write(segment, source, beams, attention, self._get_engine)


def _put_together(composed: Composed, found: list[Hypothesis]) -> Hypothesis | None:
    """A translation of a composed segment, of those of its texts, if it can be put together."""
    text = composed.form.put_together([hypothesis.text for hypothesis in found])
    score = sum(hypothesis.score for hypothesis in found) / len(found)
    return None if text is None else Hypothesis(text, score)


def _read_texts(lines: str | Iterable[str]) -> Iterator[str]:
    if isinstance(lines, bytes) or not isinstance(lines, Iterable):
        raise ValueError(f"lines {shorten(lines)} must be a text, or several texts")
    return map(_read_text, [lines] if isinstance(lines, str) else lines, count(1))


def _read_text(text: str, number: int = 1) -> str:
    if not isinstance(text, str):
        raise ValueError(f"line {number}: {shorten(text)} is no text; give a string")
    return mend_surrogates(text)
