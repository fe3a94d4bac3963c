"""examples/ablation: its variants keep the mixer's contract, its script resumes."""

import csv
import re
import sys
from pathlib import Path

import pytest
import torch
from cli.commands import prepare, run
from fairseq import options, tasks
from torch.testing import assert_close

from examples.lesson import write_lesson

ABLATION = Path(__file__).parents[1] / "examples" / "ablation"
PAD = 1


@pytest.fixture(scope="module")
def ablation():
    """The modules of the example."""
    sys.path.insert(0, str(ABLATION))
    import catalogue
    import run
    import variants

    yield catalogue, variants, run
    sys.path.remove(str(ABLATION))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    raw, out = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("data") / "bin"
    write_lesson(raw, train=300, valid=20, test=20)
    prepare(raw, out)
    return out


def variants_of(base):
    sys.path.insert(0, str(ABLATION))
    from catalogue import RUNS

    sys.path.remove(str(ABLATION))
    return [
        pytest.param(base, factor, value, id=f"{base}: {factor}: {value}")
        for factor, values in RUNS[base].items()
        for value in values
    ]


def build(data, catalogue, base, factor, value):
    flags = [*catalogue.BASES[base].split(), *catalogue.RUNS[base][factor][value].split()]
    line = [str(data), "--user-dir", str(ABLATION / "variants"), "--share-all-embeddings", *flags]
    flags = options.parse_args_and_arch(options.get_training_parser(), line + ["--dropout", "0"])
    flags.max_source_positions = flags.max_target_positions = 12
    model = tasks.setup_task(flags).build_model(flags).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.03 * torch.randn_like(parameter)
    return model.eval()


@pytest.mark.parametrize("base, factor, value", variants_of("paper") + variants_of("plus"))
def test_a_variant_decodes_by_steps_and_alone_as_it_trains(base, factor, value, data, ablation):
    model = build(data, ablation[0], base, factor, value)
    source, target = torch.randint(4, 100, (2, 9)), torch.randint(4, 100, (2, 6))
    source[0, 5:] = PAD
    memory = model.encoder(source)
    full = model.decoder(target, memory)[0]
    state = {}
    steps = [model.decoder(target[:, : i + 1], memory, state)[0] for i in range(6)]
    assert_close(torch.cat(steps, 1), full)
    assert_close(model.decoder(target[:1], model.encoder(source[:1, :5]))[0], full[:1])


@pytest.mark.parametrize("base", ["paper", "plus", "transformer"])
def test_fairseq_takes_the_flags_of_every_factor(base, ablation, tmp_path):
    catalogue, _, script = ablation
    for factor, values in catalogue.RUNS[base].items():
        flags = next(iter(values.values()))  # the others are parsed above, where they are built
        run = {"base": base, "seed": 3, "updates": 8, "max_tokens": 99, "flags": flags}
        line = ["data", *script.list_flags(run, str(tmp_path))]
        args = options.parse_args_and_arch(options.get_training_parser(), line)
        assert args.optimizer == ("adagrad" if factor == "optimiser" else "adam")
        assert (args.seed, args.warmup_updates, args.max_tokens) == (3, 2, 99)
        assert line[line.index("--distributed-world-size") + 1] == "1"
    torch.backends.cuda.enable_flash_sdp(True)  # which --bf16 turned off


def test_every_run_gets_one_row_however_often_the_script_is_run(data, tmp_path):
    results = tmp_path / "results.csv"
    script = [ABLATION / "run.py", "--data", data, "--results", results]
    script += ["--base", "plus", "--factor", "gate", "--updates", 4, "--value", "silu"]
    for commit in ("abc", "later"):
        run("python", *script, env={"COMMIT": commit})
    with open(results, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["value"], row["seed"], row["commit"]) for row in rows] == [("silu", "1", "abc")]
    assert all(re.fullmatch(r"[\d.]+", row[n]) for row in rows for n in ("bleu", "valid_nll_base2"))


def test_a_run_that_fails_is_named_and_leaves_the_others_alone(ablation, tmp_path, monkeypatch):
    _, _, script = ablation
    results = tmp_path / "results.csv"

    def run_or_fail(run, data):
        if run["value"] == "sigmoid":
            raise RuntimeError("fairseq-train ended with 1")
        return {name: run.get(name, "") for name in script.COLUMNS}

    monkeypatch.setattr(script, "_run", run_or_fail)
    flags = ["--base", "plus", "--factor", "gate", "--value", "sigmoid", "silu", "--jobs", "2"]
    flags += ["--seeds", "1", "2", "--subset", "test", "--max-tokens", "77", "--data", "bin/mine"]
    monkeypatch.setattr(sys, "argv", ["run.py", "--results", str(results), *flags])
    assert script.main() == 1
    with open(results, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert sorted((row["value"], row["seed"]) for row in rows) == [("silu", "1"), ("silu", "2")]
    assert all((r["data"], r["subset"], r["max_tokens"]) == ("mine", "test", "77") for r in rows)


REPORT = "base,factor,value,seed,data,subset,max_tokens,parameters,updates,valid_nll_base2,bleu"
REPORT_ROWS = """plus,base,resmlp_plus_tiny,1,m,valid,99,9,50,3.5,30,0.9
plus,gate,silu,1,m,valid,99,8,50,3.0,31,1.0
plus,base,resmlp_plus_tiny,2,m,valid,99,9,50,3.7,32,0.8
plus,gate,silu,2,m,valid,99,8,50,3.1,32,0.8
plus,gate,silu,1,m,valid,99,8,60,2.0,40,1.0
"""


def report(tmp_path, rows, **options):
    (tmp_path / "runs.csv").write_text(f"{REPORT},brevity_penalty\n{rows}")
    script = [ABLATION / "report.py", tmp_path / "runs.csv", "--out", tmp_path / "summary.csv"]
    script += ["--plot", tmp_path / "plot.png"]
    return run("python", *script, **options)


def test_the_report_gives_means_and_differences_seed_by_seed(tmp_path):
    report(tmp_path, REPORT_ROWS)
    with open(tmp_path / "summary.csv", newline="", encoding="utf-8") as stream:
        found = [list(row.values()) for row in csv.DictReader(stream)]
    assert found == [
        ["plus", "base", "resmlp_plus_tiny", "50", "9", "2", "3.600", "+0.000", "31.00", "0.850"],
        ["plus", "gate", "silu", "50", "8", "2", "3.050", "-0.550", "31.50", "0.900"],
        ["plus", "gate", "silu", "60", "8", "1", "2.000", "", "40.00", "1.000"],
    ]
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
