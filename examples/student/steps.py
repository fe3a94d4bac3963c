"""The steps from a teacher to its student. Each makes a folder, and notes there what it is made of.

train   models of your own: teachers, and what judges
teach   the teachers translate the text
clean   pairs that are no translations go
learn   the student is trained on what is left
round   and a little further, rounded as it will be
ship    exported, scored and raced beside its teacher
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import compress, islice
from pathlib import Path

import numpy as np
from teachers import Found, make_teacher
from workers import make_lines

from resmlp_mt.data.filters import FILTERS, Sieve
from resmlp_mt.data.processes import map_blocks
from resmlp_mt.data.reading import find_side, read_blocks, read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import numbered_checkpoints
from resmlp_mt.files.output import whole_file

_LONG = 500  # characters that are left to a file


@dataclass
class Run:
    """A run: its configuration, by table, and the folder that it makes."""

    tables: dict
    out: Path

    @property
    def langs(self) -> tuple[str, str]:
        """Of source and target, the suffixes of files."""
        return tuple(self.tables["langs"])

    def make_lines(self, make, settings: dict, lines: Path, out: Path) -> None:
        """`workers.make_lines` with the workers of this run."""
        names = ("rows", "workers", "ray")
        make_lines(make, settings, lines, out, **{name: self.tables[name] for name in names})

    @contextmanager
    def step(self, name: str, *files: Path, **others) -> Iterator["Step"]:
        """Yield a `Step`, which is noted as done at the end of the block.

        Args:
            name: Its folder, and its table of the configuration.
            *files: What it is made from, besides what the table says.
            **others: Other settings that it is made with.

        Raises:
            UserError: If it was begun with other settings, or from other files.
        """
        made_from = {"settings": self.tables[name], **others}
        made_from |= {str(path): _sum(path) for path in files}
        step = Step(self.out / name, json.loads(json.dumps(made_from)))
        if step.note.exists():
            noted = json.loads(step.note.read_text(encoding="utf-8"))
            if noted["made_from"] != step.made_from:
                raise UserError(
                    f"{step.folder} was begun with other settings or text: remove it and what "
                    "follows it, or name another out"
                )
            step.report = noted["report"]
        step.is_done = bool(step.report)
        say(f"{name}: done before" if step.is_done else name)
        if step.is_done:
            yield step
            return
        step.write()
        yield step
        step.write()
        said = json.dumps(step.report)
        say(f"{name}: {said if len(said) < _LONG else step.note}")


@dataclass
class Step:
    """A step at work: its folder, what it is made from, and what it has to report in the end."""

    folder: Path
    made_from: dict
    report: dict = field(default_factory=dict)
    is_done: bool = False

    @property
    def note(self) -> Path:
        """Where all this is noted."""
        return self.folder / "step.json"

    def write(self) -> None:
        """Note it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(self.note) as path:
            note = {"made_from": self.made_from, "report": self.report}
            path.write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")


def say(text: str) -> None:
    """Tell what happens."""
    print(f"student: {text}", flush=True)


@cache
def _sum(path: Path) -> str:
    if not path.is_file():
        raise UserError(f"{path}: no such file; a step before makes it, or a path is wrong")
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# Teach.


class Lesson:
    """A teacher's translations: for each line a line of JSON with the best of them.

    Args:
        teacher: The arguments of `make_teacher`.
        best: "chrf" or "bleu": the nearest to a reference come first. "": in the teacher's order.
        keep: How many translations of a line.
    """

    def __init__(self, teacher: dict, best: str, keep: int):
        self.teacher, self.keep = make_teacher(**teacher), keep
        self.measure = best and _make_measure(best)

    def __call__(self, lines: Sequence[str], first: int) -> Iterator[str]:
        """Translate lines, each a source and a reference, or null, in JSON."""
        pairs = list(map(json.loads, lines))
        found = self.teacher.translate([source for source, _ in pairs], first)
        # The teacher is asked first: whether it has an answer says how far the lines are read.
        for answer, (source, reference) in zip(found, pairs, strict=False):
            yield json.dumps(self._choose(answer, source, reference), ensure_ascii=False)

    def _choose(self, found: Found, source: str, reference: str | None) -> dict:
        texts = [" ".join(text.split()) for text, _ in found]
        full = list(dict.fromkeys(filter(None, texts)))
        counts = {"empty": texts.count(""), "doubled": len(texts) - texts.count("") - len(full)}
        if self.measure and reference:
            full.sort(key=lambda text: -self.measure(text, reference))
        return {"best": full[: self.keep], **counts}


