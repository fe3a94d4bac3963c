"""Image classification as a fairseq task: folders of images in, top-1 and top-5 out."""

from dataclasses import dataclass, field
from typing import List, Optional  # noqa: UP035  (fairseq knows types by these names)

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II
from torch import nn

from resmlp_mt.criterions.image_classification import count_hits
from resmlp_mt.data.augment import Augment, AugmentConfig, AugmentPicture, Normalise
from resmlp_mt.data.image_files import ImageFolder
from resmlp_mt.data.images import ImageDataset
from resmlp_mt.errors import UserError
from resmlp_mt.nn.patches import init_linear
from resmlp_mt.tasks.teacher import load_teacher

IMAGE_TASK = "image_classification"
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass
class ResMLPImageClassificationConfig(AugmentConfig):
    """The flags of the data; timm's names."""

    data: str = field(
        default="", metadata={"help": "folder or .tar with train/ and val/, a folder per class"}
    )
    image_size: int = field(default=224, metadata={"help": "side of the images in pixels"})
    in_chans: int = field(default=3, metadata={"help": "3: colour, 1: grey"})
    num_classes: int = field(
        default=0, metadata={"help": "outputs of the head; 0: as many as the data has classes"}
    )
    mean: List[float] = field(  # noqa: UP006
        default_factory=lambda: list(IMAGENET_MEAN),
        metadata={"help": "mean of each channel, as 0.5,0.5,0.5"},
    )
    std: List[float] = field(  # noqa: UP006
        default_factory=lambda: list(IMAGENET_STD),
        metadata={"help": "standard deviation of each channel"},
    )
    scale: List[float] = field(  # noqa: UP006
        default_factory=lambda: [0.08, 1.0],
        metadata={"help": "share of the area that a training crop takes, as 0.08,1.0"},
    )
    ratio: List[float] = field(  # noqa: UP006
        default_factory=lambda: [3 / 4, 4 / 3],
        metadata={"help": "aspect ratio of a training crop, as 0.75,1.33"},
    )
    train_interpolation: ChoiceEnum(["bicubic", "bilinear", "random"]) = field(
        default="bicubic", metadata={"help": "how training crops are resized"}
    )
    interpolation: ChoiceEnum(["bicubic", "bilinear"]) = field(
        default="bicubic", metadata={"help": "how validation images are resized"}
    )
    crop_pct: float = field(
        default=0.9,
        metadata={"help": "validation images are resized to size / crop-pct, then cut to size"},
    )
    aug_repeats: int = field(
        default=1, metadata={"help": "repeated augmentation: samples of an image in an epoch"}
    )
    teacher_model: str = field(
        default="",
        metadata={"help": "distil from: a checkpoint of this task, or the name of a timm model"},
    )
    seed: int = II("common.seed")
    finetune_from_model: Optional[str] = II("checkpoint.finetune_from_model")  # noqa: UP045


