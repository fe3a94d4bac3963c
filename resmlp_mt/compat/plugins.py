"""Plugins of fairseq that users name."""

from argparse import Namespace
from pathlib import Path

from fairseq import utils
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY

from resmlp_mt.errors import UserError


def import_plugin(folder: Path) -> None:
    """Import the plugin of --user-dir, so that fairseq knows its models and tasks.

    Raises:
        UserError: If there is none.
    """
    if not (folder / "__init__.py").is_file():
        raise UserError(f"--user-dir {folder}: no plugin is there, for want of an __init__.py")
    utils.import_user_module(Namespace(user_dir=str(folder)))


def check_arch(path: Path, cfg) -> None:
    """Check that the architecture in the configuration of a checkpoint is registered.

    Raises:
        UserError: If it is not.
    """
    name = _name_arch(cfg)
    if isinstance(name, str) and name not in {*ARCH_MODEL_REGISTRY, *MODEL_DATACLASS_REGISTRY}:
        raise UserError(
            f"{path}: a model of --arch {name:.80}, which neither fairseq nor this plugin has; "
            "fairseq's commands, 'resmlp-mt translate' and 'export' take the plugin that has it "
            "with --user-dir, all other commands the export; in Python import the plugin first"
        )


def is_of_another_plugin(cfg) -> bool:
    """Whether the model of a checkpoint's configuration is neither fairseq's nor ours.

    Then the user named the plugin, and its code runs anyway.
    """
    name = _name_arch(cfg)
    model = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name)
    return model is not None and model.__module__.split(".")[0] not in ("fairseq", "resmlp_mt")


def _name_arch(cfg) -> str | None:
    model = cfg.get("model")
    return getattr(model, "_name", None) or getattr(model, "arch", None)  # as fairseq finds it
