"""Folders that `export_model` wrote: what is in them, and what runs it."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from resmlp_mt.engines.arrays import read_arrays
from resmlp_mt.engines.broken import computing, explain_broken, is_of_onnxruntime
from resmlp_mt.engines.codec import TextCodec
from resmlp_mt.engines.compiled_code.classifier import NativeClassifier
from resmlp_mt.engines.compiled_code.code import find_compute
from resmlp_mt.engines.compiled_code.translator import build_native
from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.engines.onnx.backend import OnnxBackend
from resmlp_mt.engines.onnx.graph_file import read_graph
from resmlp_mt.engines.search.mixing import MixingRows
from resmlp_mt.engines.search.shortlist import Shortlist
from resmlp_mt.engines.threads import count_threads
from resmlp_mt.errors import UserError
from resmlp_mt.extras import import_with_onnx
from resmlp_mt.files.export_layout import (
    CLASSIFIER,
    COMPRESSED,
    CONFIG,
    FORMAT,
    MIXING,
    PREVIEW,
    READABLE,
    SELECTING,
    SHORTLIST,
    TRANSLATOR,
    WEIGHTS,
)
from resmlp_mt.files.sums import sum_files

if TYPE_CHECKING:  # Pillow is not there where there are translators alone
    from resmlp_mt.data.crops import Cut

# Names of 21,000 classes take 1 MB; what Python makes of JSON takes 30 times as much.
_MAX_JSON = 2**22


def load_exported_translator(folder: Path, device: str = "auto"):
    """The `FoldedSearch` and the `TextCodec` of a folder that `export_model` made.

    Raises:
        UserError: If something is missing or broken, or the device is not the CPU.
    """
    config = _read_config(folder, "translator", device, (*TRANSLATOR, MIXING))
    with _refusing_what_is_broken(folder):
        _check_languages(config)
        weights, shares = read_arrays(folder / MIXING), config["format"] > 2
        _check_mixing(weights, config["source_positions"], config["target_positions"])
        codec = TextCodec.from_folder(folder, (config["source_lang"], config["target_lang"]))
        shared = _read_weights(folder, config) if shares else {}
        dictionaries = codec.source_dictionary, codec.target_dictionary
        banned = [dictionaries[1].pad(), dictionaries[1].unk()]
        preview = read_arrays(folder / PREVIEW) if config.get("preview") else None
        rows = MixingRows.from_weights(weights)
        graphs = OnnxBackend(_read_graphs(folder, config, shares), weights, shared, rows)
        arrays = read_arrays(folder / SHORTLIST) if _has_shortlist(config) else None
        backend = (
            build_native(config, weights, shared, rows, *dictionaries, banned, preview, graphs)
            or graphs.start_search()
        )
        shortlist = None if arrays is None else Shortlist(arrays, backend.select, *dictionaries)
        positions = config["source_positions"], config["target_positions"]
        engine = FoldedSearch(backend, *dictionaries, *positions, shortlist, folder)
    return engine, codec


def load_exported_classifier(
    folder: Path, device: str = "auto", threads: int | None = None
) -> tuple[Callable[[np.ndarray], np.ndarray], "Cut", list[str]]:
    """What a `Classifier` is made of, from a folder that `export_model` made.

    Args:
        folder, device, threads: As for `Classifier.from_pretrained`.

    Raises:
        UserError: If something is missing or broken, or the device is not the CPU.
    """
    from resmlp_mt.data.crops import Cut

    config = _read_config(folder, "classifier", device, (CLASSIFIER,))
    with _refusing_what_is_broken(folder):
        classes, cut = config["classes"], Cut(**config["pictures"])
        if not (isinstance(classes, list) and classes and all(isinstance(c, str) for c in classes)):
            raise ValueError("classes are not names")
        described = config.get("network")
        shared = {} if described is None else _read_weights(folder, config)
        graph = read_graph(folder / CLASSIFIER, shares=described is not None)
        threads = threads or count_threads()
        sizes = cut.in_chans, cut.image_size, len(classes)
        compute = start_classifier(graph, described, shared, *sizes, threads)

    def compute_or_explain(pixels: np.ndarray) -> np.ndarray:
        with computing(folder):
            return compute(pixels)

    return compute_or_explain, cut, classes


def start_classifier(
    graph: bytes,
    described: dict | None,
    shared: dict[str, np.ndarray],
    in_chans: int,
    image_size: int,
    classes: int,
    threads: int,
) -> Callable[[np.ndarray], np.ndarray]:
    """What `make_graph` made, in compiled code where that can do it, else in ONNX Runtime.

    Args:
        graph, described: What it returned.
        shared: The weights that are not in the graph.
        in_chans, image_size: Of the pixels: C and the side of the square.
        classes: K.
        threads: How many work on a batch.

    Returns:
        Pixels, uint8 (B, in_chans, rows, columns) -> logits (B, K).

    Raises:
        UserError, ValueError: If something is missing or broken.
    """
    # Exports of before do not centre the pixels.
    native = described and "centred" in described and find_compute("classify")
    if native:
        sizes = in_chans, image_size, classes
        return NativeClassifier(described, shared, *sizes, threads, native)
    session = import_with_onnx("resmlp_mt.engines.onnx.step").start(graph, threads, shared)

    def compute(pixels: np.ndarray) -> np.ndarray:
        logits = session.run(["logits"], {"pixels": pixels})[0]
        if logits.shape != (len(pixels), classes):
            raise ValueError(f"{logits.shape} scores for {classes} classes")
        return logits

    return compute


@contextmanager
def _refusing_what_is_broken(folder: Path) -> Iterator[None]:
    """Raise what an export cannot be read for as the user's error that it is."""
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: missing; export the model again") from None
    except UserError:
        raise
    except Exception as error:
        of_contents = (ValueError, KeyError, TypeError, AttributeError)
        if not (isinstance(error, of_contents) or is_of_onnxruntime(error)):
            raise
        raise explain_broken(folder, error) from None


