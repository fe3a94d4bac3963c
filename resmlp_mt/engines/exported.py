"""Folders that `export_model` wrote, loaded into the engines that run them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.engines.arrays import read_arrays
from resmlp_mt.engines.broken import computing
from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.engines.kernels.classifier import ClassifierKernel
from resmlp_mt.engines.onnx_graph import start_graph
from resmlp_mt.engines.threads import count_threads
from resmlp_mt.errors import UserError
from resmlp_mt.files import export_layout as layout
from resmlp_mt.files.sums import sum_files

if TYPE_CHECKING:  # Pillow is not there where there are translators alone
    from resmlp_mt.data.crops import Cut

# Names of 21,000 classes take 1 MB; parsed, JSON takes 30 times as much.
_MAX_JSON = 2**22
# The errors of Python for contents of wrong types.
_OF_CONTENTS = KeyError, TypeError, AttributeError


def load_exported_translator(folder: Path, device: str = "auto") -> tuple[FoldedSearch, TextCodec]:
    """The engine and the codec of a folder that `export_model` made.

    Raises:
        UserError: If something is missing or broken, or the device is not the CPU.
    """
    config = _read_config(folder, "translator", device)
    with computing(folder, *_OF_CONTENTS):
        _check_languages(config)
        codec = TextCodec.from_folder(folder, (config["source_lang"], config["target_lang"]))
        dictionaries = codec.source_dictionary, codec.target_dictionary
        arrays = _read_weights(folder, config) | read_arrays(folder / layout.MIXING)
        preview = read_arrays(folder / layout.PREVIEW) if config.get("preview") else None
        listed = config.get("shortlist") is not None
        shortlist = read_arrays(folder / layout.SHORTLIST) if listed else None
        engine = FoldedSearch(config, arrays, *dictionaries, preview, shortlist, folder)
    return engine, codec


def load_exported_classifier(
    folder: Path, device: str = "auto", threads: int | None = None
) -> tuple[Callable[[np.ndarray], np.ndarray], "Cut", list[str]]:
    """The parts of a `Classifier`, from a folder that `export_model` made.

    Args:
        folder, device, threads: As for `Classifier.from_pretrained`.

    Raises:
        UserError: If something is missing or broken, or the device is not the CPU.
    """
    from resmlp_mt.data.crops import Cut

    config = _read_config(folder, "classifier", device)
    with computing(folder, *_OF_CONTENTS):
        classes, cut = config["classes"], Cut(**config["pictures"])
        if not (isinstance(classes, list) and classes and all(isinstance(c, str) for c in classes)):
            raise ValueError("classes are not names")
        described, threads = config.get("network"), threads or count_threads()
        if described is None:
            compute = start_graph((folder / layout.CLASSIFIER).read_bytes(), threads)
        else:
            sizes = cut.in_chans, cut.image_size, len(classes)
            weights = _read_weights(folder, config)
            compute = ClassifierKernel(described, weights, *sizes, threads)

    def compute_or_explain(pixels: np.ndarray) -> np.ndarray:
        with computing(folder):
            logits = compute(pixels)
            if logits.shape != (len(pixels), len(classes)):
                raise ValueError(f"{logits.shape} scores for {len(classes)} classes")
        return logits

    return compute_or_explain, cut, classes


def _read_config(folder: Path, kind: str, device: str) -> dict:
    with computing(folder, *_OF_CONTENTS, RecursionError):
        if (size := os.path.getsize(folder / layout.CONFIG)) > _MAX_JSON:
            raise ValueError(f"{layout.CONFIG} has {size:,} bytes of JSON")
        config = json.loads((folder / layout.CONFIG).read_text(encoding="utf-8"))
        number = config.get("format", 1)
        found, sums = config["kind"], config["sha256"] if number in layout.READABLE else {}
        if found not in ("translator", "classifier") or not isinstance(sums, dict):
            raise ValueError(f"not what {layout.CONFIG} says")
    if number not in layout.READABLE:
        raise UserError(
            f"{folder}: made by another version of resmlp-mt (format {number!r:.9}, not "
            f"{layout.FORMAT}); export the model again"
        )
    if found != kind:
        raise UserError(f"{folder}: an exported {found}, not a {kind}")
    if device not in ("auto", "cpu"):
        raise UserError(
            f"device {device}: an exported model runs on the CPU alone; name cpu, or no device"
        )
    for name in sums:
        if len(name) > 99 or Path(name).name != name or not (folder / name).is_file():
            raise UserError(f"{folder}/{name:.99}: missing; export the model again")
    for name, digest in sum_files(folder, sums).items():
        if sums[name] != digest:
            raise UserError(f"{folder / name}: damaged (its checksum is another); copy it again")
    return config


def _read_weights(folder: Path, config: dict) -> dict[str, np.ndarray]:
    rounded = config.get("weight_bits") is not None
    return read_arrays(folder / (layout.COMPRESSED if rounded else layout.WEIGHTS))


def _check_languages(config: dict) -> None:
    """Check the languages, which name files, and the lengths of sentences."""
    for side in ("source", "target"):
        lang, positions = config[f"{side}_lang"], config[f"{side}_positions"]
        if not isinstance(lang, str) or Path(f"x{lang}").name != f"x{lang}" or len(lang) > 99:
            raise ValueError(f"{side}_lang {lang!r:.40}")
        if type(positions) is not int or positions < 2:
            raise ValueError(f"{side}_positions {positions!r:.40}")
