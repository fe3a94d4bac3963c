"""Train residual networks that differ in their norms, or in the order of their units.

    bash examples/cifar10/prepare.sh --train 1500 --val 300
    python examples/cifar10/residual.py normalisation
    python examples/cifar10/residual.py preactivation

All runs of a study see as many images. A run that was stopped goes on, and one that has its row in
STUDY.csv is not begun again. Then the plot STUDY.png is drawn.
"""

import argparse
import sys
from pathlib import Path

import matplotlib
import runs

from resmlp_mt.files.output import whole_file

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import append_rows  # noqa: E402

HERE = Path(__file__).parent
COLUMNS = "study,form,batch,seed,images,parameters,top1,published,commit,date,machine".split(",")

_BIT = "--arch bit_norms --layers 1,1,1 --embed-dim 128,256,512 --stem-stride 2"
_ORDER = "--arch resnet_orders --units 5 --order"
# Of a study: each form's flags, and what was published of it.
# Normalisation: section 4.3 of arXiv 1912.11370, ResNet-50 on ImageNet, top-1 against BatchNorm.
# Pre-activation: table 2 of arXiv 1603.05027, ResNet-110 on CIFAR-10, error in percent.
STUDIES = {
    "normalisation": {
        "BN": (f"{_BIT} --norm batch --plain-convolutions", "0"),
        "BN+WS": (f"{_BIT} --norm batch", ""),
        "GN": (f"{_BIT} --plain-convolutions", "-5.4"),
        "GN+WS": (_BIT, "above BN"),
    },
    "preactivation": {
        "original": (f"{_ORDER} original", ""),
        "BN after the sum": (f"{_ORDER} norm_after", "worse than original"),
        "ReLU before the sum": (f"{_ORDER} relu_before", "7.84"),
        "full pre-activation": (f"{_ORDER} full", ""),
    },
}
BATCHES = {"normalisation": [8, 256], "preactivation": [128]}
RATES = {"normalisation": 0.03 / 256, "preactivation": 0.1 / 128}  # for an image of a batch
RECIPE = """--user-dir {units} --task image_classification --criterion image_classification
    --smoothing 0 --image-size 32 --crop-pct 1.0 --square-resize 40 --color-jitter 0
    --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --optimizer sgd --momentum 0.9
    --weight-decay 0.0001 --lr {rate} --lr-scheduler hyperrule --supports {supports}
    --batch-size {batch} --batch-size-valid 250 --max-update {updates} --seed {seed}
    --num-workers 0 --validate-interval 1000 --validate-interval-updates {updates}
    --save-interval-updates {interval} --keep-interval-updates 1 --no-epoch-checkpoints
    --save-dir {folder} --log-format json --log-interval 50 --log-file {folder}/train.log"""


def main() -> int:
    """Train what has no row yet, and draw; status 1 where a training failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=list(STUDIES))
    parser.add_argument("--data", default="data-bin/cifar10", help="default: %(default)s")
    parser.add_argument("--work", type=Path, default=Path("checkpoints/residual"))
    parser.add_argument("--folder", type=Path, default=HERE, help="of the CSV file and the plot")
    parser.add_argument("--forms", nargs="+")
    parser.add_argument("--batches", nargs="+", type=int)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--images", type=int, default=90_000, help="that a run sees (default: %(default)s)"
    )
    arguments = parser.parse_args()
    study = STUDIES[arguments.study]
    if unknown := set(arguments.forms or []) - study.keys():
        parser.error(f"--forms: {', '.join(unknown)}? There are {', '.join(study)}")
    results = arguments.folder / f"{arguments.study}.csv"
    for seed in arguments.seeds:
        for batch in arguments.batches or BATCHES[arguments.study]:
            if arguments.images < 10 * batch:
                parser.error(f"--images must be at least ten batches of {batch}")
            for form in arguments.forms or study:
                done = runs.find_done(results, COLUMNS[:4])
                if (arguments.study, form, str(batch), str(seed)) in done:
                    continue
                print(form, batch, seed, flush=True)
                if not train(arguments, form, batch, seed, results):
                    return 1
    with whole_file(results.with_suffix(".png")) as path:
        draw(runs.read(results), list(study), path)
    return 0


def train(arguments: argparse.Namespace, form: str, batch: int, seed: int, results: Path) -> bool:
    """Train, and add a row; False where the training failed."""
    flags, published = STUDIES[arguments.study][form]
    updates = arguments.images // batch
    folder = arguments.work / f"{arguments.study}-{form}-{batch}-{seed}".replace(" ", "-")
    recipe = RECIPE.format(
        units=HERE / "units",
        rate=RATES[arguments.study] * batch,
        # A warm-up of a tenth; the learning rate falls after 30, 60 and 90%.
        supports=",".join(str(updates * share // 10) for share in (1, 3, 6, 9, 10)),
        batch=batch,
        updates=updates,
        interval=max(updates // 10, 1),
        seed=seed,
        folder=folder,
    )
    found = runs.train([arguments.data, *flags.split(), *recipe.split()], folder)
    if found is None:
        return False
    row = {"study": arguments.study, "form": form, "batch": batch, "seed": seed}
    row |= {"images": updates * batch, "top1": found.top1[updates], "published": published}
    append_rows(results, [row | runs.describe(found)], COLUMNS)
    return True


def draw(rows: list[dict], forms: list[str], path: Path) -> None:
    """Top-1 of each form, a point a run, a colour a batch."""
    figure, axis = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    batches = sorted({int(row["batch"]) for row in rows})
    for i, batch in enumerate(batches):
        found = [row for row in rows if int(row["batch"]) == batch]
        places = [forms.index(row["form"]) + 0.1 * i for row in found]
        axis.plot(places, [float(row["top1"]) for row in found], "o", label=f"batches of {batch}")
    axis.set_xticks(range(len(forms)), forms, fontsize=8)
    axis.set_ylabel("top-1, %")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=120, format="png")


if __name__ == "__main__":
    sys.exit(main())
