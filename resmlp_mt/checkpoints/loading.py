"""Trained models with what they need: dictionaries, subwords and languages, or classes."""

from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig
from torch import nn

from resmlp_mt.compat.checkpoints import find_and_read
from resmlp_mt.compat.languages import infer_languages
from resmlp_mt.data.identity import Identity
from resmlp_mt.data.subwords import find_subwords
from resmlp_mt.data.vocabulary import check_dictionaries
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import CLASSIFICATION, is_of_images


def read_checkpoint(model: str | Path, kind: str | None = None) -> tuple[Path, dict]:
    """The path of a model's checkpoint, and its contents.

    Args:
        model, kind: As for `find_checkpoint`.

    Raises:
        UserError: If there is no checkpoint, it is broken, or of a task without a configuration.
    """
    path, state = find_and_read(model, kind)
    if not isinstance(state["cfg"].task, DictConfig):  # none of ours, nor fairseq's translation
        raise UserError(f"{path}: trained neither to translate nor to classify images")
    return path, state


def find_companions(checkpoint: Path, state: dict) -> tuple[Path, str, str]:
    """Where a checkpoint's dictionaries and SentencePiece models are, and its two languages.

    Args:
        checkpoint: The file; its own folder is searched first, then the data of its training.
        state: Its contents.

    Raises:
        UserError: If they are in neither, are not those that it was trained with, or the languages
            are nowhere named.
    """
    task_cfg = state["cfg"].task
    trained_from = Path(str(task_cfg.get("data", "")).split(":")[0])
    source, target = task_cfg.get("source_lang"), task_cfg.get("target_lang")
    if source is None or target is None:  # fairseq-train read them from the names of the data
        try:
            source, target = infer_languages(trained_from) or (None, None)
        except OSError:
            source = None
    if source is None:
        raise UserError(
            f"{checkpoint}: its languages are not in it, and its data folder {trained_from} is not "
            "here; run in the folder of the training, or pack the model there with 'resmlp-mt pack'"
        )
    for folder in (checkpoint.parent, trained_from):
        dictionaries = all((folder / f"dict.{lang}.txt").is_file() for lang in (source, target))
        if dictionaries and find_subwords(folder, source) and find_subwords(folder, target):
            check_dictionaries(folder, source, target)
            trained = Identity.of_state(state.get("task_state"))
            there = trained and Identity.of_folder(folder, (source, target))
            if trained and (told := trained.differences(there)):
                raise UserError(
                    f"{checkpoint}: trained with other companions than those in {folder}: {told}; "
                    "copy those of its training there"
                )
            return folder, source, target
    raise UserError(
        f"{checkpoint}: dict.{source}.txt, dict.{target}.txt and spm.model (or spm.{source}.model "
        f"and spm.{target}.model) must lie beside the checkpoint, or in {trained_from}"
    )


@dataclass
class TrainedTranslator:
    """A model that fairseq loaded, its task, and the folder of its companions."""

    model: object
    task: object
    folder: Path
    source: str
    target: str


def load_translator(path: Path, state: dict) -> TrainedTranslator:
    """Build a translation model, ready to translate, in fp32.

    Dictionaries and SentencePiece models are looked for beside the checkpoint, then in the data of
    its training.

    Args:
        path, state: As `read_checkpoint` returned them.

    Raises:
        UserError: If something is missing, broken, or does not fit together.
    """
    if is_of_images(state["cfg"].task.get("_name")):
        raise UserError(f"{path}: a model of images; see 'resmlp-mt classify'")
    folder, source, target = find_companions(path, state)
    state["cfg"].task.update(data=str(folder), source_lang=source, target_lang=target)
    model, task = build(path, state)
    if not isinstance(model, FairseqEncoderDecoderModel):
        raise UserError(f"{path}: a {type(model).__name__}, which does not translate")
    model.prepare_for_inference_(state["cfg"])
    return TrainedTranslator(model.float(), task, folder, source, target)


def build(path: Path, state: dict) -> tuple[nn.Module, FairseqTask]:
    """Build the model of a checkpoint, in eval mode, and its task.

    Args:
        path, state: As `read_checkpoint` returned them.

    Raises:
        UserError: If the configuration and the weights do not fit together, or the architecture is
            of a plugin that was not imported.
    """
    try:
        # Weights are drawn before they are loaded. The caller's random numbers go on as they were.
        with torch.random.fork_rng(devices=[]):
            models, _, task = checkpoint_utils.load_model_ensemble_and_task(
                [str(path)], state=state
            )
        _check_numbers(models[0])
    except UserError as error:
        named = str(error).startswith(f"{path}: ")
        raise (error if named else UserError(f"{path}: {error}")) from None
    except RuntimeError as error:  # torch: weights of another model
        raise UserError(f"{path}: {error}") from None
    except Exception as error:  # a broken configuration fails anywhere in OmegaConf and fairseq
        raise UserError(
            f"{path}: a broken configuration ({type(error).__name__}: {error}); copy it again"
        ) from error
    return models[0].eval(), task


def _check_numbers(model: nn.Module) -> None:
    for name, tensor in model.state_dict().items():
        if not tensor.isfinite().all():
            raise UserError(f"{name} holds values that are no numbers; training diverged")


@dataclass
class TrainedClassifier:
    """A model that fairseq loaded, its task, and the names of its classes."""

    model: object
    task: object
    classes: list[str]


def load_classifier(path: Path, state: dict) -> TrainedClassifier:
    """Build a classifier of images, in fp32.

    Args:
        path, state: As `read_checkpoint` returned them.

    Raises:
        UserError: If the model is no classifier.
    """
    name = state["cfg"].task.get("_name")
    if name != CLASSIFICATION:
        what = "fine-tune it for classes first" if is_of_images(name) else "it is for text"
        raise UserError(f"{path}: not a classifier of images; {what}")
    model, task = build(path, state)
    if not task.num_classes:
        raise UserError(f"{path}: it has no head; 'study probe' takes it, and fine-tuning")
    if not all(isinstance(name, str) for name in task.classes):
        raise UserError(f"{path}: its classes have no names; copy it again")
    unused = [f"unused {i}" for i in range(len(task.classes), task.num_classes)]
    return TrainedClassifier(model.float(), task, task.classes + unused)
