"""Race the making of batches: ours, and fairseq's, which makes them sentence by sentence.

python examples/benchmarks/batches.py data-bin/ende-mix --csv examples/benchmarks/batches.csv

Both make the same batches of real text. Nothing is trained.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fairseq import options, tasks
from races.report import (
    append_rows,
    check_table,
    describe_command,
    make_rows,
    print_table,
)
from races.rounds import Rival, race

import resmlp_mt  # noqa: F401
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.pairs import PairsInBatches


@dataclass(frozen=True)
class Case:
    """So many batches of so many tokens."""

    max_tokens: int
    batches: int


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DATA", help="a folder of 'resmlp-mt prepare'")
    parser.add_argument("--max-tokens", type=int, nargs="+", default=[4096, 24576], metavar="N")
    parser.add_argument("--batches", type=int, default=20, metavar="N", help="of a run")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    cases = [Case(tokens, arguments.batches) for tokens in arguments.max_tokens]
    rivals = [
        Rival(name, Reading, {"data": arguments.data, "at_once": at_once})
        for name, at_once in (("fairseq", False), ("resmlp_mt", True))
    ]
    try:
        check_table(arguments.csv)
        results = race(rivals, cases, arguments.rounds, 1, sys.stderr.isatty())
    except UserError as error:
        parser.exit(2, f"batches.py: {error}\n")
    command = describe_command(arguments.csv)
    rows = make_rows(results, arguments.rounds, 1, command=command)
    print_table(rows)
    append_rows(arguments.csv, rows)


class Reading:
    """Reads batches of the training text, further ones with every call.

    Args:
        data: The folder.
        at_once: Whether a batch is cut out of the data at once.
    """

    def __init__(self, data: str, at_once: bool):
        if not at_once:
            PairsInBatches.can_cut = staticmethod(lambda dataset: False)
        parser = options.get_training_parser(default_task="translation")
        flags = [data, "--arch", "resmlp_tiny"]
        self.task = tasks.setup_task(options.parse_args_and_arch(parser, flags))
        self.task.load_dataset("train", combine=True)
        self.drawn = {}

    def __call__(self, case: Case) -> dict[str, float]:
        """Read."""
        if case.max_tokens not in self.drawn:
            iterator = self.task.get_batch_iterator(
                self.task.dataset("train"),
                max_tokens=case.max_tokens,
                required_batch_size_multiple=8,
                disable_iterator_cache=True,
            )
            self.drawn[case.max_tokens] = iterator.next_epoch_itr(shuffle=True)
        start = time.perf_counter()
        batches = list(islice(self.drawn[case.max_tokens], case.batches))
        seconds = time.perf_counter() - start
        if len(batches) < case.batches:
            raise UserError(f"the text has no further {case.batches} batches")
        tokens = sum(batch["ntokens"] for batch in batches)
        return {"rate": tokens / seconds, "batch_ms": 1000 * seconds / len(batches)}


if __name__ == "__main__":
    main()
