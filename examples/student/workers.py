"""Lines made of lines, in parts: by processes of this machine, or by Ray's actors on many.

A part grows line by line, and what is there is kept, however the work ends. So the same command
goes on, and does nothing twice.
"""

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from resmlp_mt.data.processes import map_blocks
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_file
from resmlp_mt.files.partial_text import is_finished, open_text
from resmlp_mt.files.sums import sum_files

_AT_ONCE = 50  # lines between two notes of how far a part is

# Makes lines of lines, and of the number of the first of them.
Job = Callable[[Sequence[str], int], Iterator[str]]


class Worker:
    """Does one part after the other. The job is made with the first.

    Args:
        make: Makes the job of the settings.
        settings: Of the job.
        name: Of the lines, in messages.
    """

    def __init__(self, make: Callable[..., Job], settings: dict, name: str):
        self.make, self.settings, self.name = make, settings, name
        self.job: Job | None = None
        # It would say that a flag --resume goes on.
        logging.getLogger(open_text.__module__).setLevel(logging.ERROR)

    def __call__(self, part: dict) -> dict:
        """Make what is missing of a part.

        Returns:
            How many lines were `made`, and the `fault`, or nothing.
        """
        with open(part["lines"], "rb") as stream:
            stream.seek(part["start"])
            lines = [line.decode().rstrip("\n") for line in islice(stream, part["rows"])]
        try:
            self.job = self.job or self.make(**self.settings)
            with open_text(Path(part["out"]), {}, resume=True) as out:
                begun = out.lines
                self._go_on(lines, part["first"], out)
                return {"made": out.lines - begun, "fault": ""}
        except UserError as error:
            return {"made": 0, "fault": str(error)}

    def _go_on(self, lines: list[str], first: int, out) -> None:
        assert self.job is not None
        answers = self.job(lines[out.lines :], first + out.lines)
        try:
            # In this order: a line counts as read once there is an answer.
            for answer, _ in zip(answers, out.follow(lines), strict=False):
                out.write(answer + "\n")
                if out.lines % _AT_ONCE == 0:
                    out.flush()
        except UserError as error:
            out.flush()
            raise UserError(f"{self.name}, line {first + out.lines:,}: {error}") from None
        if out.lines < len(lines):
            out.flush()
            raise UserError(f"{self.name}, line {first + out.lines:,}: no answer any more")


def make_lines(
    make: Callable[..., Job],
    settings: dict,
    lines: Path,
    out: Path,
    rows: int,
    workers: int,
    ray: str | None = None,
) -> None:
    """Make OUT of a file, a line for a line.

    Args:
        make, settings: As for `Worker`.
        lines: The file.
        out: The file to make. What is done of it lies beside it until then.
        rows: Lines of a part.
        workers: Processes, or Ray's actors.
        ray: The address of a cluster of Ray, "auto" for that of this machine, "local" for one that
            is started. All its machines must see the same files. None for processes.

    Raises:
        UserError: With the place. What was done is kept.
    """
    if out.exists():
        return
    folder = out.with_name(f"{out.name}.parts")
    _keep_plan(
        folder, {"settings": settings, "rows": rows, **sum_files(lines.parent, [lines.name])}
    )
    parts = list(_find_parts(lines, folder, rows))
    left = [part for part in parts if not is_finished(Path(part["out"]))]
    worker = Worker(make, settings, str(lines))
    bar = tqdm(total=sum(part["rows"] for part in left), unit=" lines", desc=out.name, disable=None)
    with bar:
        for done in _spread(worker, left, workers, ray):
            if done["fault"]:
                raise UserError(f"{done['fault']}; the same command goes on")
            bar.update(done["made"])
    with whole_file(out) as path, open(path, "wb") as stream:
        for part in parts:
            stream.write(Path(part["out"]).read_bytes())
    shutil.rmtree(folder)


def _keep_plan(folder: Path, plan: dict) -> None:
    """Note what parts are made of; refuse to go on with those of something else."""
    path = folder / "plan.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != plan:
        raise UserError(f"{folder} was begun with other text or settings: remove it to begin anew")
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as new:
        new.write_text(json.dumps(plan), encoding="utf-8")


def _find_parts(lines: Path, folder: Path, rows: int) -> Iterator[dict]:
    common = {"lines": str(lines.absolute())}
    with open(lines, "rb") as stream:
        first, start = 1, 0
        while sizes := list(map(len, islice(stream, rows))):
            out = str(folder.absolute() / f"{first:09d}")
            yield {**common, "out": out, "start": start, "first": first, "rows": len(sizes)}
            first, start = first + len(sizes), start + sum(sizes)


def _spread(worker: Worker, parts: list[dict], workers: int, address: str | None) -> Iterator[dict]:
    """Yield what a worker returns for each part."""
    if address is None or not parts:
        yield from (done for _, done in map_blocks(worker, parts, workers))
        return
    import sys

    import ray
    from ray.data import ActorPoolStrategy

    for name in ("workers", "teachers", "steps"):  # which other machines do not have
        ray.cloudpickle.register_pickle_by_value(sys.modules[name])
    ray.init(None if address == "local" else address, log_to_driver=False)
    try:
        # A part is a place in a file. No text passes through Ray's store.
        corpus = ray.data.from_items(parts, override_num_blocks=len(parts)).map(
            Worker,
            fn_constructor_args=(worker.make, worker.settings, worker.name),
            compute=ActorPoolStrategy(size=min(workers, len(parts))),
            num_cpus=1,
        )
        yield from corpus.iter_rows()
    finally:
        ray.shutdown()
