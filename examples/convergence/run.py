"""Train everything that plan.py lists, one training after the other. Run it again to go on.

    bash examples/convergence/prepare.sh --raw DIR
    nohup nice python examples/convergence/run.py &
    python examples/convergence/run.py --status

Started twice, it trains two models at a time: each takes the next that the other does not have.
A training that was stopped, by whatever, goes on from its last checkpoint. One that is done has
rows in results.csv and is not begun again: whoever has them, on another machine too, goes on behind
them. SIGTERM lets the training save itself first. Whether all updates were made, its checkpoint
says. A training that diverges counts as the worst.
"""

import argparse
import csv
import fcntl
import json
import math
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from plan import STAGES, Run, Stage, list_flags, list_runs

from resmlp_mt.analysis.training_log import read_log

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "scripts"
KEY = ("stage", "purpose", "model", "lr", "dropout", "seed")
# What a training that is only to choose by has no value for.
SCORES = (
    "bleu,chrf,bleu_tokenized,brevity_penalty,valid_nll_base2,bits_per_character,train_seconds,"
    "bleu_signature,chrf_signature,commit,date,machine,command"
).split(",")


def main() -> int:
    """Go through the plan; status 1 where a training failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data-bin"),
        help="holds the data-bin folders; default: %(default)s",
    )
    parser.add_argument(
        "--work", type=Path, default=Path("checkpoints/convergence"), help="default: %(default)s"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results.csv")
    parser.add_argument("--stage", nargs="+", choices=[stage.name for stage in STAGES])
    parser.add_argument("--updates", type=int, help="train so little, to try the whole")
    parser.add_argument("--status", action="store_true", help="say where everything stands")
    arguments = parser.parse_args()
    stages = [s for s in STAGES if arguments.stage is None or s.name in arguments.stage]
    if arguments.status:
        for stage in stages:
            print_status(stage, arguments)
        return 0
    for stage in stages:
        while found := take_next(stage, arguments):
            run, lock = found
            print(f"begin {run.name}", flush=True)
            with lock:
                if not train(stage, run, arguments, lock):
                    return 1
            print(f"done {run.name}", flush=True)
    return 0


def take(folder: Path) -> TextIO | None:
    """Lock a folder; None where another queue has it, or a training that one began."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = open(folder / "lock", "w")  # noqa: SIM115  it is held beyond this function
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def read_losses(stage: Stage, results: Path) -> dict[Run, float]:
    """The validation losses of the runs that have a row."""
    rows = []
    if results.exists():
        with open(results, newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.DictReader(stream) if row["stage"] == stage.name]
    known = {tuple(row[name] for name in KEY): row["valid_nll_base2"] for row in rows}
    losses: dict[Run, float] = {}
    for _ in range(3):  # what was chosen by some names the next
        for run in list_runs(stage, losses):
            if loss := known.get(key_of(run)):
                losses[run] = math.inf if loss == "diverged" else float(loss)
    return losses


def key_of(run: Run) -> tuple[str, ...]:
    """The values that identify the row of a run."""
    return tuple(str(getattr(run, name)) for name in KEY)


def take_next(stage: Stage, arguments: argparse.Namespace) -> tuple[Run, TextIO] | None:
    """The first run that has no row and that nobody else trains, and its lock."""
    losses = read_losses(stage, arguments.results)
    for run in [r for r in list_runs(stage, losses) if r.known and r not in losses]:
        lock = take(arguments.work / run.name)
        if lock is None:
            print(f"{run.name} is at work in another queue", flush=True)
        elif run in read_losses(stage, arguments.results):  # it got its row just now
            lock.close()
        else:
            return run, lock
    return None


