"""Write checkpoints of models as they are before training, to measure speed with.

python examples/benchmarks/untrained.py DATA OUT ARCH [ARCH...]

DATA is a folder of `resmlp-mt prepare`. OUT gets ARCH.pt for each preset, and what DATA has of
subwords and dictionaries. In quotes flags of the model may follow a preset.
"""

import argparse
import shutil
from pathlib import Path

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask, setup_task
from omegaconf import DictConfig, OmegaConf

import resmlp_mt.plugin  # noqa: F401  # its presets


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("arch", nargs="+")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for pattern in ("dict.*.txt", "spm*.model", "text.json"):
        for path in arguments.data.glob(pattern):
            shutil.copy(path, arguments.out)
    for line in arguments.arch:
        cfg, _, model = build(arguments.data, ["--arch", *line.split()])
        save(cfg, model, arguments.out / f"{line.split()[0]}.pt")


def build(data: Path, flags: list[str]) -> tuple[DictConfig, FairseqTask, BaseFairseqModel]:
    """The configuration of a training with these flags, its task and its model."""
    torch.manual_seed(1)
    words = [str(data), "--share-all-embeddings", *flags]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    cfg = convert_namespace_to_omegaconf(args)
    task = setup_task(cfg.task)
    return cfg, task, task.build_model(cfg.model)


def save(cfg: DictConfig, model: BaseFairseqModel, path: Path) -> None:
    """Write the checkpoint."""
    history = {"num_updates": 0, "optimizer_name": "Adam", "lr_scheduler_state": {}}
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg),
        "model": model.state_dict(),
        "optimizer_history": [history],
        "extra_state": {"train_iterator": {}},
        "task_state": {},
    }
    torch.save(state, path)


if __name__ == "__main__":
    main()
