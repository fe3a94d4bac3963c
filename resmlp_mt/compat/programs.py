"""fairseq's own programs, and ours."""

import sys
from pathlib import Path

from resmlp_mt.compat.messages import explain


def is_our_command() -> bool:
    """Whether this process is `resmlp-mt` or `python -m resmlp_mt.cli`."""
    return Path(sys.argv[0]).name == "resmlp-mt" or "resmlp_mt.cli" in sys.orig_argv


def is_program() -> bool:
    """Whether this process is a program of fairseq or of ours, not another that imports us."""
    fairseqs = Path(sys.argv[0]).name.startswith("fairseq-")
    return fairseqs or "fairseq_cli" in " ".join(sys.orig_argv[:3]) or is_our_command()


def exit_with_explanation() -> None:
    """Let fairseq's own programs end with status 2 and one line where the user can put it right."""
    if (
        not Path(sys.argv[0]).name.startswith("fairseq-")
        or sys.excepthook is not sys.__excepthook__
    ):
        return

    def hook(kind, error, trace):
        name = Path(sys.argv[0]).name
        if text := explain(error, name.removeprefix("fairseq-")):
            print(f"{name}: {text}", file=sys.stderr)
            sys.exit(2)
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook
