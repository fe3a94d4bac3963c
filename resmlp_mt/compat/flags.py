"""What fairseq and torch make of flags."""

import importlib.util
import os

import torch
from fairseq import options

from resmlp_mt.compat.languages import warn_of_whole_words
from resmlp_mt.compat.patching import patch
from resmlp_mt.data.checkpoints import find_checkpoint


def mend_parsed_flags() -> None:
    """Put right what fairseq and torch make of some flags.

    Workers on CPUs cannot talk by NCCL, fairseq's default. fairseq takes --bf16 for a wish to train
    on a TPU, on CPUs and GPUs too, and torch's fused attention is slower than plain products in
    bf16 on CPUs. And fairseq trains from scratch without a word where --finetune-from-model names
    a folder; here a folder, or a model that comes with the package, stands for the checkpoint in
    it, and for --path as well.
    """

    @patch(options, "parse_args_and_arch")
    def parse(parse_args_and_arch, *args, **kwargs):
        parsed = parse_args_and_arch(*args, **kwargs)
        namespace = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(namespace, "tpu", False) and importlib.util.find_spec("torch_xla") is None:
            namespace.tpu = False
        on_cpu = getattr(namespace, "cpu", False) or not torch.cuda.is_available()
        if on_cpu and getattr(namespace, "distributed_backend", None) == "nccl":
            namespace.distributed_backend = "gloo"
        if getattr(namespace, "bf16", False) and on_cpu:
            torch.backends.cuda.enable_flash_sdp(False)  # whatever its name, on CPUs too
        if start := getattr(namespace, "finetune_from_model", None):
            namespace.finetune_from_model = str(find_checkpoint(start))
        if os.path.isdir(path := getattr(namespace, "path", None) or ""):
            namespace.path = str(find_checkpoint(path))
        warn_of_whole_words(namespace)
        return parsed
