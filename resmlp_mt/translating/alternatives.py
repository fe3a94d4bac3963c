"""Other ways to go on at a place of a translation."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.text.segments import Segment
from resmlp_mt.text.sentences import parts_sentences_by_blanks
from resmlp_mt.translating.hypotheses import Hypothesis
from resmlp_mt.translating.translator import Translator

# Twice as many subwords are tried as translations are wanted: some only end the last word of the
# prefix, and some lead to the same translation.
MORE = 2
# Source subwords of all beams in a batch: 64 sentences of 12 subwords, with 5 beams each.
_STEPS = 64 * 12 * 5


def find_alternatives(
    translator: Translator,
    segments: list[Segment],
    options: SearchOptions,
    prefix: str,
    attention: bool = False,
) -> Iterator[list[Hypothesis] | None]:
    """Yield translations that begin alike, and then go on in different ways.

    None comes before each batch of the search: a queue may do other work then.

    Of the likeliest subwords behind the prefix each is tried, and the translation then completed as
    by `Translator.translate_segments`, `options.nbest` of each segment at most. If the prefix
    ends in a blank, its last word is whole.

    Raises:
        UserError: If the prefix is too long, or the model has no subwords for it.
    """
    codec = translator.codec
    for segment in segments:
        if not (segment.pieces and (segment.is_translated or prefix)):
            yield from translator.translate_segments([segment], options, attention=attention)
            continue
        segment = translator.pipeline.name(segment)
        source = codec.encode(segment.pieces)
        named = prefix
        for name, word in sorted(segment.names.items(), key=lambda pair: -len(pair[1])):
            named = named.replace(word, name)
        begun = codec.encode_target(named)
        guides = [Guide(begun)]
        following = _find_following(translator, source, options, begun, prefix)
        if following:
            guides = [Guide(np.append(begun, token)) for token in following]
        room = max(1, _STEPS // (options.beam * len(source)))
        best: dict[tuple, tuple[np.ndarray, float]] = {}
        for batch in (guides[i : i + room] for i in range(0, len(guides), room)):
            yield None
            found = translator.search([source] * len(batch), options, 10**6, batch, threads=1)
            best |= {tuple(beams[0][0]): beams[0] for beams in found}
        beams = sorted(best.values(), key=lambda pair: -pair[1])
        found = translator.describe(segment, beams, options.nbest, attention)
        yield found or [translator.leave(segment, attention, lost=True)]


def _find_following(
    translator: Translator,
    source: np.ndarray,
    options: SearchOptions,
    begun: np.ndarray,
    prefix: str,
) -> list[int]:
    """The likeliest subwords behind the beginning of a translation."""
    # Beams that must end behind the next subword are the likeliest of these.
    width, room = MORE * options.nbest, len(begun) + 1
    most = min(room, options.longest(len(source)))
    step = replace(options, beam=width, nbest=width, max_len_a=0.0, max_len_b=most)
    (beams,) = translator.search([source], step, 4096, [Guide(begun)], threads=1)
    following = [tokens[-1:] for tokens, _ in beams if len(tokens) == room]
    names = [translator.codec.name_target(token)[0] for token in following]
    whole = prefix[-1:].isspace() and parts_sentences_by_blanks(translator.codec.target_language)
    return [
        int(token[0])
        for token, name in zip(following, names, strict=True)
        if not (whole and name[0].isalnum())
    ]
