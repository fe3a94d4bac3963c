"""Folders that `export.py` wrote: what is in them, and how to run it with ONNX Runtime."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import Tensor

from resmlp_mt.errors import UserError
from resmlp_mt.inference.codec import TextCodec

CONFIG, MIXING = "export.json", "mixing.safetensors"
TRANSLATOR, CLASSIFIER = ("encoder.onnx", "step.onnx"), "classifier.onnx"


def is_exported(path: Path) -> bool:
    """Whether `export_model` made this folder."""
    return (path / CONFIG).is_file()


def load_exported_translator(folder: Path, device: str = "auto"):
    """The `BeamSearch` and the `TextCodec` of a folder that `export_model` made.

    Raises:
        UserError: If something is missing or broken, or the device is not the CPU.
    """
    search = import_with_onnx("resmlp_mt.inference.search")
    config = _read_config(folder, "translator", device, (*TRANSLATOR, MIXING))
    try:
        codec = TextCodec(folder, config["source_lang"], config["target_lang"])
        engine = search.BeamSearch(
            *((folder / name).read_bytes() for name in TRANSLATOR),
            load_file(folder / MIXING),
            codec.source_dictionary,
            codec.target_dictionary,
            config["source_positions"],
            config["target_positions"],
        )
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: missing; export the model again") from None
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise _broken(folder, error) from None
    return engine, codec


def load_exported_classifier(
    folder: Path, device: str = "auto"
) -> tuple[Callable[[Tensor], Tensor], SimpleNamespace, list[str]]:
    """What a `Classifier` is made of, from a folder that `export_model` made.

    Raises:
        UserError: If something is missing or broken, or the device is not the CPU.
    """
    search = import_with_onnx("resmlp_mt.inference.search")
    config = _read_config(folder, "classifier", device, (CLASSIFIER,))
    try:
        session = search.start((folder / CLASSIFIER).read_bytes(), torch.get_num_threads())
        classes, cut = config["classes"], SimpleNamespace(**config["pictures"])
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(folder, error) from None

    def compute(pixels: Tensor) -> Tensor:
        return torch.from_numpy(session.run(["logits"], {"pixels": pixels.numpy()})[0])

    return compute, cut, classes


def import_with_onnx(name: str):
    """Import a module that needs the extra [export].

    Raises:
        UserError: If that is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).split(".")[0] not in ("onnx", "onnxruntime"):
            raise
        raise UserError(
            "this needs ONNX and ONNX Runtime: pip install 'resmlp_mt[export]'"
        ) from None


def _read_config(folder: Path, kind: str, device: str, files: tuple[str, ...]) -> dict:
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        found = config["kind"]
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(folder, error) from None
    if found != kind:
        raise UserError(f"{folder}: an exported {found}, not a {kind}")
    if device not in ("auto", "cpu"):
        raise UserError(f"--device {device}: an exported model runs on the CPU; leave it out")
    for name in files:
        if not (folder / name).is_file():
            raise UserError(f"{folder / name}: missing; export the model again")
    return config


def _broken(folder: Path, error: Exception) -> UserError:
    return UserError(f"{folder}: a broken export ({error}); export the model again")
