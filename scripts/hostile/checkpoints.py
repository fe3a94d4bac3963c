"""Mutations of checkpoints: their bytes, the files in their zip, their values, and payloads."""

import io
import os
import pickle
import subprocess
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import torch
from omegaconf import OmegaConf

from hostile.mutate import mutate_bytes, mutate_tree

# Where a payload writes if it is run: beside the attempt's folder.
_MARKER = "../pwned"


class Payload:
    """Runs something when a loader that runs code unpickles it."""

    def __init__(self, call: Callable, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


_PAYLOADS = (
    Payload(os.mkdir, _MARKER),
    Payload(os.system, f"touch {_MARKER}"),
    Payload(exec, f"import os; os.mkdir({_MARKER!r})"),
    Payload(eval, f"__import__('os').mkdir({_MARKER!r})"),
    Payload(subprocess.check_call, ["touch", _MARKER]),
    Payload(open, _MARKER, "w"),
    Payload(getattr, os.mkdir, "__name__"),
)


def mutate_checkpoint(rng: Random, data: bytes) -> bytes:
    """Change bytes; or values, or hide a payload among them, and write that as torch does."""
    how = rng.random()
    if how < 0.35:
        return mutate_bytes(rng, data)
    if how < 0.5:
        return _mutate_member(rng, data)
    state = torch.load(io.BytesIO(data), weights_only=True)
    state["cfg"] = OmegaConf.to_container(OmegaConf.create(state["cfg"]))
    if how < 0.6:
        part = rng.choice(("model", "task"))
        state["cfg"][part] = mutate_tree(rng, state["cfg"][part])
    elif how < 0.75:
        state["model"] = mutate_tree(rng, state["model"], _mutate_tensor)
    elif how < 0.92:
        state = mutate_tree(rng, state, _mutate_tensor)
    else:
        state = mutate_tree(rng, state, lambda rng, _: rng.choice(_PAYLOADS))
    buffer = io.BytesIO()
    if rng.random() < 0.1:
        pickle.dump(state, buffer)
    else:
        torch.save(state, buffer, _use_new_zipfile_serialization=rng.random() < 0.8)
    return buffer.getvalue()


def _mutate_member(rng: Random, data: bytes) -> bytes:
    """Change a file in the zip, mostly the pickle, and write it with checksums that are right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        names = old.namelist()
        pickled = next(name for name in names if name.endswith("data.pkl"))
        chosen = rng.choice((pickled, pickled, rng.choice(names)))
        for name in names:
            content = old.read(name)
            new.writestr(name, mutate_bytes(rng, content) if name == chosen else content)
    return buffer.getvalue()


def _mutate_tensor(rng: Random, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return rng.choice((torch.ones(2), [value], str(value)))
    how = rng.randrange(10)
    if how == 0:
        return value.flatten()
    if how == 1:
        return value.T.contiguous()
    if how == 2:
        return value[: max(len(value) - 1, 0)]
    if how == 3:
        return value.flatten()[:1].expand(rng.choice((10**6, 10**12)), 2)
    if how == 4:
        kinds = (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool)
        return value.to(rng.choice((*kinds, torch.complex64)))
    if how == 5:
        return torch.full_like(value, rng.choice((float("nan"), float("inf"), 1e38, 0.0)))
    if how == 6:
        return value[:0]
    if how == 7:
        return value.to_sparse()
    if how == 8:
        return value.to("meta")
    return torch.nn.Parameter(value)