def _make_measure(name: str):
    from sacrebleu.metrics import BLEU, CHRF

    metric = CHRF() if name == "chrf" else BLEU(effective_order=True)
    return lambda text, reference: metric.sentence_score(text, [reference]).score


def teach(run: Run) -> None:
    """Let the teacher translate all text: OUT/teach/taught."""
    texts, (source_lang, target_lang) = run.tables["teach"]["text"], run.langs
    for text in texts:
        if text["best"] not in ("", "chrf", "bleu"):
            raise UserError(f"[teach] best = {text['best']!r}: chrf, bleu, or leave it out")
    files = [Path(text[side]) for text in texts for side in ("source", "target") if text[side]]
    with run.step("teach", *files, teacher=run.tables["teacher"]) as step:
        if step.is_done:
            return
        counts: Counter[str] = Counter()
        for number, text in enumerate(texts):
            given = step.folder / f"{number}.given.jsonl"
            if not given.exists():
                with whole_file(given) as path, open(path, "w", encoding="utf-8") as stream:
                    for pair in _choose_lines(text):
                        stream.write(json.dumps(pair, ensure_ascii=False) + "\n")
            teacher = {**run.tables["teacher"], "nbest": text["nbest"], **text["teacher"]}
            lesson = {"teacher": teacher, "best": text["best"], "keep": text["keep"]}
            run.make_lines(Lesson, lesson, given, step.folder / f"{number}.found.jsonl")
        with (
            whole_file(step.folder / f"taught.{source_lang}") as source_path,
            whole_file(step.folder / f"taught.{target_lang}") as target_path,
            open(source_path, "w", encoding="utf-8") as sources,
            open(target_path, "w", encoding="utf-8") as targets,
        ):
            for number, text in enumerate(texts):
                named = (step.folder / f"{number}.{kind}.jsonl" for kind in ("given", "found"))
                for given, found in zip(*map(read_json, named), strict=True):
                    source, reference = given
                    kept = [reference] if text["references"] and reference else []
                    made = [target for target in found["best"] if target not in kept]
                    for target in kept + made:
                        sources.write(f"{source}\n")
                        targets.write(f"{target}\n")
                    counts.update(lines=1, references=len(kept), taught=len(made))
                    counts.update(empty=found["empty"], doubled=found["doubled"])
                    counts["without a translation"] += not found["best"]
        step.report = dict(counts)


def read_json(path: Path) -> Iterator:
    """The JSON values of a file, one a line."""
    return map(json.loads, read_lines(path))


def _choose_lines(text: dict) -> Iterator[tuple[str, str | None]]:
    """Source and reference of the lines of a text that have so many words, up to the most."""
    sources = (" ".join(line.split()) for line in read_lines(Path(text["source"])))
    least, most = text["words"]
    pairs = ((source, None) for source in sources)
    if text["target"]:
        targets = (" ".join(line.split()) for line in read_lines(Path(text["target"])))
        pairs = _pair(text, sources, targets)
    fitting = (pair for pair in pairs if least <= len(pair[0].split()) <= most)
    return islice(fitting, text["lines"] or None)


def _pair(text: dict, sources: Iterator[str], targets: Iterator[str]) -> Iterator[tuple]:
    for number, source in enumerate(sources, 1):
        if (target := next(targets, None)) is None:
            raise UserError(f"{text['target']} ends before line {number:,} of {text['source']}")
        yield source, target or None


# Clean.


class Judgement:
    """How unlikely a model of the other direction finds pairs, in nats a subword.

    Args:
        judge: The arguments of `make_teacher`, of a kind that can score.
    """

    def __init__(self, judge: dict):
        self.judge = make_teacher(**judge)
        if not hasattr(self.judge, "score"):
            raise UserError(f"[clean] judge: a {judge['kind']} cannot score what others translate")

    def __call__(self, lines: Sequence[str], first: int) -> Iterator[str]:
        """Score lines, each a target and its source in JSON: a number each."""
        return map("{:.5f}".format, self.judge.score(list(map(json.loads, lines))))


