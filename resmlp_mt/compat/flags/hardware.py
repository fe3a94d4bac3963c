"""Flags that depend on GPUs, and on processors without one."""

import logging
from argparse import Namespace
from importlib.util import find_spec

import torch
from fairseq import optim
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from resmlp_mt.compat.processor import multiplies_bf16
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import is_of_images
from resmlp_mt.nn.attention import expect_new_shapes

logger = logging.getLogger(__name__)


def check_hardware(flags: Namespace) -> None:
    """Refuse a training in fp16 where there is no GPU: fairseq fails at once, or in an overflow.

    Raises:
        UserError: Naming the flag.
    """
    if flags.fp16 and _is_on_cpu(flags):
        raise UserError("--fp16 needs a GPU, and there is none; --bf16 works on CPUs")


def mend_hardware(flags: Namespace) -> None:
    """Choose flags that this hardware can follow, and warn where it is slow."""
    if getattr(flags, "tpu", False) and find_spec("torch_xla") is None:
        flags.tpu = False
    if not _is_on_cpu(flags):
        if (task := getattr(flags, "task", None)) and not is_of_images(task):
            expect_new_shapes()
        return
    if getattr(flags, "distributed_backend", None) == "nccl":
        flags.distributed_backend = "gloo"
    if getattr(flags, "bf16", False):
        # Slower there than plain products; whatever its name, this is for CPUs too.
        torch.backends.cuda.enable_flash_sdp(False)
        if not multiplies_bf16():
            logger.warning(
                "--bf16: this processor has no instructions for it, and products take over 50 "
                "times as long as in fp32: leave it out"
            )


def mend_precision(flags: Namespace) -> None:
    """Take weights one by one where an optimizer needs it, and refuse what it cannot do.

    fairseq joins the weights of --fp16 in one long vector, which adagrad and lamb do not take.
    """
    flag = "bf16" if flags.bf16 else "fp16"
    small = flags.memory_efficient_fp16 or flags.memory_efficient_bf16
    if not getattr(flags, flag) or (flag == "bf16" and not small):
        return
    cfg = convert_namespace_to_omegaconf(flags).optimizer
    optimizer = optim.build_optimizer(cfg, [torch.nn.Parameter(torch.zeros(1))])
    if small and not optimizer.supports_memory_efficient_fp16:
        raise UserError(
            f"--optimizer {flags.optimizer} needs a copy of the weights in fp32, which "
            f"--memory-efficient-{flag} does not keep: take --{flag}, or --optimizer adam"
        )
    flat = flag == "fp16" and not flags.fp16_no_flatten_grads
    if flat and not optimizer.supports_flat_params:
        logger.info("--optimizer %s sets --fp16-no-flatten-grads", flags.optimizer)
        flags.fp16_no_flatten_grads = True


def _is_on_cpu(flags: Namespace) -> bool:
    return getattr(flags, "cpu", False) or not torch.cuda.is_available()
