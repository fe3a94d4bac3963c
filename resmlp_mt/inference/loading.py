"""A trained translation model with what it needs: dictionaries, subwords, languages."""

from dataclasses import dataclass
from pathlib import Path

from fairseq import checkpoint_utils
from fairseq.data.data_utils import infer_language_pair

from resmlp_mt.data.checkpoints import find_checkpoint
from resmlp_mt.data.subwords import find_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.image_classification import is_for_images


def find_companions(checkpoint: Path, task_cfg) -> tuple[Path, str, str]:
    """Where a checkpoint's dictionaries and SentencePiece models are, and its two languages.

    Args:
        checkpoint: The file; its own folder is searched first, then the data of its training.
        task_cfg: The configuration of the translation task in it.

    Raises:
        UserError: If they are in neither, or the languages are nowhere named.
    """
    trained_from = Path(str(task_cfg.get("data", "")).split(":")[0])
    source, target = task_cfg.get("source_lang"), task_cfg.get("target_lang")
    if source is None or target is None:  # fairseq-train read them from the names of the data
        try:
            source, target = infer_language_pair(str(trained_from))
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
            return folder, source, target
    raise UserError(
        f"{checkpoint}: dict.{source}.txt, dict.{target}.txt and spm.model (or spm.{source}.model "
        f"and spm.{target}.model) must lie beside the checkpoint, or in {trained_from}"
    )


@dataclass
class Trained:
    """A model that fairseq loaded, its task, and the folder of its companions."""

    model: object
    task: object
    folder: Path
    source: str
    target: str


def load_trained(model: str | Path) -> Trained:
    """Load a translation model, ready to translate, in fp32.

    Args:
        model: A name of `pretrained_names`, a folder, or a checkpoint. Dictionaries and
            SentencePiece models are looked for beside it, then in the data of its training.

    Raises:
        UserError: If something is missing, broken, or does not fit together.
    """
    path = find_checkpoint(model)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    if is_for_images(state["cfg"].task):
        raise UserError(f"{path}: a model of images; see 'resmlp-mt classify'")
    folder, source, target = find_companions(path, state["cfg"].task)
    state["cfg"].task.update(data=str(folder), source_lang=source, target_lang=target)
    try:
        models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], state=state)
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path}: {error}") from None
    models[0].prepare_for_inference_(cfg)
    models[0].eval()
    return Trained(models[0].float(), task, folder, source, target)
