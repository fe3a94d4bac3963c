"""How likely a model finds translations that somebody else made."""

import math
from collections.abc import Iterable, Iterator

from resmlp_mt.engines.batches import fill
from resmlp_mt.engines.search.batched import score_batches
from resmlp_mt.translating.translator import Translator

_BUFFER = 4000  # pairs that are read, sorted by length and batched together
_BATCH_TOKENS = 4096  # subwords of the longer side in a batch, padding included


def score_pairs(
    translator: Translator,
    pairs: Iterable[tuple[str, str]],
    per_subword: bool,
) -> Iterator[float]:
    """Yield the negative log-likelihood of each target, given its source, in nats.

    Lines are taken whole and as they are typed. A side that is longer than the model takes is
    infinitely unlikely.

    Args:
        translator: The model.
        pairs: Source and target, raw text.
        per_subword: The mean over the target's subwords and its end, in place of the sum.
    """
    engine, codec = translator.engine, translator.codec
    for buffer in fill(pairs, _BUFFER):
        sources = [codec.encode(codec.split(source)) for source, _ in buffer]
        targets = [codec.encode_translation(target) for _, target in buffer]
        fitting = [
            i
            for i, (source, target) in enumerate(zip(sources, targets, strict=True))
            if len(source) <= translator.longest + 1 and len(target) < engine.target_positions
        ]
        found = dict.fromkeys(range(len(buffer)), math.inf)
        chosen = ([side[i] for i in fitting] for side in (sources, targets))
        scores = score_batches(engine, *chosen, _BATCH_TOKENS, translator.threads)
        for i, score in zip(fitting, scores, strict=True):
            found[i] = -score / (len(targets[i]) + 1 if per_subword else 1)
        yield from found.values()
