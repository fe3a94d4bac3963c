"""How likely a model finds translations that somebody else made."""

import math
from collections.abc import Iterable, Iterator

from resmlp_mt.engines.batches import fill
from resmlp_mt.engines.search.batched import score_batches
from resmlp_mt.translating.translator import Translator


def score_pairs(
    translator: Translator,
    pairs: Iterable[tuple[str, str]],
    per_subword: bool = False,
    batch_tokens: int = 4096,
    buffer_size: int = 4000,
) -> Iterator[float]:
    """Yield the negative log-likelihood of each target, given its source, in nats.

    Lines are taken whole and as they are typed. A side that is longer than the model takes is
    infinitely unlikely.

    Args:
        translator: The model.
        pairs: Source and target, raw text.
        per_subword: The mean over the target's subwords and its end, in place of the sum.
        batch_tokens: Subwords of the longer side in a batch, padding included.
        buffer_size: Pairs that are read, sorted by length and batched together.
    """
    engine, codec = translator.engine, translator.codec
    for buffer in fill(pairs, buffer_size):
        sources = [codec.encode(codec.split(source)) for source, _ in buffer]
        targets = [codec.encode_translation(target) for _, target in buffer]
        fitting = [
            i
            for i, (source, target) in enumerate(zip(sources, targets, strict=True))
            if len(source) <= translator.longest + 1 and len(target) < engine.target_positions
        ]
        found = dict.fromkeys(range(len(buffer)), math.inf)
        chosen = ([side[i] for i in fitting] for side in (sources, targets))
        scores = score_batches(engine, *chosen, batch_tokens, translator.threads)
        for i, score in zip(fitting, scores, strict=True):
            found[i] = -score / (len(targets[i]) + 1 if per_subword else 1)
        yield from found.values()