@register_task(IMAGE_TASK, dataclass=ResMLPImageClassificationConfig)
class ResMLPImageClassificationTask(FairseqTask):
    """Trains classifiers on folders of images; class names are kept in the checkpoint."""

    name = criterion = IMAGE_TASK
    # With --store-ema, fairseq hands the averaged model to the steps below.
    uses_ema = True

    def __init__(self, cfg: ResMLPImageClassificationConfig):
        super().__init__(cfg)
        check_config(cfg)
        self.image_size, self.in_chans = cfg.image_size, cfg.in_chans
        self.normalise = Normalise(cfg.mean, cfg.std)
        self.augment = self.teacher = None
        self._folders = {}
        self.state.add_factory("classes", self._find_classes)

    @classmethod
    def setup_task(cls, cfg: ResMLPImageClassificationConfig, **kwargs):
        """Make the task; nothing is read before it is needed, so that no data need be there."""
        return cls(cfg)

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

    def open_folder(self, split: str) -> ImageFolder:
        """The images of a split; a large folder takes a while to list, so it is listed once."""
        if split not in self._folders:
            self._folders[split] = ImageFolder(self.cfg.data, split, self.in_chans)
        return self._folders[split]

    def build_head(self, dim: int) -> nn.Module:
        """The model's output layer: (B, C = dim) -> (B, K)."""
        if not self.num_classes:  # published weights without a head: features alone
            return nn.Identity()
        head = nn.Linear(dim, self.num_classes)
        init_linear(head)
        return head

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model, which takes weights of other sizes only where that makes sense.

        A resumed training goes on with the optimizer's state, which fits nothing else.
        """
        model = super().build_model(cfg, from_checkpoint)
        tunes = bool(getattr(self.cfg, "finetune_from_model", None)) and not from_checkpoint
        model.resizes, model.restarts_head = from_checkpoint or tunes, tunes
        return model

    def build_criterion(self, cfg, *args, **kwargs):
        """Build the loss; another one would not know what the task adds to a sample."""
        if cfg._name != self.criterion:
            raise UserError(
                f"--task {self.name} needs --criterion {self.criterion}, not {cfg._name}"
            )
        return super().build_criterion(cfg, *args, **kwargs)

    def load_dataset(self, split: str, task_cfg=None, **kwargs) -> None:
        """Load train, valid or test.

        Args:
            split: Its name.
            task_cfg: What fairseq-validate gives, and fairseq-train does not: the training images
                are then evaluated like others.

        Raises:
            UserError: If the images are not there, or in other classes than the model's.
        """
        cfg = self.cfg
        folder = self.open_folder(split)
        folder.align(self.classes)
        train = split == "train" and task_cfg is None
        interpolation = str(cfg.train_interpolation if train else cfg.interpolation)
        self.datasets[split] = ImageDataset(
            folder,
            cfg.image_size,
            train=train,
            crop_pct=cfg.crop_pct,
            scale=tuple(cfg.scale),
            ratio=tuple(cfg.ratio),
            interpolation=interpolation,
            seed=cfg.seed,
            repeats=cfg.aug_repeats if train else 1,
            augment=AugmentPicture(cfg, cfg.mean, interpolation) if train else None,
        )
        if train:
            self.augment = Augment(cfg, cfg.mean, cfg.std, self.num_classes)
            if cfg.teacher_model:
                self.teacher = load_teacher(cfg.teacher_model, self)

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
        loss, size, log = super().valid_step(sample, model, criterion)
        if ema_model is not None:
            with torch.no_grad():
                ema_model.eval()
                images = images.to(next(ema_model.parameters()).dtype)
                log |= count_hits(ema_model(images).float(), sample["target"], "ema_")
        return loss, size, log

    def max_positions(self) -> None:
        """Images have no length."""
        return None

    @property
    def source_dictionary(self) -> None:
        """Images have no dictionary."""
        return None

    @property
    def target_dictionary(self) -> None:
        """Classes have names, not a dictionary."""
        return None


def is_for_images(cfg) -> bool:
    """Whether the task of a checkpoint's configuration is one of images."""
    return str(cfg.get("_name")).startswith("image_")


def check_config(cfg: ResMLPImageClassificationConfig) -> None:
    """Refuse flags that contradict each other or mean nothing.

    Raises:
        UserError: Naming the flag.
    """
    if cfg.num_classes < 0:
        raise UserError(f"--num-classes cannot be negative ({cfg.num_classes})")
    if cfg.image_size < 1:
        raise UserError(f"--image-size must be at least 1, not {cfg.image_size}")
    if cfg.in_chans not in (1, 3):
        raise UserError(f"--in-chans must be 1 (grey) or 3 (colour), not {cfg.in_chans}")
    for name in ("mean", "std"):
        values = getattr(cfg, name)
        if len(values) != cfg.in_chans:
            raise UserError(
                f"--{name} has {len(values)} values, the images {cfg.in_chans} channels: give one "
                "for each, as 0.5,0.5,0.5"
            )
    if min(cfg.std) <= 0:
        raise UserError(f"--std must be positive, not {list(cfg.std)}")
    if not 0 < cfg.crop_pct <= 1:
        raise UserError(f"--crop-pct must be above 0 and at most 1, not {cfg.crop_pct}")
    for name, limit in (("scale", 1.0), ("ratio", float("inf"))):
        values = getattr(cfg, name)
        if len(values) != 2 or not 0 < values[0] <= values[1] <= limit:
            raise UserError(f"--{name} takes two rising numbers, as 0.08,1.0; not {list(values)}")
    if cfg.aug_repeats < 1:
        raise UserError(f"--aug-repeats must be at least 1, not {cfg.aug_repeats}")
