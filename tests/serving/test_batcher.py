"""The queue, with an engine that answers when it is told to."""

import threading
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from serving.held import Held, cut
from starlette.exceptions import HTTPException

from resmlp_mt import Translator
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.serving.batcher import Batcher
from resmlp_mt.serving.jobs import Job
from resmlp_mt.serving.settings import Limits


@pytest.fixture
def queue():
    """queue(): a queue of one thread, at work on "busy" until it is let go; `ask` adds a job."""
    with ExitStack() as stack:

        def build(translator=None, busy=True, batch_size=4, queue_size=100, **observers):
            translator = translator or Held()
            batcher = Batcher(1, Limits(batch_size, queue_size), **observers)
            stack.callback(batcher.close)
            stack.callback(translator.let_go.set)

            def ask(*texts, **way):
                job = Job([], translator, **way)
                job.hold([cut(*texts)])
                return batcher.submit(job)

            if busy:
                ask("busy")
                assert translator.at_work.acquire(timeout=1800)
            return SimpleNamespace(ask=ask, translator=translator, batcher=batcher)

        yield build


def texts(job):
    return [hypotheses[0].text for hypotheses in job.answer.result(1800)]


def test_what_comes_while_workers_are_busy_is_translated_together(queue):
    sizes = []
    held = queue(observe_batch=sizes.append)
    jobs = [held.ask(f"{i}x", f"{i}y") for i in range(3)]
    held.translator.let_go.set()
    assert [texts(job) for job in jobs] == [[f"x{i}", f"y{i}"] for i in range(3)]
    assert sizes == [1, 4, 2]


def test_a_full_queue_takes_all_lines_of_a_request_or_none(queue):
    held = queue(queue_size=3)
    waiting = held.ask("a", "b")
    with pytest.raises(HTTPException, match="429"):
        held.ask("c", "d")
    last = held.ask("e")
    held.translator.let_go.set()
    assert [texts(waiting), texts(last)] == [["a", "b"], ["e"]]


def test_a_cancelled_job_is_not_translated_and_leaves_its_place_to_others(queue):
    held = queue(queue_size=2)
    unwanted = held.ask("unwanted", "unwanted")
    assert held.batcher.waiting == 2 and unwanted.answer.cancel() and held.batcher.waiting == 0
    wanted = held.ask("wanted", "wanted")
    held.translator.let_go.set()
    assert texts(wanted) == ["detnaw"] * 2
    assert all("unwanted" not in lines for lines, _ in held.translator.batches)


def test_a_batch_that_nobody_waits_for_is_left_at_the_next_step(queue):
    held = queue(busy=False)
    abandoned = held.ask("a", "b")
    held.translator.at_work.acquire(timeout=1800)
    abandoned.answer.cancel()
    wanted = held.ask("wanted")
    assert held.translator.at_work.acquire(timeout=1800)  # it was not let go
    held.translator.let_go.set()
    assert texts(wanted) == ["detnaw"]


def test_jobs_share_batches_text_by_text(queue):
    held = queue()
    long = held.ask(*(f"long {i}" for i in range(8)))
    other = held.ask(*(f"other {i}" for i in range(3)), search=SearchOptions(nbest=2))
    short = held.ask("short")
    held.translator.let_go.set()
    assert list(map(len, map(texts, (long, other, short)))) == [8, 3, 1]
    assert [lines for lines, _ in held.translator.batches] == [
        ["busy"],
        ["long 0", "short", "long 1", "long 2"],
        ["other 0", "other 1", "other 2"],
        ["long 3", "long 4", "long 5", "long 6"],
        ["long 7"],
    ]


@pytest.mark.parametrize("beam", [1, 10, 100])
def test_a_slice_has_a_bounded_number_of_steps(queue, beam):
    text, sizes = "a" * 23, []
    held = queue(busy=False, batch_size=8, observe_batch=sizes.append)
    held.translator.let_go.set()
    texts(held.ask(*[text] * 16, search=SearchOptions(beam=beam)))
    steps = (len(text) + 1) * beam
    assert sum(sizes) == 16 and max(sizes) == min(8, max(1, 8 * 12 * 5 // steps))


def test_the_request_comes_first_that_least_was_done_for(queue):
    held = queue()
    lines = [f"{i} " + "x" * 21 for i in range(3)]
    long = held.ask(*lines, search=SearchOptions(beam=10))
    for light in "abc":
        done = held.ask(light)
        held.translator.let_go.set()
        assert texts(done) == [light]
    assert len(texts(long)) == 3
    firsts = [batch[0] for batch, _ in held.translator.batches]
    assert firsts.index("a") < firsts.index(lines[1])


def test_alternatives_are_searched_in_slices_with_others_in_between(queue):
    translator = Translator.from_pretrained("multi30k-en-de")
    asked_for_other, slices = threading.Event(), []
    translator.let_go = asked_for_other

    def observe(size):  # the thread waits behind two slices, until the other job is there
        slices.append(size)
        assert len(slices) != 2 or asked_for_other.wait(1800)

    batcher = queue(translator, busy=False, batch_size=64, observe_batch=observe).batcher
    way = {"search": SearchOptions(beam=20, nbest=20), "alternatives": True}
    job, other = Job([], translator, **way), Job([], translator)
    job.hold([translator.split("A man rides a bike in the snow with a dog.", begun=True)])
    other.hold([translator.split("Two dogs play.")])
    order = []
    for name, one in ("alternatives", job), ("plain", other):
        one.answer.add_done_callback(lambda _, name=name: order.append(name))
        batcher.submit(one)
    asked_for_other.set()
    (found,) = job.answer.result(1800)
    *_, expected = job.translate(job.segments)
    assert [h.text for h in found] == [h.text for h in expected] and len(found) == 20
    assert order == ["plain", "alternatives"] and len(slices) > 4


def test_a_line_that_fails_fails_its_job_alone(queue):
    held = queue(batch_size=10)
    good, bad = held.ask("a", "good"), held.ask("b", "poison")
    held.translator.let_go.set()
    assert texts(good) == ["a", "doog"]
    with pytest.raises(ValueError, match="poison"):
        bad.answer.result(1800)


def test_closing_translates_what_waits_and_takes_no_more(queue):
    held = queue(busy=False, batch_size=1)
    job = held.ask("a", "b", "c")
    held.translator.let_go.set()
    held.batcher.close()
    assert job.answer.done() and texts(job) == ["a", "b", "c"]
    with pytest.raises(HTTPException, match="429"):
        held.ask("d")
