"""The queue, with an engine that answers when it is told to."""

import time

import pytest
from serving.held import Held, cut
from starlette.exceptions import HTTPException

from resmlp_mt import Translator
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.serving.batcher import Batcher, Job, Options
from resmlp_mt.serving.settings import Limits


@pytest.fixture
def batch():
    """batch(translator): a batcher of it, closed in the end. Its `ask` submits segments."""
    opened = []

    def build(translator, batch_size=4, queue_size=100, **options):
        batcher = Batcher(translator.threads, Limits(batch_size, queue_size), **options)
        batcher.ask = lambda *asked: batcher.submit(Job(*asked))
        opened.append((batcher, translator))
        return opened[-1][0]

    yield build
    for batcher, translator in opened:
        translator.let_go.set()
        batcher.close()


def texts(job):
    return [hypotheses[0].text for hypotheses in job.answer.result(60)]


def test_what_comes_while_workers_are_busy_is_translated_together(batch):
    translator, sizes = Held(), []
    batcher = batch(translator, observe_batch=sizes.append)
    first = batcher.ask(cut("ab"), Options(translator))
    translator.at_work.acquire(timeout=1800)
    rest = [batcher.ask(cut(f"{i}x", f"{i}y"), Options(translator)) for i in range(3)]
    translator.let_go.set()
    assert texts(first) == ["ba"]
    assert [texts(job) for job in rest] == [[f"x{i}", f"y{i}"] for i in range(3)]
    assert sizes == [1, 4, 2]


def test_a_full_queue_takes_all_lines_of_a_request_or_none(batch):
    translator = Held()
    batcher = batch(translator, queue_size=3)
    busy = batcher.ask(cut("busy"), Options(translator))
    translator.at_work.acquire(timeout=1800)
    waiting = batcher.ask(cut("a", "b"), Options(translator))
    with pytest.raises(HTTPException):
        batcher.ask(cut("c", "d"), Options(translator))
    last = batcher.ask(cut("e"), Options(translator))
    translator.let_go.set()
    assert list(map(texts, (busy, waiting, last))) == [["ysub"], ["a", "b"], ["e"]]


def test_a_cancelled_job_is_not_translated_and_leaves_its_place_to_others(batch):
    translator = Held()
    batcher = batch(translator, queue_size=2)
    busy = batcher.ask(cut("busy"), Options(translator))
    translator.at_work.acquire(timeout=1800)
    unwanted = batcher.ask(cut(*["unwanted"] * 2), Options(translator))
    assert batcher.waiting == 2 and unwanted.answer.cancel() and batcher.waiting == 0
    wanted = batcher.ask(cut(*["wanted"] * 2), Options(translator))
    translator.let_go.set()
    assert texts(busy) == ["ysub"] and texts(wanted) == ["detnaw"] * 2
    assert all("unwanted" not in lines for lines, _ in translator.batches)


def test_a_batch_that_nobody_waits_for_is_left_at_the_next_step(batch):
    translator = Held()  # it is not let go
    batcher = batch(translator)
    abandoned = batcher.ask(cut("a", "b"), Options(translator))
    translator.at_work.acquire(timeout=1800)
    abandoned.answer.cancel()
    wanted = batcher.ask(cut("wanted"), Options(translator))
    assert translator.at_work.acquire(timeout=1800)
    translator.let_go.set()
    assert texts(wanted) == ["detnaw"]


def test_jobs_share_batches_text_by_text(batch):
    translator = Held()
    batcher = batch(translator)
    busy = batcher.ask(cut("busy"), Options(translator))
    translator.at_work.acquire(timeout=1800)
    long = batcher.ask(cut(*(f"long {i}" for i in range(8))), Options(translator))
    other = batcher.ask(
        cut(*(f"other {i}" for i in range(3))), Options(translator, SearchOptions(nbest=2))
    )
    short = batcher.ask(cut("short"), Options(translator))
    translator.let_go.set()
    assert list(map(len, map(texts, (busy, long, other, short)))) == [1, 8, 3, 1]
    assert [lines for lines, _ in translator.batches] == [
        ["busy"],
        ["long 0", "short", "long 1", "long 2"],
        ["other 0", "other 1", "other 2"],
        ["long 3", "long 4", "long 5", "long 6"],
        ["long 7"],
    ]


@pytest.mark.parametrize("beam", [1, 10, 100])
def test_a_slice_has_a_bounded_number_of_steps(batch, beam):
    text = "a" * 23
    translator, sizes = Held(), []
    translator.let_go.set()
    batcher = batch(translator, batch_size=8, observe_batch=sizes.append)
    batcher.ask(cut(*[text] * 16), Options(translator, SearchOptions(beam=beam))).answer.result(60)
    steps = (len(text) + 1) * beam
    assert sum(sizes) == 16 and max(sizes) == min(8, max(1, 8 * 12 * 5 // steps))


def test_the_request_comes_first_that_least_was_done_for(batch):
    translator = Held()
    batcher = batch(translator)
    wide = SearchOptions(beam=10)
    busy = batcher.ask(cut("busy"), Options(translator))
    translator.at_work.acquire(timeout=1800)
    long = batcher.ask(cut(*(f"{i} " + "x" * 21 for i in range(3))), Options(translator, wide))
    for light in "abc":
        done = batcher.ask(cut(light), Options(translator))
        translator.let_go.set()
        assert texts(done) == [light]
    assert len(texts(long)) == 3 and texts(busy) == ["ysub"]
    firsts = [lines[0] for lines, _ in translator.batches]
    assert firsts.index("a") < firsts.index("1 " + "x" * 21)


def test_alternatives_are_searched_in_slices_with_others_in_between(batch):
    translator = Translator.from_pretrained("multi30k-en-de")
    translator.threads, translator.let_go, taken = 1, Held().let_go, []
    batcher = batch(translator, batch_size=64, observe_batch=taken.append)
    asked = Options(translator, SearchOptions(beam=20, nbest=20), alternatives=True)
    part = translator.split("A man rides a bike in the snow with a dog.", begun=True)
    plain = translator.split("Two dogs play.")
    job, order = batcher.ask(part, asked), []
    job.answer.add_done_callback(lambda _: order.append("alternatives"))
    while len(taken) < 2 and not job.answer.done():  # the first slices
        time.sleep(0.001)
    other = batcher.ask(plain, Options(translator))
    other.answer.add_done_callback(lambda _: order.append("plain"))
    assert len(job.answer.result(60)[0]) == 20
    assert order == ["plain", "alternatives"] and len(taken) > 4
    (found,) = job.answer.result()
    *_, expected = asked.translate(part)
    assert [h.text for h in found] == [h.text for h in expected]


def test_a_line_that_fails_fails_its_job_alone(batch):
    translator = Held()
    batcher = batch(translator, batch_size=10)
    busy = batcher.ask(cut("busy"), Options(translator))
    translator.at_work.acquire(timeout=1800)
    good, bad = (
        batcher.ask(cut(*lines), Options(translator)) for lines in (["a", "good"], ["b", "poison"])
    )
    translator.let_go.set()
    assert texts(busy) == ["ysub"] and texts(good) == ["a", "doog"]
    with pytest.raises(ValueError, match="poison"):
        bad.answer.result(60)


def test_closing_translates_what_waits_and_takes_no_more(batch):
    translator = Held()
    batcher = batch(translator, batch_size=1)
    job = batcher.ask(cut("a", "b", "c"), Options(translator))
    translator.let_go.set()
    batcher.close()
    assert job.answer.done() and texts(job) == ["a", "b", "c"]
    with pytest.raises(HTTPException):
        batcher.ask(cut("d"), Options(translator))
