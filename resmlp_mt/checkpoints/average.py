"""The mean of several checkpoints of one training run."""

import logging
import math
from pathlib import Path

import torch
from tqdm import tqdm

from resmlp_mt.checkpoints.pack import moving_average, save_weights
from resmlp_mt.compat.checkpoints import load_checkpoint
from resmlp_mt.data.identity import Identity
from resmlp_mt.data.image_folder import name_differences
from resmlp_mt.errors import UserError, name_some
from resmlp_mt.files.finding import LAST, best_checkpoints, is_exported, numbered_checkpoints
from resmlp_mt.files.kinds import is_of_images
from resmlp_mt.files.output import prepare_target, refuse_overwriting, whole_file

logger = logging.getLogger(__name__)


def find_checkpoints(folder: Path, count: int) -> list[Path]:
    """The numbered checkpoints of a training folder, oldest first.

    Those of epochs, or where there are fewer than `count`, those of --save-interval-updates.

    Raises:
        UserError: If there are fewer than `count` of both kinds.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    found = numbered_checkpoints(folder)
    if not found and is_exported(folder):
        raise UserError(f"{folder}: exported, for inference alone; name the folder of the training")
    if not found:
        raise UserError(
            f"{folder}: no numbered checkpoints (checkpoint1.pt ... or checkpoint_1_1000.pt ...); "
            "train without --no-epoch-checkpoints"
        )
    kinds = {"epochs": [], "updates": []}
    for path, ends_epoch in found:
        kinds["epochs" if ends_epoch else "updates"].append(path)
    for paths in kinds.values():
        if 1 <= count <= len(paths):
            return paths
    there = " and ".join(f"{len(paths)} of {kind}" for kind, paths in kinds.items() if paths)
    most, both = max(map(len, kinds.values())), all(kinds.values())
    raise UserError(
        f"{folder} has numbered checkpoints, {there}, but not {count} of a kind; take those with "
        f"'resmlp-mt average {folder} --last {most}'{both * '; for a mean of both name the files'}"
    )


def choose_best(folder: Path, count: int) -> list[Path]:
    """The `count` checkpoints of a training folder with the best validation score, the best first.

    Those with numbers, and those that were kept for their score; --best-checkpoint-metric says
    which score.

    Raises:
        UserError: If there are fewer, or a score is no number.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    scores, seen = {}, set()
    for path in tqdm(_list_kept(folder), desc="read scores", disable=None, leave=False):
        state = load_checkpoint(path)
        history = state.get("optimizer_history") or [{}]
        updates = history[-1].get("num_updates", path)
        if updates in seen:  # the same by another name
            continue
        seen.add(updates)
        score = (state.get("extra_state") or {}).get("val_loss")
        if score is None:  # it was saved without a validation
            continue
        if not math.isfinite(score):  # which no other is better than
            raise UserError(f"{path}: its validation score is {score}; name others, or use --last")
        sign = -1 if state["cfg"].checkpoint.maximize_best_checkpoint_metric else 1
        scores[path] = sign * score
    if not 1 <= count <= len(scores):
        taken = f"take 'resmlp-mt average {folder} --best {len(scores)}'"
        raise UserError(
            f"{folder} has {len(scores)} checkpoints with a validation score, not {count}; "
            f"{taken if scores else 'name files'}, or use --last"
        )
    return sorted(scores, key=scores.get)[:count]


def average_checkpoints(paths: list[Path], out: Path, ema: bool = False) -> None:
    """Write the mean of the checkpoints' weights, with the configuration of the last one.

    Weights are written in fp32, whatever they were trained in: rounding a mean to bf16 would lose
    what averaging gains. The optimizer's state is left out; fairseq-generate and fine-tuning take
    the result.

    Args:
        paths: Checkpoints of the same model; summed in double precision.
        out: The file to write.
        ema: Take the moving average that --store-ema kept in each, instead of its weights.

    Raises:
        UserError: If the checkpoints are not of the same model, or of other text or classes, hold
            no moving average or values that are no numbers; or if `out` is one of them, or of what
            a training goes on from.
    """
    target = prepare_target(out)
    refuse_overwriting(out, paths)
    if target.is_file() and target in [target.parent / LAST, *_list_kept(target.parent)]:
        raise UserError(f"{out}: a training goes on from it; write to another file")
    total, state, known = {}, None, {}
    for path in tqdm(paths, desc="average", disable=None, leave=False):
        state = load_checkpoint(path)
        known[path] = _name_trained(path, state)
        first = next(filter(known.get, known), path)
        if told := _tell_others(known[first], known[path]):
            raise UserError(f"{path}: not trained on what {first} was: {told}; leave it out")
        if ema:
            state["model"] = moving_average(state, path)
        weights = {name: tensor.double() for name, tensor in state["model"].items()}
        if total and _shapes(total) != _shapes(weights):
            raise UserError(f"{path} is not of the same model as {paths[0]}")
        for name, tensor in weights.items():
            if not tensor.isfinite().all():
                raise UserError(f"{path}: {name} holds values that are no numbers; leave it out")
        total = {name: total[name] + w if total else w for name, w in weights.items()}
    if untold := [str(path) for path, found in known.items() if found is None]:
        logger.warning("%s: not said what it was trained on, so not compared", name_some(untold))
    last = state["model"]
    for name, tensor in total.items():
        kept = torch.float32 if last[name].is_floating_point() else last[name].dtype
        last[name] = (tensor / len(paths)).to(kept)
    with whole_file(out) as path:
        save_weights(state, path)


def _name_trained(path: Path, state: dict) -> Identity | list[str] | None:
    """The text or the classes that a checkpoint knows. An empty list is of images alone."""
    if is_of_images(state["cfg"].task.get("_name")):
        return list((state.get("task_state") or {}).get("classes") or ())
    return Identity.of_checkpoint(path, state)


def _tell_others(one: Identity | list[str] | None, other: Identity | list[str] | None) -> str:
    """The differences in the knowledge of two checkpoints; empty where none, or neither tells."""
    if isinstance(one, Identity) and isinstance(other, Identity):
        return one.differences(other)
    if one and other and one != other:
        return name_differences(one, other) or "its classes have another order"
    return ""


def _list_kept(folder: Path) -> list[Path]:
    """The checkpoints of a training: those with numbers, and those with the best score."""
    return [path for path, _ in numbered_checkpoints(folder)] + best_checkpoints(folder)


def _shapes(weights: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in weights.items()}
