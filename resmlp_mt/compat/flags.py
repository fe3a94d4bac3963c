"""What fairseq and torch make of flags."""

import importlib.util
import os

import torch
from fairseq import checkpoint_utils, options, utils
from fairseq.file_io import PathManager

from resmlp_mt.compat.languages import warn_of_whole_words
from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import find_checkpoint


def mend_parsed_flags() -> None:
    """Put right what fairseq and torch make of some flags.

    Workers on CPUs cannot talk by NCCL, fairseq's default. fairseq takes --bf16 for a wish to train
    on a TPU, on CPUs and GPUs too, and torch's fused attention is slower than plain products in
    bf16 on CPUs. And fairseq trains from scratch without a word where --finetune-from-model names
    a folder; here a folder, or a model that comes with the package, stands for the checkpoint in
    it, and for --path as well. fairseq-validate alone asks for the task that its checkpoint names.
    """

    @patch(options, "parse_args_and_arch")
    def parse(parse_args_and_arch, parser, input_args=None, *args, **kwargs):
        known, _ = parser.parse_known_args(input_args)
        if getattr(known, "task", "given") is None:
            parser.set_defaults(task=_find_task(known.path))
        parsed = parse_args_and_arch(parser, input_args, *args, **kwargs)
        namespace = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(namespace, "tpu", False) and importlib.util.find_spec("torch_xla") is None:
            namespace.tpu = False
        on_cpu = getattr(namespace, "cpu", False) or not torch.cuda.is_available()
        if on_cpu and getattr(namespace, "distributed_backend", None) == "nccl":
            namespace.distributed_backend = "gloo"
        if getattr(namespace, "bf16", False) and on_cpu:
            torch.backends.cuda.enable_flash_sdp(False)  # whatever its name, on CPUs too
        if start := getattr(namespace, "finetune_from_model", None):
            namespace.finetune_from_model = _find(start)
        in_parts = getattr(namespace, "checkpoint_suffix", "") or (
            getattr(namespace, "checkpoint_shard_count", 1) > 1
        )
        if (path := getattr(namespace, "path", None)) and not in_parts:
            namespace.path = os.pathsep.join(map(_find, utils.split_paths(path)))
        warn_of_whole_words(namespace)
        return parsed


def _find(path: str) -> str:
    return path if PathManager.path_requires_pathmanager(path) else str(find_checkpoint(path))


def _find_task(path: str | None) -> str:
    """The task of the first checkpoint that --path names."""
    if path is None:
        raise UserError("--path CHECKPOINT is missing: what shall be validated?")
    checkpoint = _find(utils.split_paths(path)[0])
    return checkpoint_utils.load_checkpoint_to_cpu(checkpoint)["cfg"].task._name
