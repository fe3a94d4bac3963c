"""What a user can put right: the command line prints it alone and exits with status 2."""

_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029)
_SPELT_OUT = {code: repr(chr(code))[1:-1] for code in _CONTROLS}
_OF_PATHS = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


class UserError(Exception):
    """A mistake in input, files or flags; the message says what, where and what to do."""


def on_a_line(text: str) -> str:
    """Text with its control characters spelt out, so that it takes a line and no more."""
    return text.translate(_SPELT_OUT)


def name_some(names: list[str], limit: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def refused_class(error: str) -> str | None:
    """The class that torch refused to load from a file, if that is what its error says."""
    for words in ("nsupported global: GLOBAL ", "nsupported GLOBAL "):
        if words in error:
            return error.split(words, 1)[1].split()[0]
    return None


def explain(error: BaseException) -> str | None:
    """What to tell a user of an exception: the message of his mistake, or None if it is none."""
    text = str(error)
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
    if text.startswith(("Torch not compiled with CUDA", "Found no NVIDIA driver")):
        return "this needs a GPU, as --fp16 does, and there is none; --bf16 works on CPUs"
    if "No working C++ compiler" in text or "Cannot find a working triton" in text:
        return "--torch-compile needs a C++ compiler on CPUs (Debian: g++), and Triton on GPUs"
    if isinstance(error, FloatingPointError) and "between workers" not in text:
        return (
            f"training diverged: {text.splitlines()[0]} Train on from an earlier checkpoint "
            "(--restore-file) with a lower --lr, a longer --warmup-updates, --clip-norm 1, or in "
            "--bf16 or full precision instead of --fp16; crash.pt holds the broken weights"
        )
    if text.startswith(("Must specify batch size", "--path required")):
        return text
    if text.startswith("Model file not found: "):
        return f"{text.split(': ', 1)[1]}: no such checkpoint"
    if isinstance(error, _OF_PATHS):
        return f"{error.filename}: {error.strerror}" if error.filename else text
    if isinstance(error, UserError) or (isinstance(error, ValueError) and _raised_here(error)):
        return text
    return None


def _raised_here(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get("__name__", "").startswith("resmlp_mt.")