def train(stage: Stage, run: Run, arguments: argparse.Namespace, lock: TextIO) -> bool:
    """Train, score and write the row; False where the training failed."""
    folder, data = arguments.work / run.name, arguments.data / stage.data
    flags = list_flags(stage, run)
    if arguments.updates:
        flags += ["--max-update", str(arguments.updates)]
    # What a row says is of no machine.
    recorded = ["resmlp-mt", "train", f"data-bin/{stage.data}", *flags]
    (folder / "command").write_text(" ".join(recorded))
    diverged = False
    before = None
    while not diverged and not is_done(progress := read_progress(folder), flags):
        if progress == before:
            print(f"{run.name}: a training ended at update {progress.updates}", flush=True)
            return False
        before = progress
        status, said = call_training(folder, data, flags, lock)
        diverged = bool(status and re.search(r"diverged|FloatingPointError|Minimum loss", said))
        if status and not diverged:
            print(
                f"{run.name} failed, status {status}; {folder}/output ends with\n{said}", flush=True
            )
            return False
    write_rows(stage, run, folder, data, arguments.results, diverged)
    if run.purpose != "final":
        shutil.rmtree(folder)
    return True


def call_training(folder: Path, data: Path, flags: list[str], lock: TextIO) -> tuple[int, str]:
    """Train from the last checkpoint on; the status, and the end of what was said.

    SIGTERM lets the training save itself, and then ends this process.
    """
    command = [program("resmlp-mt"), "train", data, *flags]
    own = ["--save-dir", folder, "--log-format", "json", "--log-interval", "100"]
    own += ["--log-file", folder / "train.log", "--num-workers", "0"]
    own += ["--distributed-world-size", "1"]  # or fairseq would take all the GPUs that it sees
    with open(folder / "output", "ab") as output:
        process = subprocess.Popen(
            list(map(str, [*command, *own])), stdout=output, stderr=output, pass_fds=[lock.fileno()]
        )
        asked = []
        signal.signal(signal.SIGTERM, lambda *_: (asked.append(1), process.terminate()))
        status = process.wait()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if asked:
        sys.exit(128 + signal.SIGTERM)
    return status, (folder / "output").read_text(errors="replace")[-4000:]


@dataclass(frozen=True)
class Progress:
    """How far the last checkpoint of a training is; what was never validated has no best one."""

    updates: int = 0
    hours: float = 0.0
    epochs: int = 0
    epochs_since_best: int | None = None


def read_progress(folder: Path) -> Progress:
    """The progress of a training by its checkpoints; zeros before the first is saved."""
    if not (folder / "checkpoint_last.pt").exists():
        return Progress()
    # Here, so that --status answers at once.
    from resmlp_mt.compat.checkpoints import load_checkpoint

    last = load_checkpoint(folder / "checkpoint_last.pt")
    epoch = count_epochs(last)
    best = folder / "checkpoint_best.pt"
    return Progress(
        last["optimizer_history"][-1]["num_updates"],
        last["extra_state"]["previous_training_time"] / 3600,
        epoch,
        epoch - count_epochs(load_checkpoint(best)) if best.exists() else None,
    )


def count_epochs(checkpoint: dict) -> int:
    """The whole epochs that a checkpoint has behind it."""
    return checkpoint["extra_state"]["train_iterator"]["epoch"] - 1


def is_done(progress: Progress, flags: list[str]) -> bool:
    """Whether a training has made all of its updates, or its patience or its time is over.

    One that was stopped at the end of all, before its first validation, is validated when it goes
    on. fairseq ends with the same status when it is told to stop before. Where it goes on although
    its patience or time is over, it makes an update more, and begins to count its patience anew.
    """

    def limit(flag: str) -> float:  # the last one counts
        found = [float(flags[i + 1]) for i, name in enumerate(flags) if name == flag]
        return found[-1] if found else math.inf

    return progress.epochs_since_best is not None and (
        progress.updates >= limit("--max-update")
        or progress.hours > limit("--stop-time-hours")
        or progress.epochs_since_best >= limit("--patience")
    )


