"""Checkpoints as fairseq writes them, without a training."""

import omegaconf
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task


def write_checkpoint(path, *flags, data=None) -> None:
    """Write a checkpoint as fairseq-train does for these flags, as initialised.

    Without a folder of data there is no model to build, and one tensor stands for the weights.
    """
    line = [str(data or "data"), *map(str, flags)]
    args = options.parse_args_and_arch(options.get_training_parser(), line)
    cfg, weights = convert_namespace_to_omegaconf(args), {"x": torch.ones(9)}
    if data:
        weights = setup_task(cfg.task).build_model(cfg.model).state_dict()
    cfg = omegaconf.OmegaConf.to_container(cfg)
    history = [{"num_updates": 1, "optimizer_name": "Adam", "lr_scheduler_state": {}}]
    state = {"args": None, "cfg": cfg, "model": weights, "optimizer_history": history}
    torch.save(state | {"extra_state": {"train_iterator": {"epoch": 1}}, "task_state": {}}, path)
