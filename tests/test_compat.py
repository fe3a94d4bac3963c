import argparse
import copy
import math
import re
import warnings

import numpy
import omegaconf
import pytest
import torch
from cli.commands import run
from fairseq import checkpoint_utils, optim, options
from fairseq.data import data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim.lr_scheduler import LR_SCHEDULER_REGISTRY

from resmlp_mt import compat
from resmlp_mt.compat import flags as parsing
from resmlp_mt.compat.flags.given import Flags
from resmlp_mt.compat.flags.training import check_schedule
from resmlp_mt.compat.noise import silence_noise
from resmlp_mt.errors import UserError


def reload(value, path):
    torch.save({"x": value}, path)
    return torch.load(path, weights_only=True)["x"]


@pytest.mark.parametrize(
    "value",
    [
        argparse.Namespace(a=1, b=[argparse.Namespace(c="x")]),
        numpy.float64(2.5),
        numpy.int32(3),
        numpy.arange(6, dtype=numpy.int16).reshape(2, 3),
        omegaconf.OmegaConf.create({"a": 1, "b": [1, "x", {"c": 2.5, "d": None}], "e": True}),
        omegaconf.OmegaConf.create([1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_fairseq_writes_load_without_running_code(value, tmp_path):
    loaded = reload(value, tmp_path / "x.pt")
    assert type(loaded) is type(value)
    assert numpy.all(loaded == value)


def test_arrays_of_objects_are_still_refused(tmp_path):
    with pytest.raises(Exception, match="[Uu]nsupported|Weights only"):
        reload(numpy.array([object()]), tmp_path / "x.pt")


def test_known_noise_is_dropped_and_other_warnings_are_not():
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("always")
        silence_noise()
        warnings.warn("hydra.experimental.compose() is no longer experimental.", stacklevel=1)
        warnings.warn("\nThe version_base parameter is not specified.", stacklevel=1)
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated.", FutureWarning, stacklevel=1
        )
        assert not caught
        warnings.warn("the learning rate is zero", stacklevel=1)
        warnings.warn("torch.something is deprecated", FutureWarning, stacklevel=1)
    assert len(caught) == 2


def test_applying_twice_changes_nothing():
    before = checkpoint_utils.load_checkpoint_to_cpu
    compat.apply()
    assert checkpoint_utils.load_checkpoint_to_cpu is before
    assert hasattr(before, "__wrapped__")


def test_a_folder_to_start_from_stands_for_its_checkpoint(tmp_path):
    (tmp_path / "checkpoint_best.pt").touch()

    def parse(start):
        line = ["data", "--arch", "resmlp_tiny", "--finetune-from-model", str(start)]
        return options.parse_args_and_arch(options.get_training_parser(), line)

    assert parse(tmp_path).finetune_from_model == str(tmp_path / "checkpoint_best.pt")
    for none, said in ("nix", "nix: no such model"), ("", "--finetune-from-model is empty"):
        with pytest.raises(UserError, match=said):
            parse(none)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--update-freq 2,0", "--update-freq must be at least 1, not 0"),
        ("--num-workers -1", "--num-workers must be at least 0, not -1"),
        ("--max-tokens 0", "--max-tokens must be at least 1, not 0"),
        ("--batch-size 0", "--batch-size must be at least 1, not 0"),
        ("--log-interval 0", "--log-interval must be at least 1, not 0"),
        ("--save-interval 0", "--save-interval must be at least 1, not 0"),
        ("--validate-interval 0", "--validate-interval must be at least 1, not 0"),
        ("--optimizer adam --adam-betas foo", "--adam-betas foo: give two numbers"),
        ("--optimizer adamw --adam-betas 0.9", "--adam-betas 0.9: give two numbers"),
        ("--optimizer lamb --lamb-betas (0.9,1.5)", "--lamb-betas (0.9,1.5): give two numbers"),
        ("--lr=", "--lr is empty"),
        ("--lr 1e-3,-1", "--lr must be at least 0, not -1"),
        ("--lr 5e_4", "--lr '5e_4': give a number, or several with commas between"),
        ("--update-freq two", "--update-freq 'two': give a number, or several with commas"),
        ("--optimizer-overrides {'lr", "--optimizer-overrides {'lr: no dictionary of Python"),
        ("--optimizer-overrides [1]", "--optimizer-overrides [1]: no dictionary of Python"),
        ("--optimizer-overrides {[]:1}", "--optimizer-overrides {[]:1}: no dictionary of Python"),
        ("--optimizer adamw --weight-decay nan", "--weight-decay must be at least 0, not nan"),
        ("--seed -1", "--seed must be at least 0, not -1"),
        ("--lr-scheduler inverse_sqrt --warmup-updates -1", "--warmup-updates must be at least 0"),
        ("--optimizer muon --weight-decay -1", "--weight-decay must be at least 0, not -1"),
        ("--optimizer adamw --adam-eps -1", "--adam-eps must be at least 0, not -1"),
        ("--store-ema --ema-decay 2", "--ema-decay must be at most 1, not 2"),
        (
            "--criterion label_smoothed_cross_entropy_in_chunks --label-smoothing 1.5",
            "--label-smoothing must be at most 1, not 1.5",
        ),
        ("--eval-bleu --best-checkpoint-metric bleu", "--best-checkpoint-metric bleu would keep"),
        (
            "--task image_classification --arch resmlp_cifar --criterion image_classification "
            "--best-checkpoint-metric ema_top1",
            "--best-checkpoint-metric ema_top1 would keep the lowest",
        ),
        ("--maximize-best-checkpoint-metric", "--maximize-best-checkpoint-metric would keep"),
        ("--patience 3 --validate-interval-updates 40", "--patience counts validations of which"),
        (
            "--patience 3 --validate-interval-updates 40 --save-interval-updates 30",
            "--patience counts validations of which no checkpoint is kept: every 40 updates",
        ),
        ("--patience 1 --save-interval 2", "--patience counts validations of which no checkpoint"),
        ("--best-checkpoint-metric bleu", "--best-checkpoint-metric bleu needs --eval-bleu"),
        ("--best-checkpoint-metric accuracy", "--best-checkpoint-metric accuracy: no such figure"),
        (
            "--criterion label_smoothed_cross_entropy --best-checkpoint-metric accuracy",
            "--best-checkpoint-metric accuracy needs --report-accuracy",
        ),
        ("--eval-bleu --eval-bleu-detok mose", "--eval-bleu-detok mose: there are moses, nltk, "),
        ("--eval-bleu --eval-bleu-args {beam:2}", "--eval-bleu-args {beam:2}: no object in JSON"),
        ("--eval-bleu --eval-bleu-args [2]", "--eval-bleu-args [2]: no object in JSON"),
        ('--eval-bleu --eval-bleu-args {"baem":2}', "--eval-bleu-args: no option of a search is "),
        ('--eval-bleu --eval-bleu-args {"beam":0}', "--eval-bleu-args: beam must be at least 1"),
        ('--eval-bleu --eval-bleu-args {"beam":"5"}', "--eval-bleu-args: beam must be at least 1"),
        ("--best-checkpoint-metric los", "--best-checkpoint-metric los: no such figure; there are"),
        ("--finetune-from-model de-en --restore-file x.pt", "--finetune-from-model starts from"),
        ("--finetune-from-model de-en --reset-meters", "--finetune-from-model resets that anyway"),
    ],
)
def test_flags_that_end_in_a_traceback_later_are_refused(flags, said):
    with pytest.raises(UserError, match=f"^{re.escape(said)}"):
        parse_training(*flags.split())


# Each number of a schedule is put at 0 and beside it, with each of these.
OF_SCHEDULES = {
    "cosine": ["--max-update 9", "--max-update 9 --warmup-updates 9", "--lr-period-updates 2"],
    "fixed": ["", "--force-anneal 2 --lr-shrink 0"],
    "hyperrule": [""],
    "inverse_sqrt": [""],
    "manual": ["", "--epoch2lr {'1-2':1e-3}", "--epoch2lr {1:1}", "--update2lr {[]:1}"],
    "pass_through": [""],
    "polynomial_decay": ["", "--max-update 9", "--max-update 9 --warmup-updates 9"],
    "reduce_lr_on_plateau": [""],
    "step": [""],
    "tri_stage": ["", "--hold-steps 3", "--decay-steps 3", "--max-update 9 --phase-ratio (0,0,1)"],
    "triangular": ["--max-lr 0.5", "--max-lr 0.6"],
}


def vary(name):
    """The flags of trainings with a schedule, each a copy of its own."""
    LR_SCHEDULER_REGISTRY[name].add_args(parser := argparse.ArgumentParser())
    for given in OF_SCHEDULES[name]:
        line = ["--optimizer", "sgd", "--lr", "0.5", "--lr-scheduler", name, *given.split()]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(parsing, "_CHECKS", ())
            parsed = parse_training(*line)
        yield copy.copy(parsed)
        for action in parser._actions:
            values = {int: (0, 1), float: (-1.0, 0.0, 1.0, 1.5)}.get(action.type, ())
            for value in values:
                yield argparse.Namespace(**vars(parsed) | {action.dest: value})


def fails(parsed, last) -> bool:
    """Whether fairseq's own schedule fails up to an update, or has no rate there."""
    optimizer = optim.build_optimizer(parsed, [torch.nn.Parameter(torch.zeros(1))])
    try:
        schedule = optim.lr_scheduler.build_lr_scheduler(parsed, optimizer)
        schedule.step_begin_epoch(1)
        for update in range(last + 1):
            schedule.step_update(update)
            if not 0 <= optimizer.get_lr() < math.inf:
                return True
    except Exception:  # any that a schedule may end in
        return True
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(LR_SCHEDULER_REGISTRY))
def test_a_schedule_is_refused_where_it_fails_and_nowhere_else(name):
    for parsed in vary(name):
        try:
            check_schedule(Flags(parsed))
        except UserError as error:
            found = re.match(
                rf"--lr-scheduler {name} fails at update (\d+) \(.+\): change", str(error)
            )
            assert found and fails(parsed, int(found[1])), error
        else:
            assert not fails(parsed, parsed.max_update or 300), parsed


