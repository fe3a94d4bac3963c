"""The queue, with an engine that answers when it is told to."""

from concurrent.futures import CancelledError

import pytest
from serving.held import Held

from resmlp_mt.serving.batcher import Batcher, Options, QueueFull


@pytest.fixture
def batch():
    """batch(translator): a batcher of it, closed in the end."""
    opened = []

    def build(translator, workers=1, batch_size=4, queue_size=100, **options):
        batcher = Batcher(translator, workers, batch_size, queue_size, **options)
        opened.append((batcher, translator))
        return opened[-1][0]

    yield build
    for batcher, translator in opened:
        translator.let_go.set()
        batcher.close()


def texts(futures):
    return [future.result(60)[0].text for future in futures]


def test_what_comes_while_workers_are_busy_is_translated_together(batch):
    translator, sizes = Held(), []
    batcher = batch(translator, observe=sizes.append)
    first = batcher.submit(["ab"], Options())
    translator.at_work.acquire(timeout=60)
    rest = [batcher.submit([f"{i}x", f"{i}y"], Options()) for i in range(3)]
    translator.let_go.set()
    assert texts(first) == ["ba"]
    assert [texts(futures) for futures in rest] == [[f"x{i}", f"y{i}"] for i in range(3)]
    assert sizes == [1, 4, 2]


def test_workers_translate_side_by_side(batch):
    translator = Held()
    batcher = batch(translator, workers=2, batch_size=1)
    futures = batcher.submit(["a", "b"], Options())
    for _ in range(2):
        assert translator.at_work.acquire(timeout=60)
    translator.let_go.set()
    assert texts(futures) == ["a", "b"]


def test_lines_with_other_options_are_translated_apart_and_in_turn(batch):
    translator = Held()
    translator.let_go.set()
    batcher = batch(translator)
    futures = [batcher.submit(["a", "b"], Options(nbest=n)) for n in (1, 2, 1)]
    found = [[len(f.result(60)) for f in pair] for pair in futures]
    assert found == [[1, 1], [2, 2], [1, 1]]
    assert all(n in (1, 2) and len(lines) <= 2 for lines, n in translator.batches)


def test_attention_comes_where_it_is_asked_for(batch):
    translator = Held()
    translator.let_go.set()
    batcher = batch(translator)
    plain, shown = (batcher.submit(["abc"], Options(attention=a))[0] for a in (False, True))
    assert plain.result(60)[0].attention == [] and shown.result(60)[0].attention == ["abc"]


def test_a_full_queue_takes_all_lines_of_a_request_or_none(batch):
    translator = Held()
    batcher = batch(translator, queue_size=3)
    busy = batcher.submit(["busy"], Options())
    translator.at_work.acquire(timeout=60)
    waiting = batcher.submit(["a", "b"], Options())
    with pytest.raises(QueueFull):
        batcher.submit(["c", "d"], Options())
    waiting += batcher.submit(["e"], Options())
    translator.let_go.set()
    assert texts(busy + waiting) == ["ysub", "a", "b", "e"]


def test_cancelled_lines_are_not_translated(batch):
    translator = Held()
    batcher = batch(translator)
    busy = batcher.submit(["busy"], Options())
    translator.at_work.acquire(timeout=60)
    unwanted, wanted = batcher.submit(["unwanted", "wanted"], Options())
    assert unwanted.cancel()
    translator.let_go.set()
    assert texts([*busy, wanted]) == ["ysub", "detnaw"]
    assert all("unwanted" not in lines for lines, _ in translator.batches)
    with pytest.raises(CancelledError):
        unwanted.result(60)


def test_a_line_that_fails_fails_alone(batch):
    translator = Held()
    translator.let_go.set()
    good, bad, other = batch(translator).submit(["good", "poison", "other"], Options())
    assert texts([good, other]) == ["doog", "rehto"]
    with pytest.raises(ValueError, match="poison"):
        bad.result(60)


def test_closing_translates_what_waits_and_takes_no_more(batch):
    translator = Held()
    batcher = batch(translator, batch_size=1)
    futures = batcher.submit(["a", "b", "c"], Options())
    translator.let_go.set()
    batcher.close()
    assert all(future.done() for future in futures) and texts(futures) == ["a", "b", "c"]
    with pytest.raises(QueueFull):
        batcher.submit(["d"], Options())
