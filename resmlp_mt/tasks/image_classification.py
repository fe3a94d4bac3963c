"""Image classification as a fairseq task: folders of images in, top-1 and top-5 out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import List  # noqa: UP035  (fairseq knows lists by this name)

import torch
from fairseq.tasks import register_task
from torch import Tensor, nn

from resmlp_mt.criterions.image_classification import count_hits
from resmlp_mt.data.augment import Augment, AugmentPicture
from resmlp_mt.data.crops import RandomPart, SquarePart
from resmlp_mt.data.image_folder import name_differences
from resmlp_mt.data.real_labels import read_real_labels
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import CLASSIFICATION
from resmlp_mt.models.images import ImageModel, head_of, with_head
from resmlp_mt.nn.patches import init_linear
from resmlp_mt.tasks.augmentation import RecipeConfig
from resmlp_mt.tasks.image_dataset import ImageDataset
from resmlp_mt.tasks.images import ImageTask, ImageTaskConfig, check_range
from resmlp_mt.tasks.teacher import load_teacher

logger = logging.getLogger(__name__)


@dataclass
class ResMLPImageClassificationConfig(ImageTaskConfig, RecipeConfig):
    """The flags of classification, beside those of the images; timm's names."""

    num_classes: int = field(
        default=0, metadata={"help": "outputs of the head; 0: as many as the data has classes"}
    )
    scale: List[float] = field(  # noqa: UP006
        default_factory=lambda: [0.08, 1.0],
        metadata={"help": "share of the area that a training crop takes, as 0.08,1.0"},
    )
    square_resize: int = field(
        default=0,
        metadata={
            "help": "bring training images to a square of this side, and cut a random part of "
            "--image-size out of it, as BiT does; 0: parts by --scale and --ratio"
        },
    )
    real_labels: str = field(
        default="",
        metadata={
            "help": "real.json of ImageNet-ReaL, whose several labels an image validation then "
            "reports as real_top1 and real_top5"
        },
    )
    teacher_model: str = field(
        default="",
        metadata={"help": "distil from: a checkpoint of this task, or the name of a timm model"},
    )


