"""Rivals measured in turn, each in a process of its own, so that noise hits all of them alike.

Machines slow down and speed up by the minute. What is reported is therefore the ratio of two
rates within one round, its median over the rounds, and its spread.
"""

import gc
import multiprocessing
import os
import re
import resource
import signal
import statistics
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from resmlp_mt.errors import UserError
from resmlp_mt.files.output import abandon


@dataclass
class Rival:
    """A program to measure: `build(**arguments)` gives a callable that takes a case.

    The callable does the case's work once and returns figures by name, "rate" among them: work
    done per second, in the same unit for all rivals.
    """

    name: str
    build: Callable
    arguments: dict = field(default_factory=dict)


@dataclass
class Result:
    """The figures of a rival in a case.

    Attributes:
        figures: Name to median over the rounds.
        ratio: Median over the rounds of the rate divided by the first rival's.
        spread: The smallest and the largest of the rounds' ratios.
    """

    rival: str
    case: object
    figures: dict[str, float]
    ratio: float
    spread: tuple[float, float]


def race(
    rivals: list[Rival],
    cases: Iterable,
    rounds: int,
    threads: int,
    progress: bool = False,
) -> list[Result]:
    """Measure the rivals in all cases; after a round to warm up, `rounds` that count.

    Args:
        rivals: The first is the one that the others are compared with.
        cases: The work to do, each anything that can be pickled.
        rounds: How often each rival does each case.
        threads: Threads of each rival.
        progress: Show a bar on stderr.

    Raises:
        UserError: If a rival cannot be built, or fails.
    """
    workers = []
    try:
        for rival in rivals:
            workers.append(_Worker(rival, threads))
        for worker in workers:
            worker.answer()
        names, runs = zip(*((worker.name, worker.run) for worker in workers), strict=True)
        return take_turns(names, runs, cases, rounds, progress)
    except BaseException:  # an interrupt, a signal, a refusal: nobody waits for the work at hand
        for worker in workers:
            worker.process.terminate()
        raise
    finally:
        for worker in workers:
            worker.stop()


def take_turns(
    names: Sequence[str],
    runs: Sequence[Callable],
    cases: Iterable,
    rounds: int,
    progress: bool = False,
) -> list[Result]:
    """`race` for rivals that are built.

    Args:
        names: Of the rivals.
        runs: The callables of the rivals, as `Rival.build` gives them.
        cases, rounds, progress: As for `race`.
    """
    cases, results = list(cases), []
    total = len(cases) * (rounds + 1) * len(runs)
    with tqdm(total=total, unit=" runs", disable=not progress) as bar:
        for case in cases:
            samples = [[] for _ in runs]
            for round_ in range(rounds + 1):
                for place in range(len(runs)):  # each comes first in turn
                    i = (place + round_) % len(runs)
                    figures = runs[i](case)
                    if round_ > 0:
                        samples[i].append(figures)
                    bar.update()
            results += _summarise(names, case, samples)
    return results


def _summarise(names: Sequence[str], case, samples: list[list[dict]]) -> list[Result]:
    results = []
    for name, own in zip(names, samples, strict=True):
        ratios = [a["rate"] / b["rate"] for a, b in zip(own, samples[0], strict=True)]
        figures = {key: statistics.median(s[key] for s in own) for key in own[0]}
        spread = (min(ratios), max(ratios))
        results.append(Result(name, case, figures, statistics.median(ratios), spread))
    return results


class _Worker:
    """A process that builds a rival and runs cases when told to."""

    def __init__(self, rival: Rival, threads: int):
        self.name = rival.name
        # Spawned: a fork would inherit the parent's threads and memory.
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = str(threads)
        self.process = context.Process(target=_work, args=(rival, other), daemon=True)
        # The parent hears of Ctrl-C, and ends it. Blocked here, it is blocked there from the start.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        other.close()
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before

    def run(self, case) -> dict[str, float]:
        self.pipe.send(case)
        return self.answer()

    def answer(self):
        try:
            kind, value = self.pipe.recv()
        except EOFError:
            self.process.join()
            raise UserError(
                f"{self.name}: its process ended with status {self.process.exitcode}, perhaps for "
                "want of memory"
            ) from None
        if kind == "refused":
            raise UserError(f"{self.name}: {value}")
        if kind == "failed":
            raise RuntimeError(f"{self.name} failed:\n{value}")
        return value

    def stop(self) -> None:
        self.pipe.close()
        for end in (self.process.terminate, self.process.kill):
            self.process.join(5)
            end()  # nothing, where it has ended
        self.process.join()


def _work(rival: Rival, pipe) -> None:
    # The parent ends it, without a traceback, and it takes its temporary files along.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        run = rival.build(**rival.arguments)
        pipe.send(("ready", None))
        while True:
            case = pipe.recv()
            forget_peak()  # of larger cases
            pipe.send(("figures", run(case)))
    except (EOFError, ConnectionError):  # the race is over
        pass
    except UserError as error:
        pipe.send(("refused", str(error)))
    except Exception as error:
        # torch has no error of its own for a processor's memory.
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            pipe.send(("refused", "too little memory on this machine; make the work smaller"))
        else:
            pipe.send(("failed", traceback.format_exc()))
    finally:
        abandon()  # the signal may have come while it removed its own


def peak_memory() -> float:
    """The most memory that this process has had, in MiB.

    Linux counts into getrusage's figure what the parent had when it made this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """Let `peak_memory` count from what this process has now. On Linux alone."""
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