def test_schedules_at_their_limits_are_named_with_what_may_be_changed():
    for given, said in {
        "inverse_sqrt --warmup-updates 0": "0 (float division by zero): change one of --lr 0.25, "
        "--max-update 0, --warmup-updates 0, --warmup-init-lr -1",
        "pass_through": "0 (Pass-through schedule can only be used with optimizers with",
        "tri_stage --hold-steps 3": "0 (float division by zero): change .* --decay-steps 0, ",
        "triangular --max-lr 0.25": "0 (max_lr must be more than lr): change .* --max-lr 0.25, ",
        "triangular --max-lr 1 --lr-period-updates 0": "0 (float division by zero): change ",
        "step --lr-deacy-period 0": "0 (assert self.lr_deacy_period > 0): change ",
        "cosine --max-update 9 --warmup-updates 9": "9 (division by zero): change ",
    }.items():
        said = f"--lr-scheduler {given.split()[0]} fails at update {said}"
        with pytest.raises(UserError, match=re.escape(said).replace(r"\.\*", ".*")):
            parse_training("--optimizer", "adam", "--lr-scheduler", *given.split())
    assert (
        parse_training(
            "--optimizer", "adam", "--lr-scheduler", "polynomial_decay", "--max-update", "9"
        ).total_num_update
        == 9
    )


