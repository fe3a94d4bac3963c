"""Published image weights in, and out: folders with a checkpoint <-> .pth and .safetensors."""

import io
import math
import re
from dataclasses import fields
from pathlib import Path

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.tasks import setup_task
from omegaconf import DictConfig, ListConfig
from safetensors import torch as safetensors

from resmlp_mt.checkpoints.layouts import Family
from resmlp_mt.checkpoints.pack import save_weights
from resmlp_mt.checkpoints.released import check_fit, from_format, measure, recognise, to_format
from resmlp_mt.checkpoints.weight_files import read_weights
from resmlp_mt.compat.checkpoints import load_checkpoint
from resmlp_mt.data.reading import read_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import CHECKPOINT_NAMES, find_checkpoint
from resmlp_mt.files.kinds import CLASSIFICATION
from resmlp_mt.files.output import refuse_overwriting, whole_file, whole_folder
from resmlp_mt.models.presets import IMAGE_PRESETS, default_of
from resmlp_mt.models.resize import resize_weights

# Flags that --arch cannot have, since the weights decide them.
_OVERRIDDEN = {
    "--image-size": "the weights say how large images are; to interpolate them to another size, "
    "give --image-size N apart from --arch",
    "--num-classes": "the weights say how many classes there are; leave --num-classes out, and "
    "give --classes FILE to name them",
}
OUTPUT_SUFFIXES = (".safetensors", ".pth")
# Flags of the task that weights do not tell, of how an image is read; and those of the model that
# are for training alone.
_READING = "in_chans mean std interpolation crop_pct crop_mode square_resize".split()
_OF_TRAINING = ("_name", "dropout", "drop_path")


