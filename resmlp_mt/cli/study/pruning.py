"""Set weights of a model to zero that are next to nothing, and score what is left.

It prunes at each of the thresholds, and scores by the top-1 of a classifier or the BLEU of a
translator. 0 stands for the model as it is. A mixes positions. B and C are the first and the second
matrix of the channel MLP.

  resmlp-mt study pruning cifar10 --threshold 0.05 0.1 0.2 --data images --out pruned.png
  resmlp-mt study pruning multi30k-en-de --threshold 0.05 --input test.en --reference test.de
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from resmlp_mt.cli.bleu import add_tokenize, make_bleu
from resmlp_mt.cli.flags import add_device, add_model, share
from resmlp_mt.cli.study import output
from resmlp_mt.cli.tables import align, write_table
from resmlp_mt.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add_model(parser)
    output.add_picture(parser, help="draw the scores and the shares of zeros")
    output.add_table(parser)
    many, add = dict(type=share, nargs="+", default=[0.05], metavar="X"), parser.add_argument
    add("--threshold", **many, help="small, as a share of the largest weight of the matrix")
    letters = ["A", "B", "C", "AB", "AC", "BC", "ABC"]
    add("--matrices", choices=letters, default="A", help="what is pruned")
    add("--data", type=Path, metavar="DIR", help="score a classifier on val/ of this, or of a .tar")
    add("--input", type=Path, metavar="FILE", help="score a translator on this text")
    add("--reference", type=Path, metavar="FILE", help="and its translation")
    add_tokenize(parser)
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Score, write what was asked for, and print the table, alone on standard output."""
    from tqdm import tqdm

    from resmlp_mt.analysis.pruning import prune

    output.prepare_output(arguments, arguments.data, arguments.input, arguments.reference)
    model, metric, score = _open(arguments)
    rows = []
    thresholds = sorted({0.0, *arguments.threshold})
    for threshold in tqdm(thresholds, unit="model", disable=None, leave=False):
        with prune(model, arguments.matrices, threshold) as zeros:
            rows.append((threshold, zeros, score()))
    if arguments.csv:
        write_table(arguments.csv, ["threshold", "share", metric], rows)
    if arguments.out:
        said = f": {arguments.matrices} pruned"
        output.save(_draw(rows, metric), arguments.out, arguments.model, said)
    lines = [(f"{t:g}", f"{zeros:.4f}", f"{found:.2f}") for t, zeros, found in rows]
    print("\n".join(align([("threshold", "zero", metric), *lines])))


def _open(arguments: argparse.Namespace) -> tuple[object, str, Callable[[], float]]:
    """The model, the name of its metric, and a function that scores it."""
    from resmlp_mt.checkpoints.loading import read_checkpoint
    from resmlp_mt.files.kinds import is_of_images

    path, state = read_checkpoint(arguments.model)
    text = arguments.input, arguments.reference
    if is_of_images(state["cfg"].task.get("_name")):
        if arguments.data is None or any(text):
            raise UserError("a classifier is scored on the images of --data, and no --input")
        return _open_classifier(path, state, arguments)
    if arguments.data or None in text:
        raise UserError("a translator is scored on --input and --reference, and no --data")
    return _open_translator(path, state, arguments)


def _open_classifier(path: Path, state: dict, arguments: argparse.Namespace) -> tuple:
    import numpy as np

    from resmlp_mt.checkpoints.loading import load_classifier
    from resmlp_mt.data.image_folder import ImageFolder
    from resmlp_mt.engines.classifier import Classifier
    from resmlp_mt.engines.trained import wrap_classifier

    trained = load_classifier(path, state)
    folder = ImageFolder(arguments.data, "valid", trained.task.in_chans)
    folder.align(trained.task.classes)
    classifier = Classifier(*wrap_classifier(trained, arguments.device))

    def score() -> float:
        hits = 0
        for places in np.array_split(np.arange(len(folder)), -(-len(folder) // 64)):
            scores = classifier.scores(map(folder.open, places.tolist()))
            hits += int((scores.argmax(1) == folder.targets[places]).sum())
        return 100 * hits / len(folder)

    return trained.model, "top1", score


def _open_translator(path: Path, state: dict, arguments: argparse.Namespace) -> tuple:
    from resmlp_mt.checkpoints.loading import load_translator
    from resmlp_mt.data.reading import read_parallel
    from resmlp_mt.engines.trained import wrap_translator
    from resmlp_mt.translating.translator import Translator

    sources, references = read_parallel(arguments.input, arguments.reference)
    bleu = make_bleu(arguments.tokenize, references)
    trained = load_translator(path, state)

    def score() -> float:
        translator = Translator(*wrap_translator(trained, arguments.device))  # its weights of now
        return bleu.corpus_score(translator.translate(sources), [references]).score

    return trained.model, "bleu", score


def _draw(rows: list[tuple[float, float, float]], metric: str):
    """The score over the thresholds, and below it the share of zeros."""
    from matplotlib.ticker import PercentFormatter

    thresholds, zeros, scores = zip(*rows, strict=True)
    thresholds = [100 * threshold for threshold in thresholds]
    style = dict(sharex=True, height_ratios=(2, 1), layout="constrained")
    figure, (upper, lower) = output.import_pyplot().subplots(2, 1, figsize=(6, 5), **style)
    upper.plot(thresholds, scores, marker="o")
    upper.set_ylabel({"top1": "top-1, %", "bleu": "BLEU"}[metric])
    upper.set_ylim(0, 1.1 * max(1, *scores))
    lower.plot(thresholds, zeros, marker="o", color="C1")
    lower.set(xlabel="threshold, % of the largest of its matrix", ylabel="zero", ylim=(0, 1))
    lower.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for axis in (upper, lower):
        axis.grid(alpha=0.3)
    return figure