def clean(run: Run) -> None:
    """Leave out pairs that are no translations: OUT/clean/clean."""
    settings, langs = run.tables["clean"], run.langs
    if unknown := set(settings["filters"]) - {name.removeprefix("remove_") for name in FILTERS}:
        known = ", ".join(name.removeprefix("remove_") for name in FILTERS)
        raise UserError(f"[clean] filters: no {min(unknown)}; there are {known}")
    if not 0 <= settings["drop"] < 1:
        raise UserError(f"[clean] drop = {settings['drop']}: a share, at least 0 and below 1")
    taught = str(run.out / "teach" / "taught")
    with run.step("clean", *(Path(f"{taught}.{lang}") for lang in langs)) as step:
        if step.is_done:
            return
        given = step.folder / "given.jsonl"
        dropped: dict[str, int] = {}
        sieve = Sieve([f"remove_{name}" for name in settings["filters"]], langs)
        is_kept = sieve.make_choice(dropped)
        total = left = 0
        with whole_file(given) as path, open(path, "w", encoding="utf-8") as stream:
            blocks = map_blocks(sieve, read_blocks(taught, *langs), run.tables["workers"])
            for block, found in blocks:
                total += len(block)
                for source, target, finding in zip(*block.decode(), found, strict=True):
                    if is_kept(finding):
                        left += 1
                        stream.write(json.dumps([target, source], ensure_ascii=False) + "\n")
        chosen = np.ones(left, bool)
        if settings["judge"] and left:
            scores = step.folder / "nats"
            run.make_lines(Judgement, {"judge": settings["judge"]}, given, scores)
            nats = np.array([float(line) for line in read_lines(scores)])
            order = np.argsort(nats, kind="stable")
            chosen[order[left - int(settings["drop"] * left) :]] = False
            chosen &= np.isfinite(nats)
            dropped["unlikely by the judge"] = int((~chosen).sum())
            step.report["nats a subword"] = {
                "mean": round(float(nats[np.isfinite(nats)].mean()), 3),
                "worst that was kept": round(float(nats[chosen].max(initial=0)), 3),
            }
        if not chosen.any():
            raise UserError(f"{taught}: no pair is left ({dropped}); look at [clean]")
        sides = [step.folder / f"clean.{lang}" for lang in langs]
        with (
            whole_file(sides[0]) as source_path,
            whole_file(sides[1]) as target_path,
            open(source_path, "w", encoding="utf-8") as sources,
            open(target_path, "w", encoding="utf-8") as targets,
        ):
            for target, source in compress(read_json(given), chosen):
                sources.write(f"{source}\n")
                targets.write(f"{target}\n")
        step.report |= {"pairs": total, "dropped": dropped, "kept": int(chosen.sum())}


# Train, learn, round.


def train(run: Run) -> None:
    """Train models of your own, for the steps to come: OUT/train/NAME/model.pt."""
    with run.step("train", data=run.tables["data"]) as step:
        if step.is_done:
            return
        models = run.tables["train"]["model"]
        for model in models:
            _prepare(step.folder / f"data-{model['data']}", run.tables["data"][model["data"]])
        trainings = [
            Training(
                step.folder / model["name"], step.folder / f"data-{model['data']}",
                model["train"], model["seed"], *_length_of(model),
            )
            for model in models
        ]  # fmt: skip
        step.report = _train_all(trainings, run.tables["jobs"])


def learn(run: Run) -> None:
    """Train the student: OUT/learn/student-SEED/model.pt."""
    settings, langs = run.tables["learn"], run.langs
    texts = {"student": str(run.out / "clean" / "clean")}
    texts |= {"baseline": settings["baseline"]} if settings["baseline"] else {}
    files = [find_side(prefix, lang) for prefix in texts.values() for lang in langs]
    with run.step("learn", *files) as step:
        if step.is_done:
            return
        given = f"-s {langs[0]} -t {langs[1]} {settings['prepare']}"
        for name, prefix in texts.items():
            _prepare(step.folder / f"data-{name}", given, "--train", prefix)
        trainings = [  # both of a seed, so that they can be compared soon
            Training(
                step.folder / f"{name}-{seed}", step.folder / f"data-{name}",
                settings["train"], seed, *_length_of(settings),
            )
            for seed in settings["seeds"]
            for name in texts
        ]  # fmt: skip
        step.report = _train_all(trainings, run.tables["jobs"])


def round_(run: Run) -> None:
    """Train the student further, rounded as its export will be: OUT/round/student-SEED/model.pt."""
    settings, learnt = run.tables["round"], run.tables["learn"]
    names = [f"student-{seed}" for seed in learnt["seeds"]]
    models = [run.out / "learn" / name / "model.pt" for name in names]
    with run.step("round", *models) as step:
        if step.is_done:
            return
        # In fp32: numbers of 16 bits are coarser than some steps of 8.
        flags = re.sub(r"--(bf16|fp16)\b", "", learnt["train"])
        flags = f"{flags} {settings['train']} --round-bits {settings['bits']}"
        trainings = [
            Training(
                step.folder / name, run.out / "learn" / "data-student", flags, seed,
                *_length_of(settings), model,
            )
            for name, seed, model in zip(names, learnt["seeds"], models, strict=True)
        ]  # fmt: skip
        step.report = _train_all(trainings, run.tables["jobs"])


