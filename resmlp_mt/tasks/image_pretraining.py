"""Pre-training on images without labels by DINO (arXiv 2104.14294), as a fairseq task."""

from dataclasses import dataclass, field
from typing import List  # noqa: UP035  (fairseq knows lists by this name)

import torch
from fairseq.tasks import register_task
from omegaconf import II
from torch import Tensor, nn

from resmlp_mt.data.crops import RandomPart, Views
from resmlp_mt.data.views import GLOBAL_VIEWS, AugmentViews
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import PRETRAINING
from resmlp_mt.nn.projection import ProjectionHead
from resmlp_mt.tasks.image_dataset import ImageDataset
from resmlp_mt.tasks.images import ImageTask, ImageTaskConfig, check_range


@dataclass
class ResMLPImagePretrainingConfig(ImageTaskConfig):
    """The flags of the images, and DINO's own by their own names; epochs counted in updates."""

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
    center_momentum: float = field(
        default=0.9, metadata={"help": "share of the old centre in the teacher's new one"}
    )
    freeze_last_layer_updates: int = field(
        default=0, metadata={"help": "updates at the start that leave the prototypes as they are"}
    )
    store_ema: bool = II("ema.store_ema")
    ema_fp32: bool = II("ema.ema_fp32")
    fp16: bool = II("common.fp16")
    bf16: bool = II("common.bf16")


@register_task(PRETRAINING, dataclass=ResMLPImagePretrainingConfig)
class ResMLPImagePretrainingTask(ImageTask):
    """A student that sees all views learns what its moving average says of the global ones.

    The average is fairseq's (--store-ema), at a constant --ema-decay, where DINO's rises to 1. The
    labels of the folders have no part in it: one folder with all images does as well.
    """

    name, criterion = PRETRAINING, "dino"

    def __init__(self, cfg: ResMLPImagePretrainingConfig):
        super().__init__(cfg)
        check_pretraining(cfg)

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
        views = [(GLOBAL_VIEWS, cfg.global_crops_scale)]
        if train:
            views.append((cfg.local_crops_number, cfg.local_crops_scale))
            self.augment = AugmentViews(cfg, cfg.mean, cfg.std, cfg.image_size)
        how = tuple(cfg.ratio), str(cfg.train_interpolation if train else cfg.interpolation)
        parts = [(n, RandomPart(cfg.image_size, tuple(scale), *how)) for n, scale in views]
        self.datasets[split] = ImageDataset(
            self.open_folder(split),
            Views(parts),
            train=train,
            seed=cfg.seed,
            repeats=cfg.aug_repeats if train else 1,
        )

    def train_step(
        self, sample, model, criterion, optimizer, update_num, ignore_grad=False, ema_model=None
    ):
        """Augment, ask the teacher, and go forward and backward as fairseq does.

        The head's centre then takes its part of the teacher's output, and its prototypes lose
        their gradient in the first updates.
        """
        images = sample["net_input"]["images"]
        views = self.augment.to(images.device)(images)
        sample = self._prepare(sample, views, model, ema_model) | {"update_num": update_num}
        result = super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)
        output = sample["teacher_output"]
        if ignore_grad:  # fairseq's filling for a worker that has no batch left
            output = output[:, :0]
        model.head.update_centre(output, self.cfg.center_momentum)
        if update_num < self.cfg.freeze_last_layer_updates:
            model.head.rest_prototypes()
        return result

    def valid_step(self, sample, model, criterion, ema_model=None):
        """The loss on two global views that are not augmented."""
        views = sample["net_input"]["images"].transpose(0, 1).flatten(0, 1)
        views = self.normalise.to(views.device)(views)
        sample = self._prepare(sample, views, model, ema_model)
        return super().valid_step(sample, model, criterion)

    def _prepare(self, sample: dict, views: Tensor, model: nn.Module, teacher: nn.Module) -> dict:
        """The sample of `DinoCriterion`. views: (V B, in_chans, H, W), the global ones first."""
        if teacher is None:
            raise UserError(
                "there is no teacher: fairseq-validate does not pass on the moving average; "
                "evaluate the features with 'resmlp-mt study probe'"
            )
        size = sample["nsentences"]
        seen = views[: GLOBAL_VIEWS * size].to(next(teacher.parameters()).dtype)
        with torch.no_grad():
            output = teacher.eval()(seen)
        return {
            **sample,
            "net_input": {"images": views.to(next(model.parameters()).dtype)},
            "teacher_output": output.unflatten(0, (GLOBAL_VIEWS, size)),
            "centre": model.head.centre,
        }


def check_pretraining(cfg: ResMLPImagePretrainingConfig) -> None:
    """Refuse flags of pre-training that contradict each other or mean nothing.

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
    check_range("global-crops-scale", cfg.global_crops_scale, 1.0)
    check_range("local-crops-scale", cfg.local_crops_scale, 1.0)
    if cfg.local_crops_number < 0:
        raise UserError(f"--local-crops-number cannot be negative ({cfg.local_crops_number})")
    if not 0 <= cfg.center_momentum < 1:
        raise UserError(f"--center-momentum must be in [0, 1), not {cfg.center_momentum}")
