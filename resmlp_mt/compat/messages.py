"""Messages of fairseq, torch and Python about a user's mistakes, with what to do."""

import re

from resmlp_mt.errors import UserError, name_some

_TOO_LONG = re.compile(
    r"Size of sample #(\d+) is invalid \(=(.+?)\) since max_positions=(.+?),? skip"
)
# Messages of fairseq that say what to do.
_CLEAR = (
    "Must specify batch size",
    "--path required",
    "Please install ",
    "Cannot use a fixed learning rate schedule with ",
    "Criterion does not match; ",
    "Optimizer does not match; ",
    "Valid paths [",
    "--finetune-from-model can not be set together with ",
    "--replace-unk requires a raw text dataset",
    "fairseq's libbleu is ",  # of `fairseq_wheel.py`
)
LOADER_KILLED = (
    "a process that reads batches (--num-workers) was killed, perhaps for want of memory; train on "
    "with fewer of them"
)
_OF_PATHS = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def refused_class(error: str) -> str | None:
    """The class that torch refused to load from a file, if that is what its error says."""
    for words in ("nsupported global: GLOBAL ", "nsupported GLOBAL "):
        if words in error:
            return error.split(words, 1)[1].split()[0]
    return None


def explain(error: BaseException, program: str = "") -> str | None:
    """The message of a user's mistake that an exception stands for; None if it is a bug.

    The program is `generate`, `interactive` ...
    """
    text = str(error)
    if size := _TOO_LONG.search(text):
        lengths = re.sub(r"np\.\w+\((\d+)\)", r"\1", size.group(2))
        among = " of the buffer" if program == "interactive" else ""
        return (
            f"line {int(size.group(1)) + 1}{among} has {lengths} tokens (source, target), "
            f"the model takes {size.group(3)}; shorten it, or leave such lines out with "
            "--skip-invalid-size-inputs-valid-test"
        )
    if text.startswith("Cannot load model parameters from checkpoint ") and error.__context__:
        # fairseq puts this in the place of any error.
        reason, checkpoint = explain(error.__context__), text.split("checkpoint ")[1].split(";")[0]
        return reason and (
            f"{checkpoint}: {reason}\nTrain with the flags of the checkpoint, or into another "
            "--save-dir"
        )
    if text.startswith("Error(s) in loading state_dict for "):
        differences = [line.strip()[:200] for line in text.splitlines()[1:]]
        return f"the checkpoint is of another model: {name_some(differences, 3)}"
    if text.startswith("Caught ") and "\nOriginal Traceback" in text:
        # From a worker that reads data: its traceback, which ends in the message.
        text = text.strip().rsplit(f"{type(error).__name__}: ", 1)[-1]
    if type(error).__name__ == "ProcessRaisedException":
        # From a worker that trains: its traceback, too.
        kind, _, said = text.strip().splitlines()[-1].partition(": ")
        return said if kind == f"{UserError.__module__}.{UserError.__name__}" else None
    if text.startswith("DataLoader worker (pid"):
        return LOADER_KILLED
    if text.startswith(("Torch not compiled with CUDA", "Found no NVIDIA driver")):
        return "this needs a GPU, as --fp16 does, and there is none; --bf16 works on CPUs"
    if "No working C++ compiler" in text or "Cannot find a working triton" in text:
        return "--torch-compile needs a C++ compiler on CPUs (Debian: g++), and Triton on GPUs"
    if isinstance(error, FloatingPointError) and "between workers" not in text:
        return (
            f"training diverged: {text.splitlines()[0].rstrip('.')}. Train on from an earlier "
            "checkpoint (--restore-file) with a lower --lr, a longer --warmup-updates, --clip-norm "
            "1, or in --bf16 or full precision instead of --fp16, which needs --reset-optimizer; "
            "crash.pt holds the broken weights"
        )
    if text.startswith("Could not infer language pair"):
        return (
            "there is no prepared text in the data folder, and no --source-lang and --target-lang; "
            "for images give --task image_classification"
        )
    if text.startswith(_CLEAR):
        return text
    if isinstance(error, UnicodeDecodeError) and program == "interactive":
        return f"the input is no UTF-8: byte {error.object[error.start]:#x}; convert it with iconv"
    if text.startswith("Model file not found: "):
        return f"{text.split(': ', 1)[1]}: no such checkpoint"
    if isinstance(error, _OF_PATHS):
        if error.filename:
            return f"{error.filename}: {error.strerror}"
        # fairseq raises it for --user-dir, with a path alone.
        return f"{text}: no such file or folder" if isinstance(error, FileNotFoundError) else text
    if isinstance(error, UserError):
        return text
    return None
