"""How long an update takes for each model, as a ratio to the plain one: the budget of train.sh.

    python examples/cifar10/step_time.py --bf16 --out examples/cifar10/step_time.csv
    python examples/cifar10/step_time.py --bf16 --mixers --out examples/cifar10/mixers_step_time.csv

One process, one thread, batches of 128 random images, or with --mixers the models and the batches
of mixers.py; forward, backward and AdamW, in turns, in processor time, so that other load on the
machine does not count. Reading images is not counted.
"""

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

from baseline import TinyViT, TinyViTConfig  # noqa: E402
from fairseq.models import ARCH_CONFIG_REGISTRY  # noqa: E402

from resmlp_mt.models.image_classification import ResMLPImageModel  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from races.image_models import ModelCase  # noqa: E402

TASK = SimpleNamespace(in_chans=3, image_size=32, build_head=lambda dim: nn.Linear(dim, 10))


def _resmlp(**flags) -> nn.Module:
    cfg = SimpleNamespace(**flags)
    ARCH_CONFIG_REGISTRY["resmlp_cifar"](cfg)
    return ResMLPImageModel.build_model(cfg, TASK)


# The names of train.sh; a distilled student also asks its teacher.
MODELS = {
    "resmlp": _resmlp,
    "vit": lambda: TinyViT(TinyViTConfig(), TASK),
    "layernorm": lambda: _resmlp(norm="layer"),
    "class-mlp": lambda: _resmlp(pooling="class-mlp"),
    "depthwise": lambda: _resmlp(token_mixer="depthwise3x3"),
}


def list_mixers() -> dict:
    """Builders of the models of mixers.py by name, without the ResNet."""
    from mixers_report import list_archs

    return {n: lambda a=a: ModelCase(a, 32, 10).build().train() for n, a in list_archs().items()}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--bf16", action="store_true", help="as they are trained, not in fp32")
    parser.add_argument("--mixers", action="store_true", help="of mixers.py, in place of train.sh")
    arguments = parser.parse_args()
    builders, batch = (list_mixers(), 32) if arguments.mixers else (MODELS, 128)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    kind = torch.bfloat16 if arguments.bf16 else torch.float32
    images, target = torch.randn(batch, 3, 32, 32, dtype=kind), torch.randint(10, (batch,))
    models = {name: build().to(kind) for name, build in builders.items()}
    optimizers = {n: torch.optim.AdamW(m.parameters(), fused=True) for n, m in models.items()}

    def update(name):
        model = models[name]
        started = time.process_time()
        F.cross_entropy(model(images).float(), target).backward()
        optimizers[name].step()
        optimizers[name].zero_grad()
        return time.process_time() - started

    def look(name):
        started = time.process_time()
        with torch.no_grad():
            teacher(images)
        return time.process_time() - started

    teacher = MODELS["depthwise"]().to(kind)
    seconds = {name: [] for name in [*models, *([] if arguments.mixers else ["teacher"])]}
    for i in range(arguments.rounds + 2):
        for name in seconds:
            taken = look(name) if name == "teacher" else update(name)
            if i >= 2:  # the first ones warm up
                seconds[name].append(taken)
    if not arguments.mixers:
        both = zip(seconds["resmlp"], seconds["teacher"], strict=True)
        seconds["distilled"] = list(map(sum, both))
    with open(arguments.out, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(
            ["model", "parameters", "median_seconds", "ratio", "ratio_min", "ratio_max"]
        )
        for name, taken in seconds.items():
            ratios = [a / b for a, b in zip(taken, seconds["resmlp"], strict=True)]
            model = models[{"teacher": "depthwise", "distilled": "resmlp"}.get(name, name)]
            size = sum(parameter.numel() for parameter in model.parameters())
            figures = [
                statistics.median(taken),
                statistics.median(ratios),
                min(ratios),
                max(ratios),
            ]
            writer.writerow([name, size, *(f"{figure:.3f}" for figure in figures)])
    print(arguments.out.read_text())


if __name__ == "__main__":
    main()
