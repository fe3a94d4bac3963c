"""What is trained, in which order, and how the settings of each model are chosen.

A stage is one data set and one size. For every model in it the learning rate is chosen first, at
the middle dropout, then the dropout at that rate: each by the loss on the validation set, after
short trainings with one seed. With what was chosen, the model is trained to convergence with every
seed. All models get the same values to choose from, the same updates and the same batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

_PRE_NORM = "--encoder-normalize-before --decoder-normalize-before"


@dataclass(frozen=True)
class Stage:
    """A data set, a size, and how long its trainings are.

    Attributes:
        name: What its runs are called.
        data: Name of the data-bin folder.
        size: Flags of the sizes that all models take.
        models: {name: flags} of the models that are compared.
        recipe: Flags that all trainings share.
        rates, dropouts: What is chosen from. The middle dropout is the one that rates are tried at.
        pilot_updates, updates: Of the trainings to choose by, and of those that are compared.
        seeds: Of the latter.
    """

    name: str
    data: str
    size: str
    models: dict[str, str]
    recipe: str
    rates: tuple[str, ...]
    dropouts: tuple[str, ...]
    pilot_updates: int
    updates: int
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """One training. What is not chosen yet is None."""

    stage: str
    purpose: str  # rate, dropout or final
    model: str
    lr: str | None
    dropout: str | None
    updates: int
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return "-".join(str(getattr(self, field.name)) for field in fields(self))

    @property
    def known(self) -> bool:
        """Whether all of it has been chosen."""
        return None not in (self.lr, self.dropout)


_RECIPE = """--share-all-embeddings --max-source-positions 128 --max-target-positions 128
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --optimizer adam --adam-betas (0.9,0.98) --lr-scheduler inverse_sqrt
    --max-tokens 4096 --bf16 --keep-last-epochs 10"""
_RATES, _DROPOUTS = ("2e-3", "3.5e-3", "5e-3"), ("0.1", "0.2", "0.3")


def _sizes(width: int, hidden: int, layers: int, heads: int) -> str:
    return (
        " ".join(
            f"--{side}-embed-dim {width} --{side}-ffn-embed-dim {hidden} --{side}-layers {layers}"
            for side in ("encoder", "decoder")
        )
        + f" --decoder-attention-heads {heads}"
    )


def _models(heads: int) -> dict[str, str]:
    transformer = f"--arch transformer --encoder-attention-heads {heads}"
    return {
        "resmlp_plus": "--arch resmlp_plus_tiny",
        "transformer_pre": f"{transformer} {_PRE_NORM}",
        "transformer_post": transformer,
    }


STAGES = [
    Stage(
        "multi30k-128", "multi30k", _sizes(128, 256, 4, 4), _models(4), _RECIPE,
        _RATES, _DROPOUTS, pilot_updates=2000, updates=8000, seeds=(1, 2, 3),
    ),
    Stage(
        "multi30k-256", "multi30k", _sizes(256, 512, 3, 4), _models(4), _RECIPE,
        ("1e-3", "2e-3", "3.5e-3"), _DROPOUTS, pilot_updates=2000, updates=8000, seeds=(1, 2, 3),
    ),
]  # fmt: skip


def list_runs(stage: Stage, losses: dict[Run, float]) -> Iterator[Run]:
    """All runs of a stage, in order; those whose settings depend on others have None in them.

    Args:
        stage: The stage.
        losses: The validation loss of each run that is done. A diverged one has infinity.
    """
    middle = stage.dropouts[len(stage.dropouts) // 2]

    def best(tried: list[Run]) -> Run | None:
        return min(tried, key=losses.__getitem__) if all(run in losses for run in tried) else None

    chosen = {}
    for model in stage.models:
        settings = stage.pilot_updates, 1
        rates = [Run(stage.name, "rate", model, lr, middle, *settings) for lr in stage.rates]
        yield from rates
        fastest = best(rates)
        dropouts = [
            Run(stage.name, "dropout", model, fastest and fastest.lr, dropout, *settings)
            for dropout in stage.dropouts
            if dropout != middle
        ]
        yield from dropouts
        chosen[model] = fastest and best([fastest, *dropouts])
    for seed in stage.seeds:
        for model, choice in chosen.items():
            settings = (choice.lr, choice.dropout) if choice else (None, None)
            yield Run(stage.name, "final", model, *settings, stage.updates, seed)


def list_flags(stage: Stage, run: Run) -> list[str]:
    """What fairseq-train is called with, but for the data and the folders."""
    warmup = min(run.updates // 4, 2000)
    return (
        f"{stage.models[run.model]} {stage.size} {stage.recipe} --lr {run.lr} "
        f"--dropout {run.dropout} --warmup-updates {warmup} --max-update {run.updates} "
        f"--seed {run.seed}"
    ).split()
