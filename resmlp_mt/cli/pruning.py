"""What `sparsity --prune` does: it prunes a model at each threshold, and scores it."""

import argparse
from collections.abc import Callable
from pathlib import Path

from resmlp_mt.cli.pictures import add_title, import_pyplot, save


def score_pruned(arguments: argparse.Namespace) -> list[dict]:
    """A row for each threshold, with 0 first, which prunes nothing.

    Returns:
        threshold, share (of the weights of these matrices that are zero), and top1 or bleu.

    Raises:
        UserError: If the model or what it is scored on is missing or does not fit, or there is
            nothing to prune.
    """
    from resmlp_mt.analysis.pruning import prune
    from resmlp_mt.extras import Bar

    model, metric, score = _open(arguments)
    rows = []
    for threshold in Bar(sorted({0.0, *arguments.prune}), unit="model", disable=None, leave=False):
        with prune(model, arguments.matrices, threshold) as share:
            rows.append({"threshold": threshold, "share": share, metric: score()})
    return rows


def _open(arguments: argparse.Namespace) -> tuple[object, str, Callable[[], float]]:
    """The model, and what it is scored by."""
    from resmlp_mt.checkpoints.loading import read_checkpoint
    from resmlp_mt.errors import UserError
    from resmlp_mt.files.kinds import is_of_images

    path, state = read_checkpoint(arguments.model)
    if is_of_images(state["cfg"].task.get("_name")):
        if arguments.data is None or arguments.input or arguments.reference:
            raise UserError("--prune: a classifier is scored on the images of --data, and no text")
        return _open_classifier(path, state, arguments)
    if arguments.data or None in (arguments.input, arguments.reference):
        raise UserError("--prune: a translator is scored on --input and --reference, and no --data")
    return _open_translator(path, arguments)


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


def _open_translator(path: Path, arguments: argparse.Namespace) -> tuple:
    from resmlp_mt.cli.bleu import make_bleu
    from resmlp_mt.data.reading import read_parallel
    from resmlp_mt.translating.translator import Translator

    sources, references = read_parallel(arguments.input, arguments.reference)
    bleu = make_bleu(arguments.tokenize, references)
    translator = Translator.from_pretrained(path, arguments.device)

    def score() -> float:
        translator.engine.compile()  # the weights have changed
        return bleu.corpus_score(translator.translate(sources), [references]).score

    return translator.engine.model, "bleu", score


def table(rows: list[dict]) -> list[str]:
    """A line a threshold, in aligned columns."""
    metric = list(rows[0])[-1]
    lines = [f"{'threshold':>9}{'zero':>9}{metric:>9}"]
    return lines + [f"{row['threshold']:9g}{row['share']:9.4f}{row[metric]:9.2f}" for row in rows]


def draw(rows: list[dict], arguments: argparse.Namespace) -> None:
    """The score over the thresholds, and below it the share of zeros."""
    from matplotlib.ticker import PercentFormatter

    metric = list(rows[0])[-1]
    thresholds = [100 * row["threshold"] for row in rows]
    figure, (upper, lower) = import_pyplot().subplots(
        2, 1, figsize=(6, 5), sharex=True, height_ratios=(2, 1), layout="constrained"
    )
    upper.plot(thresholds, [row[metric] for row in rows], marker="o")
    upper.set_ylabel({"top1": "top-1, %", "bleu": "BLEU"}[metric])
    upper.set_ylim(0, 1.1 * max(1, *(row[metric] for row in rows)))
    lower.plot(thresholds, [row["share"] for row in rows], marker="o", color="C1")
    lower.set(xlabel="threshold, % of the largest of its matrix", ylabel="zero", ylim=(0, 1))
    lower.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for axis in (upper, lower):
        axis.grid(alpha=0.3)
    add_title(figure, arguments.model, f": {arguments.matrices} pruned")
    save(figure, arguments.out)