def test_checkpoints_are_written_at_once_and_it_is_said(caplog):
    assert not parse_training("--write-checkpoints-asynchronously").write_checkpoints_asynchronously
    assert "training waits until a checkpoint is whole" in caplog.text


def test_samples_are_as_many_as_are_given_out():
    def parse(*flags):
        return options.parse_args_and_arch(
            options.get_generation_parser(), ["data", "--path", "x.pt", *flags]
        )

    with pytest.raises(UserError, match="^--sampling draws --beam 5 translations, and --nbest 1 "):
        parse("--sampling")
    with pytest.raises(UserError, match="^--model-overrides {: no dictionary of Python, such as"):
        parse("--model-overrides", "{")
    with pytest.raises(UserError, match="x.pt: no such"):  # which is looked for after that
        parse("--sampling", "--nbest", "5")


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon", "lamb", "adamax", "sgd"])
def test_what_optimizers_take_by_default_is_not_refused(optimizer):
    parse_training("--optimizer", optimizer)


@pytest.fixture
def fused_attention():
    """Torch's fused attention, whatever the test does to it."""
    torch.backends.cuda.enable_flash_sdp(True)
    yield
    torch.backends.cuda.enable_flash_sdp(True)


def parse_training(*flags):
    return options.parse_args_and_arch(
        options.get_training_parser(), ["data", "--arch", "resmlp_tiny", *flags]
    )


