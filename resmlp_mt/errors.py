"""What a user can put right: the command line prints it alone and exits with status 2."""


class UserError(Exception):
    """A mistake in input, files or flags; the message says what, where and what to do."""


def explain(error: BaseException) -> str | None:
    """What to tell a user of an exception: the message of his mistake, or None if it is none."""
    if str(error).startswith("Cannot load model parameters") and error.__context__:
        error = error.__context__  # fairseq puts this in the place of any error
    text = str(error)
    if text.startswith("Caught ") and "\nOriginal Traceback" in text:
        # From a worker that reads data: its traceback, which ends in the message.
        text = text.strip().rsplit(f"{type(error).__name__}: ", 1)[-1]
    if text.startswith(("Torch not compiled with CUDA", "Found no NVIDIA driver")):
        return "--fp16 needs a GPU, and there is none; on a CPU train with --bf16, or in fp32"
    if isinstance(error, UserError) or (isinstance(error, ValueError) and _raised_here(error)):
        return text
    return None


def _raised_here(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get("__name__", "").startswith("resmlp_mt.")
