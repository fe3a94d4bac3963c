"""The parts of a `Translator` or a `Classifier`, made of checkpoints."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from resmlp_mt.checkpoints.device import choose_device
from resmlp_mt.checkpoints.loading import (
    TrainedClassifier,
    TrainedTranslator,
    load_classifier,
    load_translator,
    read_checkpoint,
)
from resmlp_mt.data.codec import TextCodec
from resmlp_mt.data.crops import Cut
from resmlp_mt.engines.compiled import CompiledSearch, can_compile
from resmlp_mt.engines.fairseq_search import FairseqSearch
from resmlp_mt.nn.attention import expect_new_shapes


def load_trained(model: str | Path, kind: str, device: str) -> tuple:
    """Load the parts of a `Translator` or a `Classifier` from a checkpoint.

    Args:
        model, kind: As for `find_checkpoint`.
        device: As for `choose_device`.

    Raises:
        UserError: If something is missing or broken, does not fit together, or is of another kind.
    """
    read = read_checkpoint(model, kind)
    if kind == "text":
        return wrap_translator(load_translator(*read), device)
    return wrap_classifier(load_classifier(*read), device)


def wrap_translator(
    trained: TrainedTranslator, device: str
) -> tuple[CompiledSearch | FairseqSearch, TextCodec]:
    """The engine and the codec of a translator. Compiled code sees no later changes of weights."""
    task, model = trained.task, trained.model.to(device := choose_device(str(device)))
    dictionaries = task.source_dictionary, task.target_dictionary
    if can_compile(model):
        engine = CompiledSearch(model, *dictionaries)
    else:
        engine = FairseqSearch(model, task, device)
    if engine.device.startswith("cuda"):
        expect_new_shapes()
    languages = trained.source, trained.target
    return engine, TextCodec.from_folder(trained.folder, languages, dictionaries)


def wrap_classifier(
    trained: TrainedClassifier, device: str
) -> tuple[Callable[[np.ndarray], np.ndarray], Cut, list[str]]:
    """The parts of a `Classifier`. Later changes of the weights change its predictions."""
    device = choose_device(device)
    network, normalise = trained.model.to(device), trained.task.normalise.to(device)

    @torch.inference_mode()
    def compute(pixels: np.ndarray) -> np.ndarray:
        return network(normalise(torch.from_numpy(pixels).to(device))).cpu().numpy()

    return compute, trained.task.cut, trained.classes
