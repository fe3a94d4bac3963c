"""The common part of the tasks of images: their data, their pixels, and the loading of models."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, List, Optional  # noqa: UP035  (fairseq knows types by these names)

from fairseq.dataclass import ChoiceEnum
from omegaconf import II
from torch import nn

from resmlp_mt.data.augment import Normalise
from resmlp_mt.data.crops import CROP_MODES, LARGEST, LEAST_KEPT, Cut
from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.errors import UserError
from resmlp_mt.models.presets import IMAGENET
from resmlp_mt.nn.marks import mark_undecayed
from resmlp_mt.tasks.augmentation import AugmentConfig
from resmlp_mt.tasks.batches import AllInBatches
from resmlp_mt.tasks.optimizers import mark_for_optimizer


@dataclass
class ImageTaskConfig(AugmentConfig):
    """The flags of the images, for whatever task; timm's names.

    Where `image_size`, `mean`, `std`, `crop_pct` and `interpolation` are not given, the preset of
    --arch says what its images are like. ImageNet's are taken for an architecture that says
    nothing.
    """

    data: str = field(
        default="", metadata={"help": "folder or .tar with train/ and val/, a folder per class"}
    )
    image_size: Optional[int] = field(  # noqa: UP045
        default=None,
        metadata={"help": "side of the images in pixels (default: the preset's, mostly 224)"},
    )
    in_chans: int = field(default=3, metadata={"help": "3: colour, 1: grey"})
    mean: Optional[List[float]] = field(  # noqa: UP006, UP045
        default=None,
        metadata={"help": "mean of each channel, as 0.5,0.5,0.5 (default: the preset's)"},
    )
    std: Optional[List[float]] = field(  # noqa: UP006, UP045
        default=None,
        metadata={"help": "standard deviation of each channel (default: the preset's)"},
    )
    ratio: List[float] = field(  # noqa: UP006
        default_factory=lambda: [3 / 4, 4 / 3],
        metadata={"help": "aspect ratio of a training crop, as 0.75,1.33"},
    )
    train_interpolation: ChoiceEnum(["bicubic", "bilinear", "random"]) = field(
        default="bicubic", metadata={"help": "how training crops are resized"}
    )
    interpolation: Optional[ChoiceEnum(["bicubic", "bilinear"])] = field(  # noqa: UP045
        default=None,
        metadata={"help": "how validation images are resized (default: the preset's)"},
    )
    crop_pct: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "validation images are resized to size / crop-pct, then cut to size "
            "(default: the preset's)"
        },
    )
    crop_mode: ChoiceEnum(list(CROP_MODES)) = field(
        default="center",
        metadata={
            "help": "validation images that are no squares: center cuts the longer side, squash "
            "brings the whole image to a square"
        },
    )
    aug_repeats: int = field(
        default=1, metadata={"help": "repeated augmentation: samples of an image in an epoch"}
    )
    filter_bias_and_bn: bool = field(
        default=False,
        metadata={
            "help": "no weight decay for biases, norms and LayerScale, as in timm (--optimizer "
            "adamw, muon or lamb)"
        },
    )
    seed: int = II("common.seed")
    finetune_from_model: Optional[str] = II("checkpoint.finetune_from_model")  # noqa: UP045


class ImageTask(AllInBatches):
    """A task on folders of images. It builds the head that its loss needs.

    Attributes:
        name: The registered name of the task.
        criterion: The only loss that knows the task's samples.
    """

    name: ClassVar[str]
    criterion: ClassVar[str]
    # With --store-ema, fairseq hands the averaged model to the steps.
    uses_ema = True

    def __init__(self, cfg: ImageTaskConfig):
        super().__init__(cfg)
        for name, value in IMAGENET.items():
            if getattr(cfg, name) is None:
                setattr(cfg, name, value)
        check_images(cfg)
        self.image_size, self.in_chans = cfg.image_size, cfg.in_chans
        self.normalise = Normalise(cfg.mean, cfg.std)
        # The part of an image that evaluation sees.
        how = str(cfg.interpolation), str(cfg.crop_mode)
        self.cut = Cut(cfg.in_chans, cfg.image_size, cfg.crop_pct, *how)
        self.augment = None
        self._folders = {}

    @classmethod
    def setup_task(cls, cfg: ImageTaskConfig, **kwargs):
        """Make the task; nothing is read before it is needed, so that no data need be there."""
        return cls(cfg)

    def open_folder(self, split: str) -> ImageFolder:
        """The images of a split; a large folder takes a while to list, so it is listed once."""
        if split not in self._folders:
            self._folders[split] = ImageFolder(self.cfg.data, split, self.in_chans)
        return self._folders[split]

    def build_head(self, dim: int) -> nn.Module:
        """The model's output layer, which reads (B, C = dim)."""
        raise NotImplementedError

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model, which takes weights of other sizes only where that makes sense.

        A resumed training goes on with the optimizer's state, which fits nothing else.
        """
        model = super().build_model(cfg, from_checkpoint)
        tunes = bool(getattr(self.cfg, "finetune_from_model", None)) and not from_checkpoint
        model.resizes, model.restarts_head = from_checkpoint or tunes, tunes
        mark_for_optimizer(model, cfg)
        if self.cfg.filter_bias_and_bn:
            mark_undecayed(model)
        return model

    def train_step(self, sample, model, criterion, optimizer, *args, **kwargs):
        """Go forward and backward as fairseq does."""
        if self.cfg.filter_bias_and_bn:
            _check_groups(optimizer)
        return super().train_step(sample, model, criterion, optimizer, *args, **kwargs)

    def build_criterion(self, cfg, *args, **kwargs):
        """Build the loss; another one would not know what the task adds to a sample."""
        if cfg._name != self.criterion:
            raise UserError(
                f"--task {self.name} needs --criterion {self.criterion}, not {cfg._name}"
            )
        return super().build_criterion(cfg, *args, **kwargs)

    def max_positions(self) -> None:
        """Images have no length."""
        return None

    @property
    def source_dictionary(self) -> None:
        """Images have no dictionary."""
        return None

    @property
    def target_dictionary(self) -> None:
        """The output of a head has no dictionary."""
        return None


def _check_groups(optimizer) -> None:
    if all(group.get("weight_decay") for group in optimizer.param_groups):
        raise UserError(
            "--filter-bias-and-bn: the optimizer lets all weights decay; take --optimizer adamw, "
            "muon or lamb, and with --fp16 --fp16-no-flatten-grads too"
        )


def check_images(cfg: ImageTaskConfig) -> None:
    """Refuse flags of images that contradict each other or mean nothing.

    Raises:
        UserError: Naming the flag.
    """
    if not 0 < cfg.image_size <= LARGEST:
        raise UserError(f"--image-size must be from 1 to {LARGEST:,}, not {cfg.image_size}")
    if cfg.in_chans not in (1, 3):
        raise UserError(f"--in-chans must be 1 (grey) or 3 (colour), not {cfg.in_chans}")
    for name in ("mean", "std"):
        values = getattr(cfg, name)
        if len(values) != cfg.in_chans:
            raise UserError(
                f"--{name} has {len(values)} values, the images --in-chans {cfg.in_chans}: give "
                f"one for each, as --{name} {','.join(['0.5'] * cfg.in_chans)}"
            )
    if not all(map(math.isfinite, cfg.mean)):
        raise UserError(f"--mean takes numbers, not {list(cfg.mean)}")
    if not all(0 < value < math.inf for value in cfg.std):
        raise UserError(f"--std must be positive, not {list(cfg.std)}")
    if not LEAST_KEPT <= cfg.crop_pct <= 1:
        raise UserError(f"--crop-pct must be from {LEAST_KEPT} to 1, not {cfg.crop_pct}")
    check_range("ratio", cfg.ratio)
    if cfg.aug_repeats < 1:
        raise UserError(f"--aug-repeats must be at least 1, not {cfg.aug_repeats}")


def check_range(flag: str, values: List[float], limit: float = float("inf")) -> None:  # noqa: UP006
    """Refuse what is no range of positive numbers up to a limit.

    Raises:
        UserError: Naming the flag.
    """
    if len(values) != 2 or not 0 < values[0] <= values[1] <= limit:
        raise UserError(f"--{flag} takes two rising numbers, as 0.08,1.0; not {list(values)}")
