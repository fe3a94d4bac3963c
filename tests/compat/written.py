"""Checkpoints as fairseq writes them, without a training."""

import omegaconf
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf


def write_checkpoint(path, *flags) -> None:
    """What fairseq-train writes for these flags, with one tensor for weights."""
    args = options.parse_args_and_arch(options.get_training_parser(), ["data", *flags])
    cfg = omegaconf.OmegaConf.to_container(convert_namespace_to_omegaconf(args))
    history = [{"num_updates": 1, "optimizer_name": "Adam", "lr_scheduler_state": {}}]
    state = {"args": None, "cfg": cfg, "model": {"x": torch.ones(9)}, "optimizer_history": history}
    torch.save(state | {"extra_state": {"train_iterator": {}}, "task_state": {}}, path)
