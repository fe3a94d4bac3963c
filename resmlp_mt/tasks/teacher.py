"""A trained classifier that another one learns from."""

from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from fairseq import checkpoint_utils
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from resmlp_mt.data.augment import Normalise
from resmlp_mt.data.checkpoints import find_checkpoint
from resmlp_mt.errors import UserError, name_some


class Teacher(nn.Module):
    """Images as the student sees them -> the teacher's logits.

    Args:
        model: The teacher, for images of its own size and normalisation.
        size: Side of its images in pixels.
        num_classes: Outputs to read, if it has more.
        student, own: How the student's and the teacher's images are normalised.
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
    """Load the teacher for a task of image classification.

    Args:
        name: A checkpoint of the same task, a folder with one, a model that comes with the
            package, or the name of a timm model, whose weights timm downloads.
        task: The student's task.

    Raises:
        UserError: If there is no such model, or it knows other classes than the student's task.
    """
    if timm := _find_timm(name):
        return _load_from_timm(timm, name, task)
    path = _find(name)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
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


def _find(name: str) -> Path:
    try:
        return find_checkpoint(name)
    except UserError as error:
        timm = "" if find_spec("timm") else " (or of timm, which is not installed)"
        raise UserError(f"--teacher-model {error}{timm}") from None


def _find_timm(name: str):
    """timm, where it is installed and has a model of that name."""
    try:
        import timm
    except ImportError:
        return None
    return timm if timm.is_model(name) else None


def _load_from_timm(timm, name: str, task: FairseqTask) -> Teacher:
    model = timm.create_model(name, pretrained=True)
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