def _length_of(table: dict) -> tuple[int, float, int]:
    return table["updates"], table["hours"], table["average"]


@dataclass
class Training:
    """One training of `resmlp-mt train`, whose last epochs are averaged, or its end is taken.

    Attributes:
        folder, data: Its own, and that of the data.
        flags: Of `resmlp-mt train`.
        seed: Of it.
        updates: How many.
        hours: When it ends before that; 0 for no such limit.
        average: The last epochs that are averaged; 1 for the end, be it within an epoch.
        start: A model to begin with.
    """

    folder: Path
    data: Path
    flags: str
    seed: int
    updates: int
    hours: float
    average: int
    start: Path | None = None

    def __call__(self) -> float:
        """Train, unless that is done; go on with what was begun. Returns the best loss, in bits."""
        model, log = self.folder / "model.pt", self.folder / "train.log"
        if not model.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            say(f"train {self.folder}")
            start = ["--finetune-from-model", self.start] if self.start else []
            start += ["--stop-time-hours", self.hours] if self.hours else []
            call(
                "resmlp-mt", "train", self.data.absolute(), *shlex.split(self.flags), *start,
                "--seed", self.seed, "--max-update", self.updates, "--save-dir", self.folder,
                "--keep-last-epochs", self.average, "--log-format", "json", "--log-file", log,
                log=self.folder / "output",
            )  # fmt: skip
            # One that is told to end saves itself and ends well, but is not done.
            updates, hours = read_progress(self.folder / "checkpoint_last.pt")
            if updates < self.updates and not 0 < self.hours < hours:
                raise UserError(f"{self.folder}: was stopped; the same command goes on")
            call("resmlp-mt", "average", *self._choose_last(), "--out", model)
        return min(map(float, _read_log(log, "valid_nll_loss")), default=float("nan"))

    def _choose_last(self) -> list:
        """The checkpoints to average: of epochs, or within the first; or the last one alone."""
        ends_epoch = Counter(ends for _, ends in numbered_checkpoints(self.folder))
        kept = max(ends_epoch.values(), default=0)
        if kept and self.average > 1:
            return [self.folder, "--last", min(kept, self.average)]
        return [self.folder / "checkpoint_last.pt"]


def read_progress(checkpoint: Path) -> tuple[int, float]:
    """The updates and hours that a checkpoint has behind it."""
    from resmlp_mt.compat.checkpoints import load_checkpoint

    state = load_checkpoint(checkpoint)
    hours = state["extra_state"]["previous_training_time"] / 3600
    return state["optimizer_history"][-1]["num_updates"], hours


def _read_log(log: Path, name: str) -> list[str]:
    return re.findall(rf'{name}": "([^"]+)"', log.read_text(encoding="utf-8"))


def _train_all(trainings: list[Training], jobs: int) -> dict[str, float]:
    with ThreadPoolExecutor(jobs) as pool:  # each training is a process
        try:
            losses = list(pool.map(lambda training: training(), trainings))
        except BaseException:  # one has failed, or this one is told to end
            pool.shutdown(wait=False, cancel_futures=True)
            for process in [*_at_work]:
                process.terminate()  # it saves itself
            raise
    return {t.folder.name: loss for t, loss in zip(trainings, losses, strict=True)}


def _prepare(out: Path, flags: str, *more) -> None:
    if not (out / "report.json").exists():
        say(f"prepare {out}")
        call("resmlp-mt", "prepare", *shlex.split(flags), *more, "--out", out)


# Programs that run now.
_at_work: set[subprocess.Popen] = set()


def call(program: str, *arguments, log: Path | None = None) -> str:
    """The output of a command of this environment.

    Raises:
        UserError: If it fails, with the last lines of its output.
    """
    command = [str(Path(sys.executable).with_name(program)), *map(str, arguments)]
    with open(log or os.devnull, "ab") as stream:
        out = stream if log else subprocess.PIPE
        process = subprocess.Popen(command, stdout=out, stderr=out, text=True)
        _at_work.add(process)
        try:
            said, complained = process.communicate()
        except BaseException:
            process.terminate()
            raise
        finally:
            _at_work.discard(process)
    if process.returncode:
        complained = log.read_text(encoding="utf-8", errors="replace") if log else complained
        raise UserError("\n".join([shlex.join(command), *complained.splitlines()[-5:]]))
    return said
