"""Many sentences searched in batches of similar lengths, some of them side by side."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.engine import Beams, Engine, Guides, Sentences
from resmlp_mt.errors import BrokenModel


def search_batches(
    engine: Engine,
    sources: Sentences,
    options: SearchOptions,
    batch_tokens: int,
    guides: Guides,
    threads: int,
) -> Beams:
    """The beams of each sentence, best first: token indices without the end, and score.

    Args:
        engine: Searches a batch.
        sources: Token indices of each sentence, with its end. Each (S,).
        options: How to search.
        batch_tokens: Source subwords in a batch, padding included.
        guides: One for each sentence, if any sentence is led.
        threads: Batches searched side by side.

    Raises:
        BrokenModel: If there is no translation, as where weights overflow.
    """
    # Sentences without words to hold have batches of their own, without constraints: faster.
    holds = [bool(guides and guides[i].constraints) for i in range(len(sources))]
    free = replace(options, constraints=None)
    # With max_len_a the longest source of a batch says how long its translations may be, so a
    # batch has sources of one length.
    alike = options.max_len_a > 0
    batches = list(group(list(map(len, sources)), holds, batch_tokens, alike))
    batches.reverse()  # long ones first, so that the threads end together

    def search(batch: list[int]) -> list:
        texts = [sources[i] for i in batch]
        if options.constraints and not holds[batch[0]]:
            return engine.search(texts, free, None)
        return engine.search(texts, options, guides and [guides[i] for i in batch])

    results = _do_all(search, batches, threads)
    if not all(results):
        raise BrokenModel("the model finds no translation; its weights are broken")
    return results


def score_batches(
    engine: Engine, sources: Sentences, targets: Sentences, batch_tokens: int, threads: int
) -> list[float]:
    """The log-probability of each target, given its source, in nats.

    Args:
        engine: Scores a batch.
        sources: Token indices of each sentence, with its end. Each (S,).
        targets: A translation of each, without its end. Each (T,).
        batch_tokens: Subwords of the longer side in a batch, padding included.
        threads: Batches scored side by side.
    """
    lengths = [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)]
    batches = list(group(lengths, [False] * len(lengths), batch_tokens, alike=False))
    batches.reverse()

    def score(batch: list[int]) -> list[float]:
        return engine.score(*([side[i] for i in batch] for side in (sources, targets))).tolist()

    return _do_all(score, batches, threads)


def _do_all(work: Callable[[list[int]], list], batches: list[list[int]], threads: int) -> list:
    """The results of the work on batches of indices, by index."""
    results: list = [None] * sum(map(len, batches))
    with ThreadPoolExecutor(threads) as pool:  # starts threads only when used
        results_of = (pool.map if min(threads, len(batches)) > 1 else map)(work, batches)
        for batch, found in zip(batches, results_of, strict=True):
            for i, result in zip(batch, found, strict=True):
                results[i] = result
    return results


def group(
    lengths: list[int], apart: list[bool], batch_tokens: int, alike: bool
) -> Iterator[list[int]]:
    """Yield the indices of sentences in batches, short ones first.

    Args:
        lengths: Of the sentences.
        apart: Which of them share no batch with the others.
        batch_tokens: Most in a batch, padding included; a single sentence may have more.
        alike: Whether all sentences of a batch have the same length.
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (apart[i], lengths[i])):
        if batch and (
            apart[i] != apart[batch[0]]
            or (alike and lengths[i] > lengths[batch[0]])
            or lengths[i] * (len(batch) + 1) > batch_tokens
        ):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
