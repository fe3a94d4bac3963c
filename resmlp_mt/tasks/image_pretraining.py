"""Pre-training on images without labels by DINO (arXiv 2104.14294), as a fairseq task."""

from dataclasses import dataclass, field
from typing import List  # noqa: UP035  (fairseq knows lists by this name)

import torch
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II
from torch import Tensor, nn

from resmlp_mt.data.augment import Normalise, import_kornia
from resmlp_mt.data.images import ImageDataset
from resmlp_mt.errors import UserError
from resmlp_mt.nn.projection import ProjectionHead
from resmlp_mt.tasks.image_classification import (
    ResMLPImageClassificationConfig,
    ResMLPImageClassificationTask,
)

PRETRAINING_TASK = "image_pretraining"
GLOBAL_VIEWS = 2
# DINO's largest blur for images of 224 pixels, and the smallest images that it changes visibly.
_BLUR, _BLUR_FROM = 2.0 / 224, 64
# What classification has and pre-training does not use.
_UNUSED = (
    *("num_classes", "teacher_model", "scale", "aa", "reprob", "remode"),
    *("mixup", "cutmix", "mixup_prob", "mixup_switch_prob"),
)


@dataclass
class ResMLPImagePretrainingConfig(ResMLPImageClassificationConfig):
    """The flags of classification that concern the data, and DINO's own by their own names."""

    global_crops_scale: List[float] = field(  # noqa: UP006
        default_factory=lambda: [0.25, 1.0],
        metadata={"help": "share of the area that each of the two global crops takes"},
    )
    local_crops_number: int = field(
        default=4,
        metadata={
            "help": "local crops of an image; as the mixing matrix is made for one grid, they are "
            "resized to --image-size too, and cost as much as a global crop"
        },
    )
    local_crops_scale: List[float] = field(  # noqa: UP006
        default_factory=lambda: [0.05, 0.25],
        metadata={"help": "share of the area that a local crop takes"},
    )
    out_dim: int = field(default=65536, metadata={"help": "prototypes K, the head's outputs"})
    head_hidden_dim: int = field(default=2048, metadata={"help": "hidden channels of the head"})
    bottleneck_dim: int = field(
        default=256, metadata={"help": "channels in which the head compares with the prototypes"}
    )
    store_ema: bool = II("ema.store_ema")
    ema_fp32: bool = II("ema.ema_fp32")
    fp16: bool = II("common.fp16")
    bf16: bool = II("common.bf16")


@register_task(PRETRAINING_TASK, dataclass=ResMLPImagePretrainingConfig)
class ResMLPImagePretrainingTask(ResMLPImageClassificationTask):
    """A student that sees all views learns what its moving average says of the global ones.

    The average is fairseq's (--store-ema), at a constant --ema-decay, where DINO's rises to 1. The
    labels of the folders have no part in it: one folder with all images does as well.
    """

    name, criterion = PRETRAINING_TASK, "dino"

    def __init__(self, cfg: ResMLPImagePretrainingConfig):
        check_pretraining_config(cfg)
        super().__init__(cfg)

    def build_head(self, dim: int) -> nn.Module:
        """The model's output layer: (B, C = dim) -> (B, K)."""
        cfg = self.cfg
        return ProjectionHead(dim, cfg.head_hidden_dim, cfg.bottleneck_dim, cfg.out_dim)

    def load_dataset(self, split: str, **kwargs) -> None:
        """Load train, valid or test; but for train, two global crops, always the same.

        Raises:
            UserError: If the images are not there.
        """
        cfg = self.cfg
        train = split == "train"
        views = [(GLOBAL_VIEWS, tuple(cfg.global_crops_scale))]
        if train:
            views.append((cfg.local_crops_number, tuple(cfg.local_crops_scale)))
            self.augment = AugmentViews(cfg)
        self.datasets[split] = ImageDataset(
            self.open_folder(split),
            cfg.image_size,
            train=train,
            ratio=tuple(cfg.ratio),
            interpolation=str(cfg.train_interpolation if train else cfg.interpolation),
            seed=cfg.seed,
            repeats=cfg.aug_repeats if train else 1,
            views=views,
        )

    def train_step(
        self, sample, model, criterion, optimizer, update_num, ignore_grad=False, ema_model=None
    ):
        """Augment, ask the teacher, and go forward and backward as fairseq does."""
        images = sample["net_input"]["images"]
        views = self.augment.to(images.device)(images)
        sample = self._prepare(sample, views, model, ema_model) | {"update_num": update_num}
        result = FairseqTask.train_step(
            self, sample, model, criterion, optimizer, update_num, ignore_grad
        )
        criterion.cancel_gradients(model, update_num)
        return result

    def valid_step(self, sample, model, criterion, ema_model=None):
        """The loss on two global views that are not augmented."""
        views = sample["net_input"]["images"].transpose(0, 1).flatten(0, 1)
        views = self.normalise.to(views.device)(views)
        sample = self._prepare(sample, views, model, ema_model)
        return FairseqTask.valid_step(self, sample, model, criterion)

    def _prepare(self, sample: dict, views: Tensor, model: nn.Module, teacher: nn.Module) -> dict:
        """The sample of `DinoCriterion`. views: (V B, in_chans, H, W), the global ones first."""
        if teacher is None:
            raise UserError(
                "there is no teacher: fairseq-validate does not pass on the moving average; "
                "evaluate the features with 'resmlp-mt probe'"
            )
        size = sample["nsentences"]
        seen = views[: GLOBAL_VIEWS * size].to(next(teacher.parameters()).dtype)
        with torch.no_grad():
            output = teacher.eval()(seen)
        return {
            **sample,
            "net_input": {"images": views.to(next(model.parameters()).dtype)},
            "teacher_output": output.unflatten(0, (GLOBAL_VIEWS, size)),
        }


