"""Checkpoints as what a `Translator` or a `Classifier` is made of."""

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
from resmlp_mt.engines.compiled import can_compile, compile_model
from resmlp_mt.engines.fairseq_search import FairseqSearch
from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.nn.attention import expect_new_shapes


def load_trained(model: str | Path, device: str) -> tuple[FoldedSearch | FairseqSearch, TextCodec]:
    """The engine and the codec of a checkpoint.

    Args:
        model: As for `find_checkpoint`.
        device: As for `choose_device`.

    Raises:
        UserError: If something is missing, broken, or does not fit together.
    """
    return wrap_translator(load_translator(*read_checkpoint(model, "text")), device)


def wrap_translator(
    trained: TrainedTranslator, device: str
) -> tuple[FoldedSearch | FairseqSearch, TextCodec]:
    """The same of a translator that was loaded. Compiled code sees no later changes of its weights.

    Args:
        trained: The translator.
        device: As for `choose_device`.
    """
    task, model = trained.task, trained.model.to(device := choose_device(str(device)))
    dictionaries = task.source_dictionary, task.target_dictionary
    compiled = can_compile(model)
    engine = compile_model(model, *dictionaries) if compiled else FairseqSearch(model, task, device)
    if engine.device.startswith("cuda"):
        expect_new_shapes()
    languages = trained.source, trained.target
    return engine, TextCodec.from_folder(trained.folder, languages, dictionaries)


def load_trained_classifier(
    model: str | Path, device: str
) -> tuple[Callable[[np.ndarray], np.ndarray], Cut, list[str]]:
    """What a `Classifier` is made of, from a checkpoint.

    Args:
        model, device: As for `load_trained`.

    Raises:
        UserError: If something is missing or broken, or the model is no classifier.
    """
    return wrap_classifier(load_classifier(*read_checkpoint(model, "images")), device)


def wrap_classifier(
    trained: TrainedClassifier, device: str
) -> tuple[Callable[[np.ndarray], np.ndarray], Cut, list[str]]:
    """The same of a classifier that was loaded. Whoever changes its weights changes what it says.

    Args:
        trained: The classifier.
        device: As for `choose_device`.
    """
    device = choose_device(device)
    network, normalise = trained.model.to(device), trained.task.normalise.to(device)

    @torch.inference_mode()
    def compute(pixels: np.ndarray) -> np.ndarray:
        return network(normalise(torch.from_numpy(pixels).to(device))).cpu().numpy()

    return compute, trained.task.cut, trained.classes
