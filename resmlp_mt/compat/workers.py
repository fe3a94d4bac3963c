"""Several workers."""

import os

from fairseq.distributed import utils as distributed_utils
from fairseq.models import distributed_fairseq_model

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError


def join_workers() -> None:
    """Let the workers of torchrun train together on CPUs too.

    fairseq counts workers in GPUs: without one, each worker would train a model of its own, and
    torch's DistributedDataParallel would be told to use a GPU.
    """

    @patch(distributed_utils, "infer_init_method")
    def infer(infer_init_method, cfg, *args, **kwargs):
        workers = os.environ.get("WORLD_SIZE", "1")
        launched = "LOCAL_RANK" in os.environ and int(workers) > 1
        if not launched or cfg.distributed_init_method is not None:
            infer_init_method(cfg, *args, **kwargs)
            tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
            if int(tasks) > 1 and cfg.distributed_init_method is None:
                raise UserError(
                    f"srun started {tasks} tasks, which would each train a model of their own: "
                    "start one task a node, and in it torchrun (docs/workers.md)"
                )
            return
        cfg.distributed_init_method = "env://"
        cfg.distributed_world_size, cfg.distributed_rank = int(workers), int(os.environ["RANK"])
        cfg.device_id = int(os.environ["LOCAL_RANK"])
        cfg.distributed_no_spawn = True

    @patch(distributed_fairseq_model, "DistributedDataParallel")
    def wrap(parallel, module, device_ids, output_device, **kwargs):
        if not next(module.parameters()).is_cuda:
            device_ids = output_device = None
        return parallel(module, device_ids=device_ids, output_device=output_device, **kwargs)
