"""Race trainings on real text, whose batches have new shapes, with and without cuDNN's attention.

python examples/benchmarks/gpu_shapes.py data-bin/ende-mix --csv examples/benchmarks/gpu_shapes.csv

Each rival does the same batches, in a process of its own: batches whose shape it never saw, and
then the last of these again and again.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from races.report import (
    append_rows,
    check_table,
    describe_command,
    make_rows,
    print_table,
)
from races.rounds import Rival, race
from races.train import build_trainer, update

import resmlp_mt  # noqa: F401
from resmlp_mt.errors import UserError

# The dimensions of the translators that ship, and how they are trained.
SIZE = """--encoder-embed-dim 256 --encoder-ffn-embed-dim 1024 --encoder-layers 6
    --decoder-embed-dim 256 --decoder-ffn-embed-dim 1024 --decoder-layers 2
    --decoder-attention-heads 4 --share-all-embeddings
    --max-source-positions 256 --max-target-positions 256"""
RECIPE = """--dropout 0 --criterion label_smoothed_cross_entropy_in_chunks --label-smoothing 0.1
    --optimizer muon --adam-betas (0.9,0.98) --lr 1e-4 --distributed-world-size 1
    --num-workers 0 --log-format none --no-progress-bar"""
FAMILIES = {
    "transformer": "--arch transformer --encoder-attention-heads 4 --encoder-normalize-before "
    "--decoder-normalize-before",
    "resmlp_plus": "--arch resmlp_plus_small",
}


@dataclass(frozen=True)
class Case:
    """So many batches, of shapes that were not there before, or those of the last time again."""

    batches: int
    shapes: str  # new or old


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", metavar="DATA", help="a folder of 'resmlp-mt prepare'")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--max-tokens", type=int, default=24576, metavar="N")
    parser.add_argument("--batches", type=int, default=20, metavar="N", help="of a run")
    parser.add_argument("--rounds", type=int, default=2, metavar="N")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU; --device cpu tries the script on the processor")
    cases = [Case(arguments.batches, "new"), Case(arguments.batches, "old")]
    try:
        check_table(arguments.csv)
        rivals = list_rivals(arguments)
        results = race(rivals, cases, arguments.rounds, arguments.threads, sys.stderr.isatty())
    except UserError as error:
        parser.exit(2, f"gpu_shapes.py: {error}\n")
    described = {"device": arguments.device, "command": describe_command(arguments.csv)}
    described |= {"flags": f"--bf16 --max-tokens {arguments.max_tokens}"}
    rows = make_rows(results, arguments.rounds, arguments.threads, **described)
    print_table(rows)
    append_rows(arguments.csv, rows)


def list_rivals(arguments: argparse.Namespace) -> list[Rival]:
    """Both families as the plugin trains them, and as torch would by itself."""
    own = ["--bf16", "--max-tokens", str(arguments.max_tokens)]
    own += ["--cpu"] * (arguments.device == "cpu")
    # As many as all rounds of new batches take, with the one to warm up.
    count = arguments.batches * (arguments.rounds + 1)
    rivals = []
    for family, arch in FAMILIES.items():
        flags = [arguments.data, *arch.split(), *SIZE.split(), *RECIPE.split(), *own]
        for name, planned in ((family, False), (f"{family}, cuDNN's attention", True)):
            how = {"flags": flags, "count": count, "planned": planned}
            rivals.append(Rival(name, Training, how))
    return rivals


class Training:
    """A training that goes through its batches as it is called.

    Args:
        flags: Of fairseq-train.
        count: How many batches it may be asked for.
        planned: Let torch take cuDNN's attention.
    """

    def __init__(self, flags: list[str], count: int, planned: bool):
        torch.manual_seed(1)
        parser = options.get_training_parser()
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, flags))
        torch.backends.cuda.enable_cudnn_sdp(planned)
        task = tasks.setup_task(cfg.task)
        task.load_dataset("train")
        self.trainer = build_trainer(cfg, task)
        drawn = self.trainer.get_train_iterator(1).next_epoch_itr(shuffle=True)
        self.batches = list(islice(drawn, count))
        if len(self.batches) < count:
            raise UserError(f"{flags[0]} has {len(self.batches)} batches, fewer than {count}")
        self.done = 0

    def __call__(self, case: Case) -> dict[str, float]:
        """Train on the next batches, or on the last."""
        if case.shapes == "new":
            self.done += case.batches
        batches = self.batches[self.done - case.batches : self.done]
        wait: Callable = torch.cuda.synchronize if self.trainer.cuda else (lambda: None)
        wait()
        start = time.perf_counter()
        for batch in batches:
            update(self.trainer, batch)
        wait()
        seconds = time.perf_counter() - start
        return {
            "rate": sum(batch["ntokens"] for batch in batches) / seconds,
            "update_ms": 1000 * seconds / len(batches),
        }


if __name__ == "__main__":
    main()