@register_task(CLASSIFICATION, dataclass=ResMLPImageClassificationConfig)
class ResMLPImageClassificationTask(ImageTask):
    """Trains classifiers on folders of images; class names are kept in the checkpoint."""

    name = criterion = CLASSIFICATION

    def __init__(self, cfg: ResMLPImageClassificationConfig):
        super().__init__(cfg)
        if cfg.num_classes < 0:
            raise UserError(f"--num-classes cannot be negative ({cfg.num_classes})")
        check_range("scale", cfg.scale, 1.0)
        if cfg.square_resize and cfg.square_resize < cfg.image_size:
            raise UserError(
                f"--square-resize {cfg.square_resize} is smaller than the part of --image-size "
                f"{cfg.image_size} that is cut out of it"
            )
        self.teacher = None
        self.real_labels = None
        self.state.add_factory("classes", self._find_classes)

    @property
    def classes(self) -> list[str]:
        """The names of the classes: a checkpoint's, or those of the training folder."""
        return self.state.classes

    @property
    def num_classes(self) -> int:
        """K, the outputs of the head."""
        if 0 < self.cfg.num_classes < len(self.classes):
            raise UserError(
                f"--num-classes {self.cfg.num_classes} is too small for the {len(self.classes)} "
                f"classes of {self.cfg.data}"
            )
        return self.cfg.num_classes or len(self.classes)

    def _find_classes(self) -> list[str]:
        return self.open_folder("train").classes

    def adopt_state(self, state: dict, path: str, model: ImageModel, tunes: bool) -> None:
        """Make a checkpoint fit the classes of the data, before a training takes it.

        In fine-tuning the outputs of the same classes are brought in their order. For other classes
        the head starts anew, with a message. So do the heads of moving averages.

        Args:
            state: The checkpoint, which is changed.
            path: Its file.
            model: The model that will take its weights.
            tunes: Whether fine-tuning starts from it; else a training goes on.

        Raises:
            UserError: If a training would go on with other classes.
        """
        known = [str(name) for name in (state.get("task_state") or {}).get("classes") or ()]
        if not known or known == self.classes:
            return
        differences = name_differences(known, self.classes)
        if not tunes:
            raise UserError(
                f"{self.cfg.data}: not the classes that {path} was trained on: "
                f"{differences or 'they have another order'}; go on with those, or start a new "
                "training from it with --finetune-from-model and another --save-dir"
            )
        if differences:
            advice = "; to keep it, name its classes with 'resmlp-mt import-weights --classes'"
            advice = advice if all(map(str.isdigit, known)) else ""
            logger.warning("%s has other classes: the head starts anew%s", path, advice)
            own = {name: tensor.clone() for name, tensor in head_of(model.state_dict()).items()}
            _change_heads(state, lambda head: own)
        else:
            # Outputs beyond the classes, if --num-classes gives some, stay where they are.
            rows = [*map(known.index, self.classes), *range(len(known), self.num_classes)]
            _change_heads(state, lambda head: _take_rows(head, rows))

    def build_head(self, dim: int) -> nn.Module:
        """The model's output layer: (B, C = dim) -> (B, K)."""
        if not self.num_classes:  # published weights without a head: features alone
            return nn.Identity()
        head = nn.Linear(dim, self.num_classes)
        init_linear(head)
        return head

    def load_dataset(self, split: str, task_cfg=None, **kwargs) -> None:
        """Load train, valid or test.

        Args:
            split: Its name.
            task_cfg: A configuration, by fairseq-validate and not by fairseq-train: the training
                images are then evaluated like others.

        Raises:
            UserError: If the images are not there, or in other classes than the model's.
        """
        cfg = self.cfg
        folder = self.open_folder(split)
        folder.align(self.classes)
        train = split == "train" and task_cfg is None
        cut, repeats = (self._cut_at_random(), cfg.aug_repeats) if train else (self.cut, 1)
        self.datasets[split] = ImageDataset(
            folder, cut, train=train, seed=cfg.seed, repeats=repeats
        )
        if not train and cfg.real_labels:
            self.real_labels = read_real_labels(cfg.real_labels, folder.names, self.num_classes)
        if train:
            self.augment = Augment(cfg, cfg.mean, cfg.std, self.num_classes)
            if cfg.teacher_model:
                self.teacher = load_teacher(cfg.teacher_model, self)

    def _cut_at_random(self) -> RandomPart | SquarePart:
        cfg, interpolation = self.cfg, str(self.cfg.train_interpolation)
        how = interpolation, AugmentPicture(cfg, cfg.mean, interpolation)
        if cfg.square_resize:
            return SquarePart(cfg.square_resize, cfg.image_size, *how)
        return RandomPart(cfg.image_size, tuple(cfg.scale), tuple(cfg.ratio), *how)

    def train_step(self, sample, model, *args, ema_model=None, **kwargs):
        """Augment, ask the teacher, and go forward and backward as fairseq does."""
        return super().train_step(self._prepare_train(sample, model), model, *args, **kwargs)

    def _prepare_train(self, sample: dict, model: nn.Module) -> dict:
        images, target = sample["net_input"]["images"], sample["target"]
        images, soft_target = self.augment.to(images.device)(images, target)
        dtype = next(model.parameters()).dtype
        prepared = {**sample, "soft_target": soft_target}
        if self.teacher is not None:
            self.teacher.to(images.device).model.to(dtype)
            prepared["teacher_target"] = self.teacher(images).argmax(1)
        prepared["net_input"] = {"images": images.to(dtype)}
        return prepared

    def valid_step(self, sample, model, criterion, ema_model=None):
        """Evaluate; with --store-ema, the averaged weights too, as ema_top1 and ema_top5."""
        images = sample["net_input"]["images"]
        images = self.normalise.to(images.device)(images).to(next(model.parameters()).dtype)
        sample = {**sample, "net_input": {"images": images}}
        if self.real_labels is not None:
            sample["real_target"] = self.real_labels[sample["id"].cpu()].to(images.device)
        loss, size, log = super().valid_step(sample, model, criterion)
        if ema_model is not None:
            with torch.no_grad():
                ema_model.eval()
                images = images.to(next(ema_model.parameters()).dtype)
                log |= count_hits(ema_model(images).float(), sample["target"], "ema_")
        return loss, size, log


def _change_heads(state: dict, change: Callable[[dict], dict]) -> None:
    """Change the head of each model in a checkpoint: the trained one, and its moving averages."""
    extra = state.get("extra_state") or {}
    for part, name in ((state, "model"), (extra, "ema"), (extra, "ema_fp32_params")):
        if name in part:
            part[name] = with_head(part[name], change(head_of(part[name])))


def _take_rows(head: dict[str, Tensor], rows: list[int]) -> dict[str, Tensor]:
    """A head's outputs in another order; one with another number of outputs stays as it is."""
    return {n: tensor[rows] if len(tensor) == len(rows) else tensor for n, tensor in head.items()}
