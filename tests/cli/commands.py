import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

from cli.zygote import FILE_SIZE, FORKS, NAMES, find_command, find_commands

from resmlp_mt.cli.parser import build_parser, rename
from resmlp_mt.errors import UserError

ROOT = Path(__file__).parents[2]
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


ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def words(command, own=True, plugin=True) -> list[str]:
    """The command line that starts a console command of this environment, or a fork that is it."""
    name, *arguments = map(str, command)
    if not own:
        return [str(find_command(name, plugin)), *arguments]
    if name == "resmlp-mt":
        return [sys.executable, "-m", "resmlp_mt.cli", *arguments]
    return [str(Path(sys.executable).with_name(name)), *arguments]


def run(
    *command,
    cwd=None,
    stdin=None,
    check=True,
    own=False,
    forks=False,
    plugin=True,
    first=None,
    file_size=None,
    **options,
) -> subprocess.CompletedProcess:
    """Run a console command of this environment on real files.

    It runs in a fork of a process that has imported fairseq, which spares the seconds of that. With
    `own`, with another PYTHONPATH, or with options of `subprocess.run`, it is a process of its own.
    Without `plugin`, a script has fairseq as it is. With `forks`, what a script starts by
    `sys.executable`, or beside it, are forks too. A fork finds modules in the folder `first` before
    all others, but for those that are imported already, and writes no file larger than `file_size`,
    as if the disk were full.
    """
    changed = options.pop("env", {})
    if forks:
        changed = changed | {FORKS: str(find_commands())}
    own = own or "PYTHONPATH" in changed or bool(options)
    environment = ENVIRONMENT | changed
    if first:
        environment["PYTHONPATH"] = f"{first}:{ROOT}"
    if file_size:
        environment[FILE_SIZE] = str(file_size)
    given = stdin if isinstance(stdin, bytes | None) else stdin.encode()
    result = subprocess.run(
        words(command, own, plugin),
        cwd=cwd,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        env=environment,
        timeout=1800,  # what hangs, whatever else the machine does
        **options,
    )
    result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
    if check:
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result


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
    own = own or "PYTHONPATH" in changed or "preexec_fn" in options or command[0] not in NAMES
    environment = ENVIRONMENT | {"PYTHONUNBUFFERED": "1"} | changed
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
