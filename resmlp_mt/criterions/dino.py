"""The loss of DINO: self-distillation without labels (arXiv 2104.14294)."""

from dataclasses import dataclass, field

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from resmlp_mt.errors import UserError


@dataclass
class DinoCriterionConfig(FairseqDataclass):
    """The flags of the loss; DINO's names and defaults."""

    student_temp: float = field(default=0.1, metadata={"help": "temperature of the student"})
    teacher_temp: float = field(
        default=0.04, metadata={"help": "temperature of the teacher, after its warm-up"}
    )
    warmup_teacher_temp: float = field(
        default=0.04,
        metadata={
            "help": "the temperature at the start; lower it if the loss does not fall at first"
        },
    )
    warmup_teacher_temp_updates: int = field(
        default=0,
        metadata={"help": "updates until the temperature is --teacher-temp, in equal steps"},
    )


@register_criterion("dino", dataclass=DinoCriterionConfig)
class DinoCriterion(FairseqCriterion):
    """Cross-entropy between two views of an image, to base e, per image.

    q = softmax((t - c) / T_t) of the teacher's output t on each global view, p = softmax(s / T_s)
    of the student's output s on every view. The loss is the mean of -sum_k q_i[k] log p_j[k] over
    all pairs of a global view i and another view j. The centre c keeps the teacher from giving one
    prototype to all images. The low temperature T_t keeps it from giving all prototypes alike.
    """

    def __init__(self, cfg: DinoCriterionConfig, task):
        super().__init__(task)
        for name in ("student_temp", "teacher_temp", "warmup_teacher_temp"):
            if getattr(cfg, name) <= 0:
                flag = name.replace("_", "-")
                raise UserError(f"--{flag} must be positive, not {getattr(cfg, name)}")
        self.cfg = cfg

    def teacher_temp(self, update_num: int) -> float:
        """T_t of an update, counted from 0."""
        cfg = self.cfg
        updates = cfg.warmup_teacher_temp_updates
        done = min(1.0, update_num / updates) if updates > 0 else 1.0
        return cfg.warmup_teacher_temp + (cfg.teacher_temp - cfg.warmup_teacher_temp) * done

    def forward(self, model, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """The loss of a batch.

        Args:
            model: The student: V B images, view by view, -> (V B, K).
            sample: "net_input"; "teacher_output" (G, B, K), of the first G views; "centre" (K,),
                which is taken from it; in training also "update_num". Validation is at the final
                temperature.
            reduce: Sum over the batch.

        Returns:
            The loss, the number of images B, and what to log.
        """
        if "teacher_output" not in sample:
            raise UserError("--criterion dino goes with --task image_pretraining alone")
        output = sample["teacher_output"].float()
        size = output.size(1)
        student = model(**sample["net_input"]).float().unflatten(0, (-1, size))
        cfg = self.cfg
        temp = self.teacher_temp(sample["update_num"]) if model.training else cfg.teacher_temp
        log_q = ((output - sample["centre"]) / temp).log_softmax(-1)
        log_p = (student / cfg.student_temp).log_softmax(-1)
        loss = cross_entropy(log_q.exp(), log_p)
        log = {
            "loss": loss.detach().sum(),
            "nsentences": size,
            "ntokens": size,
            "sample_size": size,
        }
        log |= measure_spread(log_q)
        return (loss.sum() if reduce else loss), size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict]) -> None:
        """Log means per image: the loss, the teacher's entropy, the student's divergence from
        it (kl), and how much the teacher's output tells of the image (information).

        A collapsed teacher gives the same to all images: its information is 0.
        """
        size = sum(log["sample_size"] for log in logging_outputs)
        means = {
            name: sum(log[name] for log in logging_outputs) / size
            for name in ("loss", "teacher_entropy", "information")
        }
        means["kl"] = means["loss"] - means["teacher_entropy"]
        for name, mean in means.items():
            metrics.log_scalar(name, mean, size, round=4)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Every entry is a sum."""
        return True


def cross_entropy(q: Tensor, log_p: Tensor) -> Tensor:
    """The mean of -sum_k q_i[k] log p_j[k] over all pairs of views i != j.

    Args:
        q: The teacher's probabilities on global views. (G, B, K).
        log_p: The student's log-probabilities on all views, those G first. (V, B, K).

    Returns:
        Shape: (B,).

    Raises:
        ValueError: If there is but one view.
    """
    pairs = len(q) * (len(log_p) - 1)
    if not pairs:
        raise ValueError("DINO compares views: one alone has no other to be compared with")
    # Sum over j first: then no tensor needs a dimension for pairs.
    others = log_p.sum(0) - log_p[: len(q)]
    return -(q * others).sum((0, 2)) / pairs


@torch.no_grad()
def measure_spread(log_q: Tensor) -> dict[str, Tensor]:
    """Measures of a collapse, summed over the images.

    Args:
        log_q: The teacher's log-probabilities. (G, B, K).

    Returns:
        "teacher_entropy" H(q), between 0 and log K; "information" H(mean of q over the batch) -
        H(q), between 0 and log B: 0 if all images have the same q.
    """
    q = log_q.exp()
    entropy = -(q * log_q).sum(-1).mean()
    mean = q.mean(1)
    spread = -torch.special.xlogy(mean, mean).sum(-1).mean()
    size = log_q.size(1)
    return {"teacher_entropy": entropy * size, "information": (spread - entropy) * size}
