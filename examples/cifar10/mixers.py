"""Train all mixers in one budget, on images as they are and on shuffled ones.

    bash examples/cifar10/prepare.sh --train 1500 --val 300
    python examples/cifar10/mixers.py
    python examples/cifar10/mixers.py --models resmlp mixer --images patches --seeds 2

Each run trains on one thread, for the same number of updates, and is validated along its way. It
adds its curve to mixers.csv. A run that was stopped goes on from its last validation, and one that
has its curve there is not begun again. mixers_report.py draws the curves and makes the table.
"""

import argparse
import sys
from pathlib import Path

import runs

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.report import append_rows  # noqa: E402

HERE = Path(__file__).parent
COLUMNS = "model,images,seed,parameters,updates,top1,commit,date,machine".split(",")
IMAGES = ("original", "patches", "pixels")

_SIZES = "--patch-size 4 --embed-dim 64 --layers 4 --drop-path 0"
_RESMLP = f"--arch resmlp_cifar {_SIZES}"
_STAGES = "--layers 2,2 --embed-dim 48,96 --drop-path 0"
MODELS = {
    "resmlp": _RESMLP,
    "mixer": f"--arch mixer_s16 {_SIZES}",
    "s2mlp": f"--arch s2mlp_deep {_SIZES}",
    "resnet": "--arch resnet_cifar",
    "gmlp": f"--arch gmlp_ti16 {_SIZES}",
    "gmixer": f"--arch gmixer_24 {_SIZES} --token-ffn-embed-dim 64",
    "poolformer": f"--arch poolformer_s12 {_STAGES} --layer-scale-init 0.1",
    "cyclemlp": f"--arch cyclemlp_b1 {_STAGES}",
    "adafc": f"--arch adafc_s {_STAGES} --layer-scale-init 0.1",
    "bit": "--arch bit_r50x1 --layers 1,1 --embed-dim 128,256",
    "none": f"{_RESMLP} --token-mixer none",
    "mlp": f"{_RESMLP} --token-mixer mlp",
    "depthwise3x3": f"{_RESMLP} --token-mixer depthwise3x3",
    "separable3x3": f"{_RESMLP} --token-mixer separable3x3",
    "conv3x3": f"{_RESMLP} --token-mixer conv3x3",
}
SHUFFLED = ("resmlp", "mixer", "s2mlp", "resnet")  # those that the study of shuffles is of

# The learning rate stays, and the weights are averaged: so a run can be read at any update.
RECIPE = """--user-dir {plugin} --task image_classification_shuffled --shuffle {shuffle}
    --criterion image_classification --smoothing 0.1 --image-size 32 --crop-pct 1.0
    --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --scale 0.5,1.0 --color-jitter 0
    --optimizer adamw --weight-decay 0.05 --bf16 --store-ema --ema-decay 0.99 --ema-fp32
    --lr 0.001 --lr-scheduler fixed --warmup-updates {interval}
    --batch-size 32 --batch-size-valid 250 --max-update {updates} --seed {seed} --num-workers 0
    --validate-interval 1000 --validate-interval-updates {interval}
    --save-interval-updates {interval} --keep-interval-updates 1 --no-epoch-checkpoints
    --save-dir {folder} --log-format json --log-interval 50 --log-file {folder}/train.log"""


def main() -> int:
    """Train what has no curve yet; status 1 where a training failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="data-bin/cifar10", help="default: %(default)s")
    parser.add_argument(
        "--work", type=Path, default=Path("checkpoints/mixers"), help="default: %(default)s"
    )
    parser.add_argument("--results", type=Path, default=HERE / "mixers.csv")
    parser.add_argument("--models", nargs="+", choices=list(MODELS))
    parser.add_argument("--images", nargs="+", choices=IMAGES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--updates", type=int, default=640)
    arguments = parser.parse_args()
    if arguments.updates < 4:
        parser.error("--updates must be at least 4: there are 4 validations")
    for run in list_runs(arguments):
        if run not in find_done(arguments.results):
            print(*run, flush=True)
            if not train(run, arguments):
                return 1
    return 0


def list_runs(arguments: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Model, images and seed of all that was asked for, shuffled images of some models alone."""
    return [
        (model, images, str(seed))
        for seed in arguments.seeds
        for model in arguments.models or MODELS
        for images in arguments.images or IMAGES
        if images == "original" or model in SHUFFLED
    ]


def find_done(results: Path) -> set[tuple[str, str, str]]:
    """The runs that have a curve."""
    return runs.find_done(results, COLUMNS[:3])


def train(run: tuple[str, str, str], arguments: argparse.Namespace) -> bool:
    """Train, and add the curve; False where the training failed."""
    model, images, seed = run
    folder = arguments.work / "-".join(run)
    recipe = RECIPE.format(
        plugin=HERE / "shuffled",
        shuffle="none" if images == "original" else images,
        interval=arguments.updates // 4,
        updates=arguments.updates,
        seed=seed,
        folder=folder,
    )
    found = runs.train([arguments.data, *MODELS[model].split(), *recipe.split()], folder)
    if found is None:
        return False
    about = {"model": model, "images": images, "seed": seed} | runs.describe(found)
    rows = [about | {"updates": update, "top1": value} for update, value in found.top1.items()]
    append_rows(arguments.results, rows, COLUMNS)
    return True


if __name__ == "__main__":
    sys.exit(main())
