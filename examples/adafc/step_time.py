"""How long an update takes with AdaFC, with pooling and with a linear layer over channels.

    python examples/adafc/step_time.py
    python examples/adafc/step_time.py --image-size 112 --batch 2 --rounds 1    # to try it

The paper says that an epoch takes 11.1% longer with AdaFC than with a linear layer, and 13.5%
longer than with pooling. Here forward, backward and AdamW of the same sizes are timed in turns, in
one process, on one thread, in processor time. Reading images is not counted. Each round adds its
rows to step_time.csv. Rounds that are there are not run again. The plot is step_time.png.
"""

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path

import matplotlib
import torch
import torch.nn.functional as F

from resmlp_mt.files.output import whole_file

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.image_models import ModelCase  # noqa: E402
from races.report import describe_origin, describe_processor  # noqa: E402

HERE = Path(__file__).parent
COLUMNS = "preset,stem_stride,batch,image_size,round,mixer,seconds,commit,date,machine".split(",")
MIXERS = ("adafc", "fc", "pooling")
PUBLISHED = {"fc": 11.1, "pooling": 13.5}


def main() -> None:
    """Time the rounds that are missing, print the medians of the ratios, and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="adafc_m", choices=["adafc_s", "adafc_m", "adafc_l"])
    parser.add_argument("--stem-stride", type=int, default=4, choices=[4, 2])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=HERE, help="of the CSV file and the plot")
    arguments = parser.parse_args()
    results = arguments.folder / "step_time.csv"
    setting = (arguments.preset, arguments.stem_stride, arguments.batch, arguments.image_size)
    setting = dict(zip(COLUMNS, map(str, setting), strict=False))
    done = {int(row["round"]) for row in read(results, setting)}
    if todo := sorted(set(range(1, arguments.rounds + 1)) - done):
        measure(todo, setting, results)
    rows = read(results, setting)
    for mixer, published in PUBLISHED.items():
        extra = list_extra(rows, mixer)
        print(
            f"AdaFC takes {statistics.median(extra):.1f}% longer than {mixer} (rounds: "
            f"{min(extra):.1f} to {max(extra):.1f}); the paper says {published}%"
        )
    with whole_file(results.with_suffix(".png")) as path:
        draw(rows, path)


def measure(rounds: list[int], setting: dict[str, str], results: Path) -> None:
    """Time the rounds, and add their rows as they are done."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    side, batch = int(setting["image_size"]), int(setting["batch"])
    images, target = torch.randn(batch, 3, side, side), torch.randint(1000, (batch,))
    flags = f"{setting['preset']} --stem-stride {setting['stem_stride']} --token-mixer"
    models = {mixer: ModelCase(f"{flags} {mixer}", side).build().train() for mixer in MIXERS}
    optimizers = {n: torch.optim.AdamW(m.parameters(), fused=True) for n, m in models.items()}
    about = setting | describe_origin(describe_processor(1))
    for number in [0, *rounds]:  # the first one warms up
        rows = []
        for mixer in MIXERS:
            started = time.process_time()
            F.cross_entropy(models[mixer](images), target).backward()
            optimizers[mixer].step()
            optimizers[mixer].zero_grad()
            seconds = f"{time.process_time() - started:.4f}"
            rows.append(about | {"round": number, "mixer": mixer, "seconds": seconds})
        if number:
            append(results, rows)


def append(path: Path, rows: list[dict]) -> None:
    """Add rows, under a header where there is none."""
    with open(path, "a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if stream.tell() == 0:
            writer.writeheader()
        writer.writerows(rows)


def read(path: Path, setting: dict[str, str]) -> list[dict]:
    """The rows of a setting."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if setting.items() <= row.items()]


def list_extra(rows: list[dict], mixer: str) -> list[float]:
    """How much longer AdaFC took than a mixer, in percent, a figure a round."""
    seconds = {(row["round"], row["mixer"]): float(row["seconds"]) for row in rows}
    rounds = {row["round"] for row in rows}
    return [100 * (seconds[n, "adafc"] / seconds[n, mixer] - 1) for n in sorted(rounds)]


def draw(rows: list[dict], path: Path) -> None:
    """A point a round, and a line for what the paper says."""
    figure, axis = pyplot.subplots(figsize=(5, 3), layout="constrained")
    for i, (mixer, published) in enumerate(PUBLISHED.items()):
        extra = list_extra(rows, mixer)
        axis.plot([i] * len(extra), extra, "o", color=f"C{i}")
        axis.hlines(published, i - 0.3, i + 0.3, color=f"C{i}", linestyle="--")
    axis.set_xticks(range(len(PUBLISHED)), [f"than {mixer}" for mixer in PUBLISHED])
    axis.set_ylabel("longer, %")
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120, format="png")


if __name__ == "__main__":
    main()