def import_weights(
    path: Path,
    arch: str,
    out: Path,
    image_size: int | None = None,
    classes: Path | None = None,
    ema: bool | None = None,
) -> str:
    """Make a folder with a classifier from published weights.

    Args:
        path: A file that `read_weights` takes.
        arch: A name in IMAGE_PRESETS. Flags of its model and of the images may follow it, as in
            "resmlp_s12 --embed-dim 64"; not those that the weights tell, --image-size and
            --num-classes.
        out: The folder to make. One that was made before is replaced.
        image_size: Side of the images; those of the weights unless given.
        classes: A text file with the name of a class a line; numbers from 0 unless given.
        ema: Take the moving average that a training saved beside its weights; None: if it is there.

    Returns:
        What was imported, in words.

    Raises:
        UserError: If the weights are not of this architecture, or something else does not fit.
    """
    preset = arch.partition(" ")[0]
    for word in arch.split():
        if advice := _OVERRIDDEN.get(word.partition("=")[0]):
            raise UserError(f"--arch '{arch}': {advice}")
    weights = read_weights(path, ema)
    try:
        sizes = measure(weights)
        fitting = _suggest(preset, recognise(weights)[0], sizes)
        if preset not in IMAGE_PRESETS:  # but perhaps a name of timm's
            raise UserError(f"--arch {preset}: not one of {', '.join(IMAGE_PRESETS)}{fitting}")
        cfg = _configure(arch, sizes)
        names = _class_names(classes, cfg.task.num_classes)
        try:
            check_fit(weights, _build_empty(cfg, names))
        except UserError as error:
            raise UserError(f"{error}{fitting}") from None
        ours, layout = from_format(weights)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if image_size is not None:
        cfg.task.image_size = image_size
        try:
            ours = resize_weights(ours, _build_empty(cfg, names))
        except UserError as error:
            raise UserError(f"--image-size {image_size}: {error}") from None
    state = {
        "cfg": cfg,
        "model": ours,
        "task_state": {"classes": names},
        # fairseq looks for the last optimizer in every checkpoint, and this model has had none.
        "optimizer_history": [{"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}],
    }
    refuse_overwriting(out / CHECKPOINT_NAMES[0], [path])
    with whole_folder(out, CHECKPOINT_NAMES[0]) as new:
        save_weights(state, new / CHECKPOINT_NAMES[0])
    count, side = sum(tensor.numel() for tensor in ours.values()), cfg.task.image_size
    return f"{layout} weights, {count:,} parameters, images of {side} x {side} pixels, " + (
        f"{len(names)} classes" if names else "no head: to probe and to fine-tune"
    )


def export_weights(model: str | Path, layout: str, out: Path) -> str:
    """Write the weights of a classifier as a published layout names them.

    Args:
        model: A model that comes with the package, a folder with a checkpoint, or a checkpoint.
        layout: "official" or "timm".
        out: The file to write; its suffix, one of OUTPUT_SUFFIXES, says in which form.

    Returns:
        The `arch` with which `import_weights` takes them back.

    Raises:
        UserError: If the model is no classifier, or the layout has no place for it.
    """
    if out.suffix not in OUTPUT_SUFFIXES:
        raise UserError(f"{out}: weights are written to {' or '.join(OUTPUT_SUFFIXES)}")
    path = find_checkpoint(model)
    refuse_overwriting(out, [path])
    state = load_checkpoint(path)
    if state["cfg"].task.get("_name") != CLASSIFICATION:
        raise UserError(f"{path}: not an image classifier")
    try:
        weights = to_format(state["model"], layout)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    # Equal tensors share their memory in what `save_weights` wrote; safetensors wants each whole.
    weights = {name: tensor.clone().contiguous() for name, tensor in weights.items()}
    # Through memory: torch hides the error of a full disk behind one of its own.
    buffer = io.BytesIO()
    if out.suffix == ".safetensors":
        buffer.write(safetensors.save(weights, metadata={"format": "pt"}))
    else:
        torch.save(weights, buffer)
    with whole_file(out) as new:
        new.write_bytes(buffer.getbuffer())
    return _name_arch(state["cfg"])


def _name_arch(cfg: DictConfig) -> str:
    """The preset of a classifier, and the flags by which it differs."""
    words = [cfg.model._name]
    usual = _configure(cfg.model._name, {})
    names = [name for name in usual.model if name not in _OF_TRAINING]
    for given, default, keys in (cfg.model, usual.model, names), (cfg.task, usual.task, _READING):
        for key in keys:
            value = given.get(key, default.get(key))
            if value != default.get(key):
                text = ",".join(map(str, value)) if isinstance(value, ListConfig) else str(value)
                flag = f"--{key.replace('_', '-')}"
                words += [flag] if value is True else [flag, text]
    return " ".join(words)


def _configure(arch: str, sizes: dict[str, int]) -> DictConfig:
    """The configuration that fairseq-train would make of the command line for such weights."""
    line = [".", "--task", CLASSIFICATION, "--criterion", CLASSIFICATION, "--arch", *arch.split()]
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), line)
    )
    if (channels := sizes.get("in_chans", cfg.task.in_chans)) != cfg.task.in_chans:
        others = re.sub(r" --in-chans[ =]\S+", "", arch)
        raise UserError(
            f"made for images of {channels} channels, not of {cfg.task.in_chans}; say so in --arch "
            f"'{others} --in-chans {channels}', with as many values of --mean and --std"
        )
    # Sizes that the weights do not tell, since a part is missing, stay ImageNet's: the comparison
    # with the model will say what is missing.
    cfg.task.num_classes = sizes.get("num_classes", 1000)
    if positions := sizes.get("positions"):
        side = math.isqrt(positions)
        if side * side != positions:
            raise UserError(f"its matrices mix {positions} patches, which are no square grid")
        cfg.task.image_size = side * cfg.model.patch_size
    return cfg


def _suggest(arch: str, family: Family, sizes: dict[str, int]) -> str:
    """The preset of the family that has the sizes of the weights, if it is another one."""
    for name in family.presets:
        defaults = {f.name: default_of(f) for f in fields(MODEL_DATACLASS_REGISTRY[name])}
        sized = [key for key in ("layers", "embed_dim", "patch_size") if key in defaults]
        if name != arch and all(defaults[key] == sizes.get(key) for key in sized):
            patch = f" (patches of {defaults['patch_size']})" if "patch_size" in sized else ""
            return f"\n  they have the sizes of --arch {name}{patch}"
    return ""


def _class_names(path: Path | None, count: int) -> list[str]:
    if path is None:
        return [str(number) for number in range(count)]
    names = [line.strip() for line in read_lines(path)]
    if len(names) != count:
        raise UserError(f"{path} names {len(names)} classes, the weights have {count}")
    return names


def _build_empty(cfg: DictConfig, names: list[str]) -> torch.nn.Module:
    """The model's names and shapes, without memory."""
    task = setup_task(cfg.task)
    task.load_state_dict({"classes": names})
    with torch.device("meta"):
        return task.build_model(cfg.model)
