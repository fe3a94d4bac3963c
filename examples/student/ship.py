"""Ship: students exported, and beside their teacher: how good, how fast, how large."""

import json
import shutil
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from steps import Lesson, Run, Step, call, read_json, say
from teachers import make_teacher

from resmlp_mt.data.reading import find_side, read_lines
from resmlp_mt.data.subwords import find_subwords
from resmlp_mt.files.finding import CHECKPOINT_NAMES, find_checkpoint, find_export
from resmlp_mt.files.output import whole_file

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from races.rounds import Rival, forget_peak, peak_memory, race  # noqa: E402

_RACED = ("checkpoint", "ctranslate2")  # whose model is at hand
_MIB = 2**20


def ship(run: Run) -> None:
    """Export the students, and score and race them beside their teacher: OUT/ship/report.json."""
    settings, learnt = run.tables["ship"], run.tables["learn"]
    learned, rounded = run.out / "learn", run.out / "round"
    models = {f"baseline-{s}": learned for s in learnt["seeds"] if learnt["baseline"]}
    models |= {
        f"student-{s}": rounded if "round" in run.tables else learned for s in learnt["seeds"]
    }
    models = {name: folder / name / "model.pt" for name, folder in models.items()}
    tests = {
        name: [find_side(prefix, lang) for lang in run.langs]
        for name, prefix in settings["tests"].items()
    }
    files = [*models.values(), *(path for sides in tests.values() for path in sides)]
    with run.step("ship", *files, teacher=run.tables["teacher"]) as step:
        if not step.is_done:
            for name, model in models.items():
                _export(run, model, step.folder / name)
            teachers = {"teacher": run.tables["teacher"]}
            if settings["convert"]:
                teachers["converted"] = _convert(step.folder / "converted", **settings["convert"])
            elif settings["teacher"]:
                teachers["raced teacher"] = settings["teacher"]
            scores = {
                test: _score(run, step, test, sides, teachers, list(models))
                for test, sides in tests.items()
            }
            raced = list(teachers.values())[-1], str(step.folder / list(models)[-1])
            lines = list(islice(read_lines(next(iter(tests.values()))[0]), settings["lines"]))
            results = _race(settings, *raced, lines) if raced[0]["kind"] in _RACED else []
            sizes = {name: _measure(step.folder / name) for name in models}
            sizes |= {name: _measure(*_find_models(table)) for name, table in teachers.items()}
            step.report = {"scores": scores, "race": results, "mib": sizes}
        _print(step)


def _export(run: Run, model: Path, out: Path) -> None:
    if out.exists():
        return
    settings, clean = run.tables["ship"], run.out / "clean" / "clean"
    text = [f"{clean}.{lang}" for lang in run.langs]
    more = [
        word for name in ("shortlist", "preview") if settings[name] for word in (f"--{name}", *text)
    ]
    call("resmlp-mt", "export", model, "--out", out, *settings["export"].split(), *more)


def _convert(out: Path, checkpoint: str, data: str, **more) -> dict:
    """The table of a teacher: a Transformer of fairseq in CTranslate2, in 8 bits.

    Args:
        out: The folder to make.
        checkpoint: Its checkpoint.
        data: The folder of its dictionaries and SentencePiece models.
        more: For the table.
    """
    if not (out / "source.spm").exists():
        plugin = Path(__file__).parents[2] / "resmlp_mt"  # which lets checkpoints be read
        flags = ["--model_path", checkpoint, "--data_dir", data, "--user_dir", plugin]
        call(
            "ct2-fairseq-converter",
            *flags,
            "--quantization",
            "int8",
            "--output_dir",
            out,
            "--force",
        )
        # The languages are in the names of the files.
        langs = sorted(Path(data).glob("train.*-*.*.idx"))[0].name.split(".")[1].split("-")
        for side, lang in zip(("target", "source"), reversed(langs), strict=True):
            shutil.copy(find_subwords(Path(data), lang), out / f"{side}.spm")
    return {"kind": "ctranslate2", "model": str(out), "compute_type": "int8", **more}


