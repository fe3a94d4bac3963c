"""Cross-entropy for images, with smoothed and mixed targets and hard-label distillation."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from resmlp_mt.errors import UserError


@dataclass
class ImageClassificationCriterionConfig(FairseqDataclass):
    """The flags of the loss."""

    smoothing: float = field(
        default=0.1, metadata={"help": "label smoothing: this share is spread over all classes"}
    )
    distillation_alpha: float = field(
        default=0.5, metadata={"help": "the teacher's share of the loss, with --teacher-model"}
    )


@register_criterion("image_classification", dataclass=ImageClassificationCriterionConfig)
class ImageClassificationCriterion(FairseqCriterion):
    """Cross-entropy to base e, per image.

    With a teacher: (1 - alpha) CE(student, target) + alpha CE(student, teacher's class), the hard
    distillation of DeiT (arXiv 2012.12877, equation 3), both terms on one head.
    """

    def __init__(self, task, smoothing: float, distillation_alpha: float):
        super().__init__(task)
        if not 0 <= smoothing < 1:
            raise UserError(f"--smoothing must be in [0, 1), not {smoothing}")
        if not 0 <= distillation_alpha <= 1:
            raise UserError(f"--distillation-alpha must be in [0, 1], not {distillation_alpha}")
        self.smoothing = smoothing
        self.alpha = distillation_alpha

    def forward(self, model, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """The loss of a batch.

        Args:
            model: Images -> logits (B, K).
            sample: "net_input", "target" (B,); in training also "soft_target" (B, K), the share of
                each class, and with a teacher "teacher_target" (B,); in validation it may have
                "real_target", which classes are right for each image, (B, K) of booleans.
            reduce: Sum over the batch.

        Returns:
            The loss, the number of images B, and what to log.
        """
        logits = model(**sample["net_input"]).float()
        # Plain cross-entropy in validation, so that losses of all recipes can be compared.
        smoothing = self.smoothing if model.training else 0.0
        target = sample.get("soft_target", sample["target"])
        loss = F.cross_entropy(logits, target, reduction="none", label_smoothing=smoothing)
        if "teacher_target" in sample:
            taught = F.cross_entropy(logits, sample["teacher_target"], reduction="none")
            loss = (1 - self.alpha) * loss + self.alpha * taught
        loss = loss.sum() if reduce else loss
        size = sample["target"].numel()
        log = {
            "loss": loss.detach().sum(),
            "nsentences": size,
            "ntokens": size,
            "sample_size": size,
        }
        if not model.training:
            log |= count_hits(logits, sample["target"])
            if "real_target" in sample:
                log |= count_real_hits(logits, sample["real_target"])
        return loss, size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Log the mean loss and, in validation, top-1 and top-5 accuracy in percent."""
        size = sum(log["sample_size"] for log in logging_outputs)
        loss = sum(log["loss"] for log in logging_outputs)
        metrics.log_scalar("loss", loss / size, size, round=4)
        counted = dict.fromkeys(("top1", "top5", "ema_top1", "ema_top5"), size)
        if "real_images" in logging_outputs[0]:
            real = sum(log["real_images"] for log in logging_outputs)
            counted |= dict.fromkeys(("real_top1", "real_top5"), real)
        for name, images in counted.items():
            if name in logging_outputs[0] and images:
                hits = sum(log[name] for log in logging_outputs)
                metrics.log_scalar(name, 100 * hits / images, images, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Every entry is a sum."""
        return True


def count_hits(logits: Tensor, target: Tensor, prefix: str = "") -> dict[str, Tensor]:
    """Count the targets that are the first guess, or among the first five. Logits: (B, K)."""
    right = torch.zeros_like(logits, dtype=torch.bool).scatter(1, target.unsqueeze(1), True)
    return _count(logits, right, prefix)


def count_real_hits(logits: Tensor, right: Tensor) -> dict[str, Tensor]:
    """The same where several classes are right, or none: such an image does not count.

    Args:
        logits: (B, K).
        right: Which classes are. (B, K), booleans.
    """
    return _count(logits, right, "real_") | {"real_images": right.any(1).sum()}


def _count(logits: Tensor, right: Tensor, prefix: str) -> dict[str, Tensor]:
    hits = right.gather(1, logits.topk(min(5, logits.size(1)), dim=1).indices)
    return {f"{prefix}top1": hits[:, 0].sum(), f"{prefix}top5": hits.any(1).sum()}