def _read_config(folder: Path, kind: str, device: str, files: tuple[str, ...]) -> dict:
    try:
        if (size := os.path.getsize(folder / CONFIG)) > _MAX_JSON:
            raise ValueError(f"{CONFIG} has {size:,} bytes of JSON")
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        number = config.get("format", 1)
        found, sums = config["kind"], config["sha256"] if number in READABLE else {}
        if found not in ("translator", "classifier") or not isinstance(sums, dict):
            raise ValueError(f"not what {CONFIG} says")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise explain_broken(folder, error) from None
    if number not in READABLE:
        raise UserError(
            f"{folder}: made by another version of resmlp-mt (format {number!r:.9}, not {FORMAT}); "
            "export the model again"
        )
    if found != kind:
        raise UserError(f"{folder}: an exported {found}, not a {kind}")
    if device not in ("auto", "cpu"):
        raise UserError(
            f"device {device}: an exported model runs on the CPU alone; name cpu, or no device"
        )
    for name in dict.fromkeys((*files, *sums)):
        if len(name) > 99 or Path(name).name != name or not (folder / name).is_file():
            raise UserError(f"{folder}/{name:.99}: missing; export the model again")
    for name, digest in sum_files(folder, sums).items():
        if sums[name] != digest:
            raise UserError(f"{folder / name}: damaged (its checksum is another); copy it again")
    return config


def _read_weights(folder: Path, config: dict) -> dict[str, np.ndarray]:
    return read_arrays(folder / (WEIGHTS if config.get("weight_bits") is None else COMPRESSED))


def _has_shortlist(config: dict) -> bool:
    return config.get("shortlist") is not None


def _read_graphs(folder: Path, config: dict, shares: bool) -> dict[str, bytes]:
    """The graphs of a translator, by their names in `OnnxBackend`."""
    graphs = dict(zip(("encoder", "step"), TRANSLATOR, strict=True))
    if _has_shortlist(config):
        graphs |= zip(("selecting_step", "select"), SELECTING, strict=True)
    return {name: read_graph(folder / file, shares) for name, file in graphs.items()}


def _check_languages(config: dict) -> None:
    """Check what says how long sentences are, and which files are opened."""
    for side in ("source", "target"):
        lang, positions = config[f"{side}_lang"], config[f"{side}_positions"]
        if not isinstance(lang, str) or Path(f"x{lang}").name != f"x{lang}" or len(lang) > 99:
            raise ValueError(f"{side}_lang {lang!r:.40}")
        if type(positions) is not int or positions < 2:
            raise ValueError(f"{side}_positions {positions!r:.40}")


def _check_mixing(weights: dict[str, np.ndarray], source: int, target: int) -> None:
    """Check that the arrays have the shapes that `OnnxBackend` and `MixingRows` say.

    source, target: N of both sides.
    """
    for name, array in weights.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ValueError(f"{name} is not of finite numbers in float32")
    for side, positions in (("encoder", source), ("decoder", target)):
        matrix = weights[f"{side}.matrix"]
        if matrix.shape[2:] not in ((positions, positions), (2 * positions - 1,)):
            raise ValueError(f"{side}.matrix {matrix.shape} for {positions} positions")
        added = weights.get(f"{side}.positions", np.empty((positions, 0)))
        if added.ndim != 2 or len(added) != positions:
            raise ValueError(f"{side}.positions {added.shape} for {positions} positions")
    bias, scale = weights.get("encoder.bias"), weights["decoder.scale"]
    if bias is not None and bias.shape != (*weights["encoder.matrix"].shape[:2], source):
        raise ValueError(f"encoder.bias {bias.shape}")
    layers, heads = weights["decoder.matrix"].shape[:2]
    if scale.ndim != 1 or min(layers, heads, scale.size) == 0 or scale.size % (layers * heads):
        raise ValueError(f"decoder.scale {scale.shape} for {layers} layers of {heads} heads")
    if (
        "decoder.positions" in weights
        and weights["decoder.positions"].shape[1] * layers != scale.size
    ):
        raise ValueError(f"decoder.positions {weights['decoder.positions'].shape}")
    if weights.get("decoder.offset", np.empty((target, scale.size))).shape != (target, scale.size):
        raise ValueError("decoder.offset")
