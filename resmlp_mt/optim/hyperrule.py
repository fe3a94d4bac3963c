"""The learning rate of BiT's HyperRule (arXiv 1912.11370, section 3.3)."""

from dataclasses import dataclass, field
from typing import List  # noqa: UP035  (fairseq knows lists by this name)

from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II

from resmlp_mt.errors import UserError


@dataclass
class HyperRuleConfig(FairseqDataclass):
    """Flags of `--lr-scheduler hyperrule`."""

    supports: List[int] = field(  # noqa: UP006
        default_factory=lambda: [100, 200, 300, 400, 500],
        metadata={
            "help": "updates: the first ends the warm-up from 0, each later one divides the "
            "learning rate by 10, and training ends with the last"
        },
    )
    lr: List[float] = II("optimization.lr")  # noqa: UP006


@register_lr_scheduler("hyperrule", dataclass=HyperRuleConfig)
class HyperRuleSchedule(FairseqLRScheduler):
    """A linear warm-up, and a tenth of the rate after each further support; update by update.

    Raises:
        UserError: If the supports do not rise.
    """

    def __init__(self, cfg: HyperRuleConfig, optimizer):
        super().__init__(cfg, optimizer)
        supports = [0, *cfg.supports]
        if len(supports) < 3 or any(b <= a for a, b in zip(supports, supports[1:], strict=False)):
            raise UserError(
                f"--supports {list(cfg.supports)}: give two updates or more, each above the last, "
                "as 500,3000,6000,9000,10000"
            )
        self.step_update(0)

    def find_rate(self, update: int) -> float:
        """The learning rate of an update, the first being 0."""
        first, *others = self.cfg.supports
        if update < first:
            return self.cfg.lr[0] * update / first
        passed = sum(support < update for support in others[:-1])
        return self.cfg.lr[0] / 10**passed

    def step_begin_epoch(self, epoch: int) -> float:
        """Leave the rate as the last update set it."""
        return self.optimizer.get_lr()

    def step_update(self, num_updates: int) -> float:
        """Set the rate of the update after so many."""
        self.optimizer.set_lr(self.find_rate(num_updates))
        return self.optimizer.get_lr()
