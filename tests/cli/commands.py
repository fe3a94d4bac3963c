import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import torch
from cli.zygote import NAMES, find_commands
from filelock import FileLock

from resmlp_mt.cli.parser import build_parser, rename
from resmlp_mt.errors import UserError

ROOT = Path(__file__).parents[2]
PLUGIN = ["--user-dir", ROOT / "resmlp_mt"]
# Small enough to train in seconds; no size equals another.
SIZES = """--encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-ffn-embed-dim 24
    --decoder-ffn-embed-dim 40 --encoder-layers 2 --decoder-layers 1 --decoder-attention-heads 2
    --mixing-heads 4 --max-source-positions 60 --max-target-positions 50""".split()
RECIPE = """--optimizer adam --lr 0.01 --criterion label_smoothed_cross_entropy --max-tokens 1000
    --num-workers 0 --log-format json --log-interval 2 --share-all-embeddings""".split()
# In the place of the criterion of the recipe; chunks that do not come out even.
CHUNKS = "--criterion label_smoothed_cross_entropy_in_chunks --chunk-tokens 70".split()

IMAGE_SIZES = """--arch resmlp_cifar --image-size 16 --patch-size 4 --embed-dim 12
    --layers 2""".split()
IMAGE_RECIPE = """--task image_classification --criterion image_classification --optimizer adam
    --lr 0.01 --weight-decay 0.01 --batch-size 16 --crop-pct 1.0 --scale 0.6,1.0
    --num-workers 0 --log-format json --log-interval 2""".split()


# As in an environment that was activated.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
ENVIRONMENT["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def forks(**variables: str) -> dict[str, str]:
    """The environment of a shell whose commands are forks, with these variables."""
    return ENVIRONMENT | {"PATH": f"{find_commands()}:{ENVIRONMENT['PATH']}"} | variables


def words(command, own=True) -> list[str]:
    """The command line that starts a console command of this environment, or a fork that is it."""
    name, *arguments = map(str, command)
    if name == "bash":
        return [name, *arguments]
    if not own and name in NAMES:
        return [str(find_commands() / name), *arguments]
    if name == "resmlp-mt":
        return [sys.executable, "-m", "resmlp_mt.cli", *arguments]
    return [str(Path(sys.executable).with_name(name)), *arguments]


def run(
    *command, cwd=None, stdin=None, check=True, own=False, **options
) -> subprocess.CompletedProcess:
    """Run a console command of this environment, or bash, on real files.

    It runs in a fork of a process that has imported fairseq, which spares the seconds of that; so
    do the commands that bash runs. With `own`, with another PYTHONPATH, or with options of
    `subprocess.run`, it is a process of its own.
    """
    changed = options.pop("env", {})
    own = own or "PYTHONPATH" in changed or bool(options)
    given = stdin if isinstance(stdin, bytes | None) else stdin.encode()
    result = subprocess.run(
        words(command, own),
        cwd=cwd,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        env=ENVIRONMENT | changed if own else forks(**changed),
        timeout=1800,  # what hangs, whatever else the machine does
        **options,
    )
    result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
    if check:
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result


def fill_disk(size: int) -> dict:
    """Options of `run`: no file grows over so many bytes, as if the disk were full."""
    limit = resource.RLIMIT_FSIZE, (size, size)
    return {"check": False, "preexec_fn": lambda: resource.setrlimit(*limit)}


def call(*command) -> None:
    """Run a subcommand of ours within this process, which spares the seconds of another."""
    arguments = build_parser().parse_args(rename([*map(str, command)]))
    arguments.run(arguments)


def refuse(*command) -> str:
    """The message of a subcommand that is refused, within this process."""
    said = io.StringIO()
    with redirect_stderr(said):
        try:
            call(*command)
        except UserError as error:
            return str(error)
        except SystemExit as end:
            assert end.code == 2
            return said.getvalue()
    raise AssertionError(f"not refused: {command}")


def start(*command, own=False, **options) -> subprocess.Popen:
    """Start a console command whose output, both streams in one, can be read as it comes.

    It runs in a fork as with `run`, and this is a small process that passes signals on to it. What
    is not to be killed, terminated or interrupted, but stopped, needs `own`.
    """
    changed = options.pop("env", {})
    own = own or "PYTHONPATH" in changed or "preexec_fn" in options
    changed = {"PYTHONUNBUFFERED": "1"} | changed
    environment = ENVIRONMENT | changed if own else forks(**changed)
    out = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # A program whose output nobody reads waits soon: it cannot end before a busy test reads.
    return subprocess.Popen(words(command, own), env=environment, pipesize=4096, **out, **options)


def wait_for(said: str, process: subprocess.Popen) -> None:
    """Read what the process writes, up to the first line in which that is said."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if said in line:
            return
    raise AssertionError(f"it ended without {said!r}:\n" + "".join(lines)[-4000:])


def once(path: Path, make: Callable[[Path], object]) -> Path:
    """A path that test workers share, and that make(path) has made for all of them."""
    with FileLock(f"{path}.lock"):
        if not path.exists():
            make(path)
    return path


def load(path: Path) -> dict:
    """The content of a checkpoint, a file or the last of a folder."""
    return torch.load(path / "checkpoint_last.pt" if path.is_dir() else path, weights_only=True)


def assert_refused(result: subprocess.CompletedProcess, *said: str) -> None:
    """One clear message, status 2, no traceback."""
    assert result.returncode == 2, result.stdout[-2000:] + result.stderr[-4000:]
    assert "Traceback" not in result.stderr
    for words in said:
        assert words in result.stderr


def entries(log, key):
    """The JSON entries of a log that have the key."""
    found = [json.loads(line[line.index("{") :]) for line in log.splitlines() if '{"' in line]
    return [entry for entry in found if key in entry]


def flags_of(raw: Path, out: Path, *options) -> list:
    """The flags of `resmlp-mt prepare` for the text of the lesson."""
    splits = [x for s in ("train", "valid", "test") for x in (f"--{s}", raw / s)]
    languages = ["--source-lang", "en", "--target-lang", "de"]
    size = [] if "--like" in options else ["--vocab-size", 300]
    return [*languages, *splits, "--workers", 1, "--out", out, *size, *options]


def prepare(raw: Path, out: Path, *options, **run_options) -> subprocess.CompletedProcess:
    return run("resmlp-mt", "prepare", *flags_of(raw, out, *options), **run_options)


def train(data: Path, out: Path, *flags, arch="resmlp_plus_tiny", **run_options):
    """Train a small model of text."""
    command = ["resmlp-mt", "train", data, "--arch", arch, *SIZES, *RECIPE]
    return run(*command, "--save-dir", out, *flags, **run_options)


def write_misfit_timm(folder: Path) -> Path:
    """A folder for PYTHONPATH with a timm that fails as with a torchvision of another build."""
    (folder / "misfit" / "timm").mkdir(parents=True)
    module = 'raise RuntimeError("operator torchvision::nms does not exist")\n'
    (folder / "misfit" / "timm" / "__init__.py").write_text(module)
    return folder / "misfit"