def test_bf16_is_no_wish_for_a_tpu(fused_attention):
    assert not parse_training("--bf16").tpu


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's fused attention stays")
def test_bf16_on_a_cpu_takes_the_plain_attention(fused_attention):
    for flags, fused in ([], True), (["--bf16"], False):
        parse_training(*flags)
        query = torch.ones(1, 1, 2, 8, dtype=torch.bfloat16)
        with torch.profiler.profile() as profile:
            torch.nn.functional.scaled_dot_product_attention(query, query, query)
        used = {event.key for event in profile.key_averages()}
        assert any("flash" in name for name in used) == fused


@pytest.mark.parametrize("images", [False, True])
def test_texts_on_a_gpu_do_without_plans_for_each_shape(monkeypatch, images):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", (asked := []).append)
    task = ["--task", "image_classification", "--arch", "resmlp_s12"] if images else []
    parse_training(*task)
    assert asked == ([] if images else [False])


@pytest.mark.parametrize("knows", [True, False])
def test_bf16_is_warned_of_where_the_processor_does_not_know_it(
    knows, fused_attention, monkeypatch, caplog
):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: knows)
    parse_training("--cpu", "--bf16")
    assert any("leave it out" in message for message in caplog.messages) != knows
    caplog.clear()
    parse_training("--cpu")
    assert not caplog.messages


def test_forgotten_validation_sets_are_looked_for_in_folders_alone(tmp_path):
    (tmp_path / "valid1.bin").touch()
    (tmp_path / "images.tar").touch()

    def configure(data, *flags):
        parser, line = options.get_training_parser(), [str(data), "--arch", "resmlp_tiny", *flags]
        return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, line))

    data_utils.raise_if_valid_subsets_unintentionally_ignored(configure(tmp_path / "images.tar"))
    with pytest.raises(ValueError, match="valid1"):
        data_utils.raise_if_valid_subsets_unintentionally_ignored(configure(tmp_path))
    (tmp_path / "valid1.bin").rename(tmp_path / "valid1.en-de.en.bin")
    (tmp_path / "valid.en-de.en.bin").touch()
    named = configure(tmp_path, "--valid-subset", "valid,valid1")
    data_utils.raise_if_valid_subsets_unintentionally_ignored(named)
    with pytest.raises(ValueError, match="valid1"):
        data_utils.raise_if_valid_subsets_unintentionally_ignored(configure(tmp_path))


def test_a_polynomial_decay_is_as_long_as_the_training():
    flags = "--lr-scheduler polynomial_decay --max-update 70".split()
    cfg = convert_namespace_to_omegaconf(parse_training(*flags)).lr_scheduler
    assert cfg.total_num_update == 70
    cfg = convert_namespace_to_omegaconf(parse_training(*flags, "--total-num-update", "9"))
    assert cfg.lr_scheduler.total_num_update == 9


@pytest.mark.parametrize("flags", [["--optimizer", "adam"], ["--optimizer", "adagrad"]])
def test_an_optimizer_of_a_model_of_other_sizes_is_refused(flags):
    cfg = convert_namespace_to_omegaconf(parse_training(*flags, "--lr", "0.1")).optimizer

    def build(size):
        parameter = torch.nn.Parameter(torch.ones(size))
        optimizer = optim.build_optimizer(cfg, [parameter])
        parameter.sum().backward()
        optimizer.step()
        return optimizer

    same, other = build(3), build(4)
    same.load_state_dict(build(3).state_dict())
    with pytest.raises(UserError, match="--reset-optimizer"):
        other.load_state_dict(same.state_dict())


def test_what_fairseq_needs_for_other_tasks_is_imported_when_it_is_called():
    code = """
import sys, resmlp_mt, fairseq
assert not {"sklearn", "scipy"} & sys.modules.keys()
import numpy as np
from fairseq.criterions.sentence_prediction import acc_and_f1, pearson_and_spearman
found = acc_and_f1(np.array([1, 0, 1]), np.array([1, 1, 1]))["f1"]
assert abs(found - 0.8) < 1e-9, found
assert pearson_and_spearman(np.array([1.0, 0, 2]), np.array([1.0, 0, 2]))["pearson"] > 0.99
from fairseq.tasks.audio_classification import sklearn_metrics
assert sklearn_metrics.accuracy_score([1, 0], [1, 1]) == 0.5
"""
    run("python", "-c", code, own=True)
