"""A trained classifier that another one learns from."""

import logging

import torch
import torch.nn.functional as F
from fairseq import checkpoint_utils
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from resmlp_mt.compat.checkpoints import load_checkpoint
from resmlp_mt.data.augment import Normalise
from resmlp_mt.errors import UserError, name_some
from resmlp_mt.extras import import_timm
from resmlp_mt.files.finding import find_checkpoint

logger = logging.getLogger(__name__)


class Teacher(nn.Module):
    """Images as the student sees them -> the teacher's logits.

    Args:
        model: The teacher, for images of its own size and normalisation.
        size: Side of its images in pixels.
        num_classes: Outputs to read, if it has more.
        student, own: The normalisation of the student's and of the teacher's images.
    """

    def __init__(
        self, model: nn.Module, size: int, num_classes: int, student: Normalise, own: Normalise
    ):
        super().__init__()
        self.model = model.eval().requires_grad_(False)
        self.size, self.num_classes = size, num_classes
        self.student, self.own = student, own

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """(B, in_chans, H, W), float32 -> (B, K), in the precision of the teacher's weights."""
        pixels = images * self.student.std + self.student.mean
        if pixels.shape[-2:] != (self.size, self.size):
            pixels = F.interpolate(pixels, (self.size, self.size), mode="bicubic", antialias=True)
        dtype = next(self.model.parameters()).dtype
        return self.model(self.own.scale(pixels).to(dtype))[:, : self.num_classes]


def load_teacher(name: str, task: FairseqTask) -> Teacher:
    """Load the teacher for a task of image classification, and log where it is from.

    Args:
        name: A checkpoint of the same task, a folder with one, or a model that comes with the
            package; else the name of a timm model, whose weights timm downloads, or
            "local-dir:FOLDER" and "hf-hub:NAME" as timm knows them.
        task: The student's task.

    Raises:
        UserError: If there is no such model, or it knows other classes than the student's task.
    """
    try:
        path = find_checkpoint(name, "images")
    except UserError as error:
        return _load_from_timm(name, task, error)
    logger.info("teacher: %s", path)
    state = load_checkpoint(path)
    if state["cfg"].task.get("_name") != task.cfg._name:
        raise UserError(f"--teacher-model {name} is no classifier of images")
    models, _, own = checkpoint_utils.load_model_ensemble_and_task([str(path)], state=state)
    if own.classes != task.classes:
        raise UserError(
            f"--teacher-model {name} knows other classes: {_differences(own.classes, task.classes)}"
        )
    if own.in_chans != task.in_chans:
        raise UserError(
            f"--teacher-model {name} reads images of {own.in_chans} channels, not {task.in_chans}"
        )
    return Teacher(models[0], own.image_size, len(own.classes), task.normalise, own.normalise)


def _load_from_timm(name: str, task: FairseqTask, not_here: UserError) -> Teacher:
    try:
        timm = import_timm()
    except UserError as error:
        raise UserError(f"--teacher-model {not_here}; {error}") from None
    if timm is None:
        raise UserError(f"--teacher-model {not_here} (or of timm, which is not installed)")
    if not timm.is_model(name) and not name.startswith(("local-dir:", "hf-hub:")):
        raise UserError(f"--teacher-model {not_here}; timm has none of that name either")
    try:
        model = timm.create_model(name, pretrained=True)
    except (OSError, RuntimeError) as error:  # no network, no such folder, no weights
        raise UserError(f"--teacher-model {name}: timm could not load it: {error}") from None
    logger.info("teacher: %s of timm", name)
    if model.num_classes != task.num_classes:
        raise UserError(
            f"--teacher-model {name} has {model.num_classes} classes, the data {task.num_classes}"
        )
    data = timm.data.resolve_model_data_config(model)
    own = Normalise(data["mean"], data["std"])
    return Teacher(model, data["input_size"][-1], task.num_classes, task.normalise, own)


def _differences(teacher: list[str], student: list[str]) -> str:
    if set(teacher) == set(student):
        return "the same names in another order"
    extra = sorted(set(teacher) - set(student))
    missing = sorted(set(student) - set(teacher))
    return f"it has {len(teacher)}, the data {len(student)}; " + "; ".join(
        f"{text}: {name_some(names)}"
        for text, names in (("only the teacher", extra), ("only the data", missing))
        if names
    )