class AugmentViews(nn.Module):
    """uint8 views -> normalised, augmented views, as DINO does it.

    Every view: flip; jitter in four of five images, by --color-jitter in brightness and contrast,
    half of it in saturation, a quarter in hue; grey in one of five. Then blur: always in the first
    global view, in a tenth of the second, in half of the local ones; a fifth of the second is
    solarised. The blur is that of 224 pixels in proportion, and left out below 64 pixels, where it
    would be less than a pixel wide. Grey images have their flips, blur and solarisation.

    Args:
        cfg: The flags.

    Raises:
        UserError: If kornia is missing.
    """

    def __init__(self, cfg: ResMLPImagePretrainingConfig):
        super().__init__()
        K = import_kornia()
        jitter = cfg.color_jitter
        self.normalise = Normalise(cfg.mean, cfg.std)
        self.flip = K.RandomHorizontalFlip(p=cfg.hflip)
        self.colours = nn.Sequential(
            K.ColorJitter(jitter, jitter, jitter / 2, min(jitter / 4, 0.5), p=0.8),
            K.RandomGrayscale(p=0.2),
        )
        self.blurs = nn.ModuleList(_blur(K, cfg.image_size, p) for p in (1.0, 0.1, 0.5))
        self.solarise = K.RandomSolarize(thresholds=(0.5, 0.5), additions=(0.0, 0.0), p=0.2)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """(B, V, in_chans, H, W) -> (V B, in_chans, H, W) float32, view by view."""
        size = images.size(0)
        images = self.flip(images.transpose(0, 1).flatten(0, 1).float() / 255)
        if images.size(1) == 3:
            images = self.colours(images)
        first, second, local = images.tensor_split((size, GLOBAL_VIEWS * size))
        second = self.solarise(self.blurs[1](second))
        local = self.blurs[2](local) if len(local) else local
        images = torch.cat([self.blurs[0](first), second, local])
        return self.normalise.scale(images.clamp(0, 1))


def _blur(K, size: int, p: float) -> nn.Module:
    if size < _BLUR_FROM:
        return nn.Identity()
    largest = _BLUR * size
    # Three standard deviations to each side, of which kornia draws one for each image.
    side = 2 * round(3 * largest) + 1
    return K.RandomGaussianBlur((side, side), (largest / 20, largest), p=p)


def check_pretraining_config(cfg: ResMLPImagePretrainingConfig) -> None:
    """Refuse flags that contradict each other or mean nothing.

    Raises:
        UserError: Naming the flag.
    """
    if not cfg.store_ema:
        raise UserError(
            "DINO's teacher is the student's moving average: add --store-ema --ema-decay 0.996"
        )
    if (cfg.fp16 or cfg.bf16) and not cfg.ema_fp32:
        raise UserError(
            f"--{'fp16' if cfg.fp16 else 'bf16'} rounds the teacher's small steps to nothing: add "
            "--ema-fp32"
        )
    for name in ("global_crops_scale", "local_crops_scale"):
        scale = cfg[name]
        if len(scale) != 2 or not 0 < scale[0] <= scale[1] <= 1:
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} takes two rising numbers up to 1, as 0.25,1.0; not {scale}")
    if cfg.local_crops_number < 0:
        raise UserError(f"--local-crops-number cannot be negative ({cfg.local_crops_number})")
    defaults = ResMLPImagePretrainingConfig()
    for name in _UNUSED:
        if cfg[name] != getattr(defaults, name):
            raise UserError(f"--{name.replace('_', '-')} has no part in --task {PRETRAINING_TASK}")
