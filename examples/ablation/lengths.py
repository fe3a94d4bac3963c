"""Why translations are too short: is it the model that stops early, or the search?

    python examples/ablation/lengths.py checkpoints/multi30k/resmlp_plus_tiny-seed1/checkpoint*.pt

For each checkpoint one row a search: what the validation set scores and how long it gets. Before
them what the model itself says of ends, told the reference up to each word: the sum of p(end) over
a sentence, which is 1 on average where a model neither stops early nor late, and the part of it
that comes before the end.
"""

import argparse
import csv
import sys
from pathlib import Path

import torch
from fairseq import checkpoint_utils, tasks, utils
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.translation import TranslationTask
from sacrebleu.metrics import BLEU
from tqdm import tqdm

import resmlp_mt  # noqa: F401  (registers the models)
from resmlp_mt.errors import UserError

SEARCHES = [(1, 1.0), (5, 0.0), (5, 1.0), (5, 1.5), (20, 1.0)]  # beam, --lenpen


def main() -> int:
    """Print the table as CSV."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--data", default="data-bin/multi30k", help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        _print_table(arguments.checkpoints, arguments.data)
    except UserError as error:
        print(f"lengths.py: {error}", file=sys.stderr)
        return 2
    return 0


def _print_table(checkpoints: list[Path], data: str) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        "checkpoint,updates,ends_expected,ends_expected_early,beam,lenpen,bleu,brevity_penalty,"
        "length_ratio".split(",")
    )
    rows = ((path, search) for path in checkpoints for search in SEARCHES)
    seen = None
    for path, (beam, lenpen) in tqdm(list(rows), unit=" searches"):
        if path != seen:
            model, task, updates = _load(path, data)
            batches = _read_batches(task)
            ends, seen = _expect_ends(model, task, batches), path
        score = _score(model, task, batches, beam, lenpen)
        writer.writerow([f"{path.parent.name}/{path.name}", updates, *ends, beam, lenpen, *score])
        sys.stdout.flush()


def _load(path: Path, data: str):
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    cfg = state["cfg"]
    utils.import_user_module(cfg.common)
    cfg.task.data = data
    task = tasks.setup_task(cfg.task)
    if not isinstance(task, TranslationTask):
        raise UserError(f"{path}: not a translation model")
    model = task.build_model(cfg.model)
    model.load_state_dict(state["model"])
    task.load_dataset("valid")
    return model.float().eval(), task, state["optimizer_history"][-1]["num_updates"]


def _read_batches(task) -> list[dict]:
    iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=8000)
    return list(iterator.next_epoch_itr(shuffle=False))


@torch.no_grad()
def _expect_ends(model, task, batches) -> tuple[str, str]:
    """The sum of p(end) over a reference, and the part before its end; means over sentences."""
    total = early = sentences = 0
    end = task.target_dictionary.eos()
    for batch in batches:
        p = model(**batch["net_input"])[0].softmax(-1)[..., end]
        p = p.masked_fill(batch["target"].eq(task.target_dictionary.pad()), 0)
        total += p.sum().item()
        early += p.masked_fill(batch["target"].eq(end), 0).sum().item()
        sentences += len(p)
    return f"{total / sentences:.3f}", f"{early / sentences:.3f}"


def _score(model, task, batches, beam: int, lenpen: float) -> tuple[str, str, str]:
    generator = SequenceGenerator(
        [model], task.target_dictionary, beam_size=beam, len_penalty=lenpen, max_len_b=60
    )
    symbols, hypotheses, references = task.target_dictionary, [], []
    for batch in batches:
        for beams in generator.generate([model], batch):
            hypotheses.append(symbols.string(beams[0]["tokens"], "sentencepiece"))
        references += [
            symbols.string(row[row.ne(symbols.pad())], "sentencepiece") for row in batch["target"]
        ]
    score = BLEU().corpus_score(hypotheses, [references])
    return f"{score.score:.2f}", f"{score.bp:.3f}", f"{score.sys_len / score.ref_len:.3f}"


if __name__ == "__main__":
    sys.exit(main())