def write_rows(
    stage: Stage, run: Run, folder: Path, data: Path, results: Path, diverged: bool
) -> None:
    """Score what is to be compared, and append a row for each test set; else a row of the loss."""
    common = {name: str(getattr(run, name)) for name in KEY}
    losses = {"valid_nll_base2": "diverged", "bits_per_character": ""}
    if not diverged:
        lowest = min(loss for _, loss in read_log(folder / "train.log", "nll_loss")[1])
        bits = lowest * count_subwords_per_character(data, stage.langs)
        losses = {"valid_nll_base2": f"{lowest:.3f}", "bits_per_character": f"{bits:.4f}"}
    updates = count_updates(folder) if diverged else read_progress(folder).updates
    if run.purpose == "final" and not diverged:
        average = average_checkpoints(folder)
        rows = [
            json.loads(score(stage, folder, average, data, common | {"set": name}, subset))
            | {"updates": updates}
            for name, subset in stage.tests.items()
        ]
    else:
        command = (folder / "command").read_text()
        row = {**common, "set": "", "parameters": None, "updates": updates}
        rows = [row | dict.fromkeys(SCORES, "") | {"command": command}]
    # All at once, since a run that has a row counts as done.
    subprocess.run(
        [sys.executable, SCRIPTS / "append_row.py", results, "--log", folder / "train.log"],
        input=json.dumps([row | losses for row in rows]), text=True, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def count_subwords_per_character(data: Path, langs: tuple[str, str]) -> float:
    """Of the validation set's targets, with </s>. Losses by character compare vocabularies."""
    # Here, so that --status answers at once.
    from fairseq.data import Dictionary
    from fairseq.data.data_utils import infer_language_pair, load_indexed_dataset

    pair = "-".join(infer_language_pair(str(data)))
    dictionary = Dictionary.load(str(data / f"dict.{langs[1]}.txt"))
    sentences = load_indexed_dataset(str(data / f"valid.{pair}.{langs[1]}"), dictionary)
    entries = [i for sentence in sentences for i in sentence.tolist()]
    return len(entries) / sum(len(dictionary[i]) for i in entries if i != dictionary.eos())


def count_updates(folder: Path) -> int:
    """How many updates the log of a training tells of."""
    found = re.findall(r'num_updates": "(\d+)"', (folder / "train.log").read_text())
    return max(map(int, found), default=0)


def average_checkpoints(folder: Path) -> Path:
    """The mean of the epochs that were kept."""
    average = folder / "checkpoint_average.pt"
    epochs = [path for path in folder.glob("*.pt") if re.fullmatch(r"checkpoint\d+", path.stem)]
    call(program("resmlp-mt"), "average", folder, "--last", len(epochs), "--out", average)
    return average


def score(
    stage: Stage, folder: Path, model: Path, data: Path, columns: dict[str, str], subset: str
) -> str:
    """Translate a test set, and score it. Returns JSON."""
    source, target = stage.langs
    hypotheses = folder / f"{subset}.hypotheses.{target}"
    flags = stage.models[columns["model"]].split()
    plugin = flags[flags.index("--user-dir") :][:2] if "--user-dir" in flags else []
    translated = call(
        program("resmlp-mt"), "translate", "--model", model, *plugin,
        "--input", data / "raw" / f"{subset}.{source}",
    )  # fmt: skip
    hypotheses.write_text(translated, encoding="utf-8")
    return call(
        sys.executable, SCRIPTS / "translation_figures.py", folder,
        *(f"{name}={value}" for name, value in columns.items()),
        "--hypotheses", hypotheses, "--references", data / "raw" / f"{subset}.{target}",
        "--moses", target, "--lowercase",
    )  # fmt: skip


def program(name: str) -> str:
    """The path of a console command of this environment."""
    return str(Path(sys.executable).with_name(name))


def call(*command) -> str:
    """The output of a program."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def print_status(stage: Stage, arguments: argparse.Namespace) -> None:
    """A line for each run: its loss, how far it is, or that it waits."""
    losses = read_losses(stage, arguments.results)
    for run in list_runs(stage, losses):
        log = arguments.work / run.name / "train.log"
        if run in losses:
            state = f"done, validation loss {losses[run]:.3f}"
        elif log.exists():
            state = f"at update {count_updates(log.parent):,} of {run.updates:,}"
        else:
            state = "waits" if run.known else "waits for what it depends on"
        print(f"{run.name:60} {state}")


if __name__ == "__main__":
    sys.exit(main())
