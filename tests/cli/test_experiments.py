"""Experiments as files for fairseq-hydra-train: they train what their shell recipes train."""

import json
import os
import re
import sys

import pytest
import torch
from cli.commands import ROOT, load, run
from fairseq import options
from fairseq.dataclass.initialize import add_defaults, hydra_init
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from resmlp_mt.compat.noise import quiet_import

CONFIGS = sorted(ROOT.glob("examples/*/config/*.yaml"))
# What the machine decides, or where the results go.
OWN = {"save_dir", "log_file", "distributed_backend", "ignore_unused_valid_subsets", "user_dir"}


def find_recipe(config) -> list[str]:
    """The shell command that the file says it stands for."""
    (command,) = re.findall(r"What `bash (examples/[^`]+)` trains", config.read_text())
    return command.split()


def read_groups(cfg) -> dict:
    groups = OmegaConf.to_container(cfg, enum_to_str=True, resolve=True)
    return {
        name: {key: value for key, value in group.items() if key not in OWN}
        for name, group in groups.items()
        if isinstance(group, dict) and name not in ("scoring", "bpe", "tokenizer")
    }


@pytest.mark.filterwarnings("ignore")  # fairseq uses Hydra in its old ways
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_file_says_what_its_shell_recipe_says(config, tmp_path):
    stub = tmp_path / "resmlp-mt"
    record = f"import json, sys; json.dump(sys.argv[2:], open({str(tmp_path / 'said')!r}, 'w'))"
    stub.write_text(f"#!{sys.executable}\n{record}\n")
    stub.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUT": str(tmp_path)}
    run("bash", *find_recipe(config), cwd=ROOT, env=environment)
    words = json.loads((tmp_path / "said").read_text())
    flags = options.parse_args_and_arch(options.get_training_parser(), words)
    wanted = read_groups(convert_namespace_to_omegaconf(flags))
    with quiet_import():
        hydra_init(config.stem)
        with initialize_config_dir(str(config.parent), version_base="1.1"):
            cfg = compose(config.stem)
        add_defaults(cfg)
    found = read_groups(cfg)
    if "optimizer" not in wanted:  # one without a dataclass keeps its flags as they are
        found["optimizer"].pop("_name")
    for name, group in wanted.items():
        assert found[name] == group, name


def test_a_file_trains_the_model_of_its_shell_recipe_and_logs_to_tensorboard(prepared, tmp_path):
    config = ROOT / "examples/multi30k/config/resmlp_plus_tiny.yaml"
    variables = {"OUT": str(tmp_path), "DATA": str(prepared)}
    run("bash", *find_recipe(config), "1", "4", cwd=ROOT, env=variables)
    name = ["--config-dir", config.parent, "--config-name", config.stem]
    short = ["optimization.max_update=4", "lr_scheduler.warmup_updates=1", f"task.data={prepared}"]
    where = [f"checkpoint.save_dir={tmp_path / 'file'}"]
    where += [f"common.tensorboard_logdir={tmp_path / 'board'}", "common.log_interval=1"]
    before = set(ROOT.iterdir())
    run("fairseq-hydra-train", *name, *short, *where, cwd=ROOT)
    assert set(ROOT.iterdir()) == before
    assert "max_update=4" in (tmp_path / "file" / ".hydra" / "overrides.yaml").read_text()
    shell, file = (
        load(tmp_path / folder)["model"] for folder in ("resmlp_plus_tiny-seed1", "file")
    )
    assert shell.keys() == file.keys() and len(shell) > 50
    assert all(torch.equal(shell[name], file[name]) for name in shell)
    seen = {}
    for folder in ("train_inner", "valid"):
        events = EventAccumulator(str(tmp_path / "board" / folder)).Reload()
        seen[folder] = [event.step for event in events.Scalars("loss")]
    assert seen == {"train_inner": [1, 2, 3, 4], "valid": [4]}
