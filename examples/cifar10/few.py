"""Fine-tune on few images of each class by the HyperRule, and train on them from nothing.

    python examples/cifar10/few.py --data data-bin/cifar10

The first half of the classes is for pre-training, the others are to be learnt: from 1, 5, 10 and
100 images of each, drawn three times. All validation images of these classes count. A run that was
stopped goes on, and one that has its row in few.csv is not begun again. Then few.png is drawn.
"""

import argparse
import sys
from pathlib import Path

import matplotlib
import numpy as np
import runs

from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.files.output import whole_file

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import append_rows  # noqa: E402

HERE = Path(__file__).parent
COLUMNS = "model,start,images,draw,parameters,updates,top1,commit,date,machine".split(",")
STARTS = ("pre-trained", "nothing")
COUNTS = (1, 5, 10, 100)
MODELS = {
    "bit": "--arch bit_r50x1 --layers 1,1 --embed-dim 128,256",
    "resmlp": "--arch resmlp_cifar --patch-size 4 --embed-dim 64 --layers 4 --drop-path 0",
}
COMMON = """--task image_classification --criterion image_classification --smoothing 0
    --image-size 32 --num-workers 0 --batch-size-valid 250 --no-epoch-checkpoints --bf16
    --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --save-dir {folder}
    --log-format json --log-interval 50 --log-file {folder}/train.log"""
PRETRAINING = """--optimizer adamw --weight-decay 0.05 --lr 0.001 --lr-scheduler cosine
    --warmup-updates {warmup} --max-update {updates} --batch-size 64 --crop-pct 1.0
    --scale 0.5,1.0 --color-jitter 0 --validate-interval 1000 --save-interval-updates {warmup}
    --keep-interval-updates 1"""


def main() -> int:
    """Train what has no row yet, and draw; status 1 where a training failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="data-bin/cifar10", help="default: %(default)s")
    parser.add_argument("--work", type=Path, default=Path("checkpoints/few"))
    parser.add_argument("--folder", type=Path, default=HERE, help="of the CSV file and the plot")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--pretraining-updates", type=int, default=1500)
    parser.add_argument("--supports", help="shorter than the HyperRule's, as 10,15,30,45,50")
    arguments = parser.parse_args()
    results = arguments.folder / "few.csv"
    for model in arguments.models:
        for draw in range(1, arguments.draws + 1):
            for count in arguments.counts:
                for start in STARTS:
                    run = (model, start, str(count), str(draw))
                    if run in runs.find_done(results, COLUMNS[:4]):
                        continue
                    print(*run, flush=True)
                    if not train(run, arguments, results):
                        return 1
    with whole_file(results.with_suffix(".png")) as path:
        draw_curves(runs.read(results), path)
    return 0


def train(run: tuple[str, str, str, str], arguments: argparse.Namespace, results: Path) -> bool:
    """Train, and add a row; False where the training failed."""
    model, start, count, draw = run
    flags = MODELS[model].split()
    data = write_images(arguments, f"few-{count}-{draw}", int(count), int(draw))
    folder = arguments.work / "-".join(run)
    words = [data, "--hyperrule", *flags, *COMMON.format(folder=folder).split(), "--seed", draw]
    if arguments.supports:
        words += ["--supports", arguments.supports]
    if start == "pre-trained":
        before = pretrain(model, arguments)
        if before is None:
            return False
        words += ["--finetune-from-model", before]
    found = runs.train(words, folder)
    if found is None:
        return False
    row = dict(zip(COLUMNS, run, strict=False)) | runs.describe(found)
    last = max(found.top1)
    append_rows(results, [row | {"updates": last, "top1": found.top1[last]}], COLUMNS)
    return True


def pretrain(model: str, arguments: argparse.Namespace) -> Path | None:
    """Train on the first half of the classes, once; the checkpoint, or None where it failed."""
    folder = arguments.work / f"{model}-pretraining"
    updates = arguments.pretraining_updates
    data = write_images(arguments, "pretraining", None, 0)
    recipe = PRETRAINING.format(updates=updates, warmup=max(updates // 10, 1))
    words = [data, *MODELS[model].split(), *COMMON.format(folder=folder).split(), *recipe.split()]
    if not (folder / "finished").exists():
        print(model, "pre-training", flush=True)
        if runs.train(words, folder) is None:
            return None
        (folder / "finished").touch()
    return folder / "checkpoint_last.pt"


def write_images(arguments: argparse.Namespace, name: str, count: int | None, draw: int) -> Path:
    """Some images of half of the classes as a folder; with a count, so many of the second half."""
    out = arguments.work / "images" / name
    if (out / "finished").exists():
        return out
    generator = np.random.default_rng(draw)
    for split, place in (("train", "train"), ("valid", "val")):
        folder = ImageFolder(arguments.data, split)
        half = len(folder.classes) // 2
        for number, label in enumerate(folder.classes):
            if (number < half) != (count is None):
                continue
            (out / place / label).mkdir(parents=True, exist_ok=True)
            chosen = np.flatnonzero(np.asarray(folder.targets) == number)
            if count is not None and split == "train":
                chosen = generator.permutation(chosen)[:count]
            for i in chosen:
                folder.open(int(i)).save(out / place / label / f"{i}.png")
    (out / "finished").touch()
    return out


def draw_curves(rows: list[dict], path: Path) -> None:
    """Top-1 over images a class: a colour a model, dashed from nothing, a point a draw."""
    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for model in MODELS:
        for start, style in zip(STARTS, ("-", "--"), strict=True):
            values = {}
            for row in rows:
                if (row["model"], row["start"]) == (model, start):
                    values.setdefault(int(row["images"]), []).append(float(row["top1"]))
            if values:
                colour = f"C{list(MODELS).index(model)}"
                counts = sorted(values)
                means = [np.mean(values[n]) for n in counts]
                axis.plot(counts, means, style, color=colour, label=f"{model}, {start}")
                for n in counts:
                    axis.plot([n] * len(values[n]), values[n], ".", color=colour)
    axis.set(xscale="log", xlabel="images a class", ylabel="top-1, %")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=120, format="png")


if __name__ == "__main__":
    sys.exit(main())
