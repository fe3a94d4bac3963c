"""Models, tasks and criterions that do not go together."""

from fairseq.models import ARCH_MODEL_REGISTRY, FairseqEncoderDecoderModel

from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import is_of_images

# What these criterions teach or read, and no model of ours has.
_NOT_OURS = {
    "adaptive_loss": "an adaptive softmax",
    "label_smoothed_cross_entropy_with_alignment": "a head that learns alignments",
}


def check_modality(flags: Flags) -> None:
    """Refuse a model of text for images, and one of ours for images for text."""
    arch, task = flags.arch, str(flags.task)
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    if is_of_images(task) and issubclass(model, FairseqEncoderDecoderModel):
        raise UserError(
            f"--arch {arch} is a model of text, --task {task} is for images: choose --arch or "
            "--task anew"
        )
    if task == "translation" and getattr(model, "modality", None) == "images":
        raise UserError(
            f"--arch {arch} is a model of images, --task {task} is for text: give --task "
            "image_classification, or another --arch"
        )


def check_model(flags: Flags) -> None:
    """Refuse tasks and criterions for which a model of ours lacks something."""
    if not is_our_translator(flags.arch):
        return
    if flags.task in ("online_backtranslation", "translation_lev"):
        raise UserError(
            f"--task {flags.task} is not for --arch {flags.arch}: give --task translation"
        )
    if lacking := _NOT_OURS.get(flags.criterion):
        raise UserError(
            f"--criterion {flags.criterion} needs {lacking}, which --arch {flags.arch} has not: "
            "take label_smoothed_cross_entropy"
        )


def modality_of(task: str | None) -> str | None:
    """Whether a task is of "images" or of "text", as `find_checkpoint` calls them."""
    return task and ("images" if is_of_images(task) else "text")


def is_our_translator(arch: str | None) -> bool:
    """Whether a preset is of a model of ours for text."""
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    ours = model.__module__.partition(".")[0] == "resmlp_mt"
    return ours and issubclass(model, FairseqEncoderDecoderModel)
