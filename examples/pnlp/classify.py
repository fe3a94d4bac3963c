"""Say of each line of standard input which label it has, and how sure that is.

echo "Two dogs play in the snow." |
    python examples/pnlp/classify.py checkpoints/domains/pnlp_mixer_short-seed1/checkpoint_best.pt
"""

import argparse
import logging
import sys
from argparse import Namespace
from pathlib import Path

import torch
from fairseq import checkpoint_utils, utils
from sentencepiece import SentencePieceProcessor

from resmlp_mt.data.reading import decode_lines
from resmlp_mt.data.subwords import JOINED_NAME
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import find_checkpoint


def main() -> int:
    """Read all lines, then answer each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint")
    parser.add_argument("--data", default="data-bin/domains", help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        for label, share in classify(arguments.checkpoint, arguments.data, sys.stdin.buffer):
            print(f"{label}\t{share:.2f}")
    except UserError as error:
        print(f"classify.py: {error}", file=sys.stderr)
        return 2
    return 0


@torch.inference_mode()
def classify(checkpoint: str, data: str, stream) -> list[tuple[str, float]]:
    """The label of each line, and its probability.

    Raises:
        UserError: If there is no such checkpoint or folder, or a line has too many words.
    """
    path, subwords = find_checkpoint(checkpoint), Path(data) / JOINED_NAME
    if not subwords.exists():
        raise UserError(f"{subwords}: no such file; give the folder of prepare.py with --data")
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    utils.import_user_module(Namespace(user_dir=str(Path(__file__).parent / "pnlp_mixer")))
    models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], {"data": data})
    subwords, labels = SentencePieceProcessor(str(subwords)), task.label_dictionary
    model, head = models[0].eval(), cfg.task.classification_head_name
    found = []
    for number, line in enumerate(decode_lines(stream, "standard input"), 1):
        pieces = " ".join(subwords.encode(line, out_type=str))
        tokens = task.source_dictionary.encode_line(pieces, add_if_not_exist=False).long()
        try:
            scores, _ = model(tokens[None], classification_head_name=head)
        except UserError as error:
            raise UserError(f"line {number}: {error}") from None
        share, best = scores[0].softmax(0).max(0)
        found.append((labels[labels.nspecial + int(best)], float(share)))
    return found


if __name__ == "__main__":
    sys.exit(main())
