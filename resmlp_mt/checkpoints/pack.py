"""Checkpoints without the parts that only training needs, and folders with a whole model."""

import io
import shutil
from pathlib import Path

import torch
from omegaconf import OmegaConf

from resmlp_mt.checkpoints.loading import find_companions
from resmlp_mt.compat.checkpoints import find_and_read
from resmlp_mt.data.card import CARD
from resmlp_mt.data.subwords import BESIDE, find_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import CHECKPOINT_NAMES
from resmlp_mt.files.kinds import CLASSIFICATION, is_of_images
from resmlp_mt.files.output import whole_folder


def save_weights(state: dict, path: Path) -> None:
    """Write weights and configuration of a loaded checkpoint, without the optimizer's state.

    fairseq-generate, fine-tuning and `Translator` take the result.
    """
    keep = {
        "cfg": OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True),
        "args": None,
        "model": _store_once(state["model"]),
        # fairseq looks for these in every checkpoint that it loads.
        "optimizer_history": state.get("optimizer_history", []),
        "last_optimizer_state": None,
        "extra_state": {},
        "task_state": state.get("task_state") or {},
    }
    # Through memory: torch hides the error of a full disk behind one of its own.
    buffer = io.BytesIO()
    torch.save(keep, buffer)
    path.write_bytes(buffer.getbuffer())


def moving_average(state: dict, path: Path) -> dict[str, torch.Tensor]:
    """The weights that --store-ema kept in a loaded checkpoint.

    Raises:
        UserError: If there are none.
    """
    extra = state.get("extra_state") or {}
    if "ema" not in extra:
        raise UserError(f"{path}: no moving average in it; train with --store-ema")
    # --ema-fp32 keeps a finer copy beside a half precision model, with weights of an earlier head.
    fine = extra.get("ema_fp32_params", {})
    return {name: fine.get(name, weight) for name, weight in extra["ema"].items()}


def _store_once(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Let equal tensors, such as tied embeddings, share their memory and place in the file."""
    kept: dict[tuple, list[torch.Tensor]] = {}
    shared = {}
    for name, tensor in weights.items():
        alike = kept.setdefault((tensor.shape, tensor.dtype), [])
        twin = next((other for other in alike if torch.equal(other, tensor)), None)
        if twin is None:
            alike.append(tensor)
        shared[name] = tensor if twin is None else twin
    return shared


def pack_model(model: str | Path, out: Path, half: bool) -> None:
    """Make a folder with all that a model needs: weights, and for text dictionaries and subwords.

    Args:
        model: A checkpoint, or a folder that `Translator` or `Classifier.from_pretrained` take.
        out: The folder to make. A folder that was packed before is replaced; its card is kept.
        half: Store the weights in fp16, at half the size.

    Raises:
        UserError: If something is missing, or `out` holds something else.
    """
    checkpoint, state = find_and_read(model)
    companions = []
    if is_of_images(state["cfg"].task.get("_name")):
        state["cfg"].task.teacher_model = ""
        if state["cfg"].task._name != CLASSIFICATION and "ema" in (state.get("extra_state") or {}):
            state["model"] = moving_average(state, checkpoint)  # DINO's teacher, the better one
    else:
        folder, source, target = find_companions(checkpoint, state)
        state["cfg"].task.update(source_lang=source, target_lang=target)
        for lang in (source, target):
            companions += [folder / f"dict.{lang}.txt", find_subwords(folder, lang)]
        companions += filter(Path.is_file, [folder / CARD])
    # Needed files lie beside the checkpoint; the paths of its training mean nothing elsewhere.
    state["cfg"].task.data = "."
    state["cfg"].common.update(user_dir=None, log_file=None, tensorboard_logdir=None)
    state["cfg"].checkpoint.save_dir = "checkpoints"
    if half:
        state["model"] = {
            n: t.half() if t.is_floating_point() else t for n, t in state["model"].items()
        }
    with whole_folder(out, CHECKPOINT_NAMES[0], *BESIDE) as new:
        save_weights(state, new / CHECKPOINT_NAMES[0])
        for companion in companions:
            shutil.copy(companion, new)
