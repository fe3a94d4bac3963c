"""A task's part in the optimizer of a training."""

from torch import nn

from resmlp_mt.nn.marks import mark_maps


def mark_for_optimizer(model: nn.Module, cfg) -> None:
    """Mark the weights that the optimizer treats apart, which gets them without names.

    Args:
        model: As it was built, before fairseq copies its weights.
        cfg: The model's configuration, which hangs in the whole one; or all flags, which fairseq
            gives to its older models.
    """
    whole = cfg._get_root() if hasattr(cfg, "_get_root") else cfg
    optimizer = getattr(whole, "optimizer", None)
    if getattr(optimizer, "_name", optimizer) == "muon":
        mark_maps(model)