def _score(
    run: Run, step: Step, test: str, sides: Sequence[Path], teachers: dict, students: Sequence[str]
) -> list[dict]:
    """SacreBLEU's scores of all, with intervals, and p of the difference from the teacher."""
    settings, hypotheses = run.tables["ship"], []
    given = step.folder / f"{test}.given.jsonl"
    with whole_file(given) as path, open(path, "w", encoding="utf-8") as stream:
        stream.writelines(json.dumps([line, None]) + "\n" for line in read_lines(sides[0]))
    for name, table in teachers.items():
        found = step.folder / f"{test}.{name.replace(' ', '-')}.jsonl"
        lesson = {"teacher": table, "best": "", "keep": 1}
        run.make_lines(Lesson, lesson, given, found)
        hypotheses.append(step.folder / f"{test}.{name.replace(' ', '-')}")
        with whole_file(hypotheses[-1]) as path, open(path, "w", encoding="utf-8") as stream:
            stream.writelines(" ".join(each["best"]) + "\n" for each in read_json(found))
    for name in students:
        hypotheses.append(step.folder / f"{test}.{name}")
        flags = ["--model", step.folder / name, "--beam", settings["beam"], "--quiet", "--resume"]
        flags += ["--no-split-sentences"]  # as teachers translate
        call("resmlp-mt", "translate", *flags, "--input", sides[0], "--output", hypotheses[-1])
    flags = ["--ref", sides[1], "--paired-bs", "--json"]
    rows = json.loads(call("resmlp-mt", "score", *hypotheses, *flags))
    return [
        {"system": name, **row, "file": hypothesis.name}
        for name, hypothesis, row in zip([*teachers, *students], hypotheses, rows, strict=True)
    ]


class Racer:
    """Translates the same lines again and again.

    Args:
        table: The arguments of `make_teacher`.
        lines: The lines.
    """

    def __init__(self, table: dict, lines: list[str]):
        forget_peak()
        self.teacher, self.lines = make_teacher(**table), lines

    def __call__(self, case: str) -> dict[str, float]:
        """Translate all lines together, or each alone."""
        batches = [[line] for line in self.lines] if case == "alone" else [self.lines]
        start = time.perf_counter()
        for batch in batches:
            list(self.teacher.translate(batch, 1))
        seconds = time.perf_counter() - start
        return {"rate": len(self.lines) / seconds, "memory_mib": peak_memory()}


def _race(settings: dict, teacher: dict, student: str, lines: list[str]) -> list[dict]:
    """Sentences a second of the teacher and a student, on a thread each, in turn."""
    models = {"teacher": teacher}
    for beam in dict.fromkeys((settings["beam"], 1)):
        models[f"student, beam {beam}"] = {"kind": "checkpoint", "models": [student], "beam": beam}
    rivals = [Rival(name, Racer, {"table": t, "lines": lines}) for name, t in models.items()]
    results = race(rivals, ["together", "alone"], settings["rounds"], threads=1)
    return [
        {
            "system": result.rival,
            "lines": result.case,
            "sentences a second": round(result.figures["rate"], 1),
            "times the teacher": round(result.ratio, 2),
            "spread": [round(bound, 2) for bound in result.spread],
            "memory in MiB": round(result.figures["memory_mib"], 1),
        }
        for result in results
    ]


def _find_models(table: dict) -> list[Path]:
    if "model" in table:
        return [Path(table["model"])]
    return [find_export(model) or find_checkpoint(model) for model in table.get("models", ())]


def _measure(*paths: Path) -> float:
    """The size of files and folders, in MiB. A checkpoint beside an export does not count."""
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))]
    files = [file for file in files if file in paths or file.name not in CHECKPOINT_NAMES]
    return round(sum(file.stat().st_size for file in files if file.is_file()) / _MIB, 2)


def _print(step: Step) -> None:
    """The report, as a table for each test set and one of the race."""
    report = step.report
    for test, rows in report["scores"].items():
        say(f"{test}:")
        for row in rows:
            cells = (
                f"{name} {row[name]:6.2f} ± {row['paired_bs'][name]['ci']:.2f}"
                for name in ("BLEU", "chrF", "TER")
            )
            say(f"  {row['system']:16}" + "   ".join(cells))
    for row in report["race"]:
        said = "{sentences a second:10.1f} sentences a second, {times the teacher:5.2f} times"
        say(f"  {row['system']:16} {row['lines']:9}" + said.format(**row))
    for name, size in report["mib"].items():
        say(f"  {name:16} {size:10.2f} MiB")
