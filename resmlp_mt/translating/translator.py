"""Raw text in, raw text out."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from reprlib import repr as shorten
from typing import Any, Self, overload

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.engines.batches import fill
from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.loaded import Loaded
from resmlp_mt.engines.loading import load_engine
from resmlp_mt.engines.options import FROM_1, SearchOptions, is_count
from resmlp_mt.engines.search.batched import search_batches
from resmlp_mt.engines.search.engine import Beams, Engine, Guides, Sentences
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import locate_model
from resmlp_mt.text.pipeline import TRIES, Pipeline
from resmlp_mt.text.segments import Segment, holds_text
from resmlp_mt.text.surrogates import mend_surrogates
from resmlp_mt.translating.alignment import as_typed, attend, attend_itself, weigh_words
from resmlp_mt.translating.glossary import Glossary, read_glossary
from resmlp_mt.translating.hypotheses import Hypothesis, explain_doubt, join
from resmlp_mt.translating.options import ReadingOptions, choose_search
from resmlp_mt.translating.prefixes import (
    Line,
    Row,
    check_beside,
    divide_begun,
    lay_beside,
    make_guides,
)

# How many times as wide the beam is at a second try, after each hypothesis lost something.
_WIDER = 4


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
        engine: A `FoldedSearch`, a `FairseqSearch` or an `Ensemble` of them.
        codec: The model's dictionaries and subwords.
        threads: Batches searched side by side.
    """

    def __init__(self, engine: Engine, codec: TextCodec, threads: int = 1):
        self.engine: Engine | None = engine
        # One position is for the end of the sentence.
        self.longest = min(engine.source_positions, 10**6) - 1
        self.codec, self.pipeline = codec, Pipeline(codec, self.longest)
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
                models translate on the CPU alone, and so does an ensemble with one. Models that
                come with the package are exports in 8 bits there, and checkpoints elsewhere.
            threads: Batches that an exported model searches side by side; for a checkpoint, torch's
                threads of the whole process. Default: the environment variable OMP_NUM_THREADS, or
                one a core.

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

        Searches that other threads have begun are finished before it is freed.
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
            ValueError: If more than the best is asked for, or a line is no text.
        """
        asked = options.get("options")
        if getattr(asked, "nbest", options.get("nbest", 1)) != 1:
            raise ValueError("translate returns the best alone; translate_nbest yields the n best")
        texts = list(_read_texts(lines))
        found = [best[0] for best in self.translate_nbest(texts, **options)]
        for number, (text, best) in enumerate(zip(texts, found, strict=True), 1):
            if said := explain_doubt(text, best):
                warnings.warn(f"text {number}: {said}", stacklevel=2)
                break
        return found[0].text if isinstance(lines, str) else [best.text for best in found]

    def share_unknown(self, text: str) -> float:
        """Share of a text's characters that the model never saw, as `Hypothesis.unknown` has it.

        Neither white space counts nor a sentence without letters, which stays as it is.
        """
        return self._share_unknown(self.split(_read_text(text)))

    def _share_unknown(self, segments: list[Segment]) -> float:
        pieces = (
            self.codec.split(segment.text) if segment.names else segment.pieces
            for segment in segments
            if segment.pieces and holds_text(segment.text)
        )
        return self.codec.share_unknown(chain.from_iterable(pieces))

    def translate_nbest(
        self,
        lines: str | Iterable[str],
        options: SearchOptions | None = None,
        batch_tokens: int = 4096,
        buffer_size: int = 1000,
        attention: bool = False,
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
            split_sentences: As for `Pipeline.split`; a line that has words to hold stays whole.
            recase: As for `Pipeline.split`; a line that has a prefix or words to hold is taken as
                typed.
            prefix: The beginning of the translations: one for all lines, or one for each. Its
                finished sentences translate as many of the line; only the rest is translated.
            words: The texts that the translation of each line shall hold, in the given order unless
                `constraints` says otherwise.
            glossary: Terms of the source and what a translation shall hold for each, or a file
                with them, as `read_glossary` takes it. Sentences without a term are translated as
                without a glossary.
            first: Number of the first line. Samples depend on the numbers of their lines.
            **search: `beam`, `nbest` and all else that `SearchOptions` takes, instead of `options`.

        Raises:
            ValueError: At once, if an option is impossible; on the way, if a line is no text.
            UserError: At once, if the beam is wider than the vocabulary. On the way, if a line
                cannot be translated as asked.
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
        return self._translate(rows, glossary, options, reading)

    def _translate(
        self,
        rows: Iterator[Row],
        glossary: Glossary | None,
        options: SearchOptions,
        reading: ReadingOptions,
    ) -> Iterator[list[Hypothesis]]:
        first = reading.first
        for buffer in fill(rows, reading.buffer_size):
            lines = [self._begin(*row, reading, glossary) for row in buffer]
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
                before = self._keep(line.segments, line.kept, reading.attention)
                yield self.join(line.text, line.segments, parts, before)
            first += len(lines)

    def _begin(
        self,
        text: str,
        prefix: str,
        words: Sequence[str],
        reading: ReadingOptions,
        glossary: Glossary | None,
    ) -> Line:
        """A line in parts, each translated at once; a prefix may hold translations of the first."""
        segments = self.split(
            text,
            glossary,
            # words may stand in any sentence
            split_sentences=False if words else reading.split_sentences,
            recase=reading.recase and not (prefix or words),
            begun=bool(prefix),
        )
        kept, rest = divide_begun(prefix, segments, self.codec.target_language)
        return Line(text, segments, kept, rest, words)

    def join(
        self,
        text: str,
        segments: list[Segment],
        found: list[list[Hypothesis]],
        before: Sequence[Hypothesis] = (),
    ) -> list[Hypothesis]:
        """The translations of a text, joined from those of its parts, with the unknown share.

        Those of the first parts are in `before`, from a prefix; those of the others in `found`.
        """
        best = join(text, found, segments, self.codec.target_language, before)
        unknown = self._share_unknown(segments)
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
        a guide leads its search. So does one of which each translation lost a number or a name.

        Args:
            segments: From `split`.
            options, batch_tokens, attention: As for `translate_nbest`.
            guides: One for each segment, if any segment is led.
            threads: Batches searched side by side. Default: as many as this translator has.
        """
        each = guides or [Guide()] * len(segments)
        found: dict[int, list[Hypothesis]] = {}
        ways = {
            i: segment
            for i, (guide, segment) in enumerate(zip(each, segments, strict=True))
            if segment.pieces and (segment.is_translated or guide.leads)
        }
        first = list(range(len(segments)))  # where the same segment is first: it is searched once
        if not guides:
            seen: dict[int, int] = {}
            first = [seen.setdefault(id(segment), i) for i, segment in enumerate(segments)]
            ways = {i: segment for i, segment in ways.items() if i == first[i]}
        lost = set(ways)
        for turn in range(TRIES):
            if not ways:
                break
            numbers = list(ways)
            held = [_hold(each[i], ways[i]) for i in numbers]
            asked = options
            if any(guide.constraints for guide in held) and not options.constraints:
                asked = replace(options, constraints="unordered")
            if turn and not options.sampling:  # a wider search finds more that lose nothing
                widest = len(self.codec.target_dictionary) - 1
                asked = replace(asked, beam=min(_WIDER * asked.beam, widest))
            results = self.search(
                [self.codec.encode(ways[i].pieces) for i in numbers],
                asked,
                batch_tokens,
                held if guides or asked.constraints else None,
                threads,
            )
            for i, beams in zip(numbers, results, strict=True):
                read = ways.pop(i)
                if kept := self.describe(read, beams, options.nbest, attention):
                    found[i] = kept
                    lost.discard(i)
                # Read in another way, the segment may lose nothing.
                elif again := self.pipeline.read_again(read):
                    ways[i] = again
        for i, segment in zip(first, segments, strict=True):
            best = found.get(i) or [self.leave(segment, attention, i in lost)]
            yield best + best[-1:] * (options.nbest - len(best))

    def search(
        self,
        sources: Sentences,
        options: SearchOptions,
        batch_tokens: int,
        guides: Guides = None,
        threads: int | None = None,
    ) -> Beams:
        """Translate token indices: the part of `translate_nbest` that takes the time.

        Args:
            sources: Token indices of each sentence, from `TextCodec.encode`.
            options, batch_tokens: As for `translate_nbest`.
            guides, threads: As for `translate_segments`.

        Returns:
            The beams of each sentence, best first: token indices without the end, and score.

        Raises:
            UserError: If nothing is found, as where weights overflow, or the beam is wider than the
                vocabulary.
            ValueError: If the translator was closed.
        """
        self._check_beam(options.beam)
        engine, threads = self._get_engine(), threads or self.threads
        return search_batches(engine, sources, options, batch_tokens, guides, threads)

    def _check_beam(self, beam: int) -> None:
        if beam >= (symbols := len(self.codec.target_dictionary)):
            raise UserError(f"beam {beam} must be less than the model's {symbols} subwords")

    def split(
        self, text: str, glossary: Glossary | None = None, **reading: bool | None
    ) -> list[Segment]:
        """Split a text into segments; other arguments as for `Pipeline.split`."""
        find_terms = glossary.find if glossary else None
        return self.pipeline.split(text, find_terms=find_terms, **reading)

    def describe(
        self, segment: Segment, beams: list, count: int, attention: bool
    ) -> list[Hypothesis]:
        """Make text of beams, as `search` returns them, with their attention if asked.

        At most `count` translations of the segment are made, of those that lost nothing. The engine
        is asked for attention where somebody wants it, and where marks are put around words.
        """
        found: list[Hypothesis] = []
        for tokens, score in beams:
            said = self.codec.decode(tokens)
            sizes = len(said.split()), len(segment.read.text.split())
            look = cache(
                lambda tokens=tokens: attend(self.codec, segment, tokens, self._get_engine())
            )
            weigh = cache(lambda look=look, sizes=sizes: weigh_words(look(), *sizes))
            if (done := self.pipeline.write(segment, said, weigh)) is not None:
                looks = [as_typed(self.codec, look(), segment, said, done)] if attention else []
                found.append(Hypothesis(done.text, score, looks))
            if len(found) == count:
                break
        return found

    def _keep(
        self, segments: list[Segment], sentences: Sequence[str], attention: bool
    ) -> list[Hypothesis]:
        """Translations of the first segments that a user gave, as if found. Their scores are 0."""
        kept = [Hypothesis(sentence, 0.0) for sentence in sentences]
        for segment, hypothesis in zip(segments, kept if attention else (), strict=False):
            if not (segment.pieces and hypothesis.text):  # a prefix may lack parts of the line
                continue
            tokens = self.codec.encode_translation(hypothesis.text)
            if len(tokens) < self._get_engine().target_positions:  # no longer than the model writes
                (found,) = self.describe(segment, [(tokens, 0.0)], 1, attention)
                words = self.codec.number_translation_words(hypothesis.text)
                hypothesis.attention = [replace(a, target_words=words) for a in found.attention]
        return kept

    def leave(self, segment: Segment, attention: bool, lost: bool = False) -> Hypothesis:
        """The segment as its own translation, with a score of 0.

        `lost` says that each translation lost something.
        """
        text = segment.text.strip() if lost else self.pipeline.copy(segment)
        looks = [attend_itself(self.codec, segment)] if attention else []
        return Hypothesis(text, 0.0, looks, lost=lost)


def _hold(guide: Guide, segment: Segment) -> Guide:
    """The guide of a segment, with the words that it must hold for terms, each once."""
    held = {wanted.tokens.tobytes(): wanted.tokens for wanted in segment.held}
    return replace(guide, constraints=(*guide.constraints, *held.values())) if held else guide


def _read_texts(lines: str | Iterable[str]) -> Iterator[str]:
    if isinstance(lines, bytes) or not isinstance(lines, Iterable):
        raise ValueError(f"lines {shorten(lines)} must be a text, or several texts")
    return map(_read_text, [lines] if isinstance(lines, str) else lines, count(1))


def _read_text(text: str, number: int = 1) -> str:
    if not isinstance(text, str):
        raise ValueError(f"line {number}: {shorten(text)} is no text; give a string")
    return mend_surrogates(text)
