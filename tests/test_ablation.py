"""examples/ablation: its variants keep the mixer's contract, its script resumes."""

import csv
import math
import re
import sys
from pathlib import Path

import pytest
import torch
from cli.commands import prepare, run
from fairseq import options, tasks
from fairseq.data import data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from torch.testing import assert_close

from resmlp_mt.data.lesson import write_lesson

ABLATION = Path(__file__).parents[1] / "examples" / "ablation"
PAD = 1


@pytest.fixture(scope="module")
def ablation():
    """The modules of the example."""
    sys.path.insert(0, str(ABLATION))
    import runs
    import variants

    yield runs, variants
    sys.path.remove(str(ABLATION))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    raw, out = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("data") / "bin"
    write_lesson(raw, train=300, valid=20, test=20)
    prepare(raw, out)
    return out


def variants_of(base):
    sys.path.insert(0, str(ABLATION))
    from runs import RUNS

    sys.path.remove(str(ABLATION))
    return [
        pytest.param(base, factor, value, id=f"{base}: {factor}: {value}")
        for factor, values in RUNS[base].items()
        for value in values
    ]


def build(data, runs, base, factor, value):
    flags = [*runs.BASES[base].split(), *runs.RUNS[base][factor][value].split()]
    line = [str(data), "--user-dir", str(ABLATION / "variants"), "--share-all-embeddings", *flags]
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), line + ["--dropout", "0"])
    )
    cfg.model.max_source_positions = cfg.model.max_target_positions = 12
    model = tasks.setup_task(cfg.task).build_model(cfg.model).double()
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


def test_softmax_rows_are_means_of_the_words_that_a_position_sees(ablation):
    mixers = ablation[1].mixers
    for causal in (False, True):
        matrix = mixers.ExponentialMatrix(7, 2, causal, init_std=1.0).double()
        x, lengths = torch.randn(2, 5, 4).double(), (3, 5)
        mask = torch.tensor([[i >= length for i in range(5)] for length in lengths])
        y = mixers.SoftmaxMixer(matrix)(x, None if causal else mask)
        for b, i, c in ((0, 0, 0), (0, 2, 3), (1, 4, 1)):
            seen = range(i + 1 if causal else lengths[b])
            weights = [math.exp(float(matrix.weight[c // 2, i, j].detach())) for j in seen]
            mean = sum(w * x[b, j, c] for w, j in zip(weights, seen, strict=True)) / sum(weights)
            assert_close(y[b, i, c], mean)


@pytest.mark.parametrize("kind", ["free", "toeplitz"])
def test_the_starts_of_the_matrix_are_what_they_are_called(kind, ablation):
    mixers = ablation[1].mixers
    for causal in (False, True):
        matrix = mixers.MATRICES[kind](20, 2, causal, init_std=1.0)
        entries = {}
        for init in ("zero", "identity", "local", "average"):
            mixers.start_from(init, matrix)
            entries[init] = matrix(0, 6)[0][1].tolist()
        for i in range(6):
            for j in range(6):
                seen = not causal or j <= i
                near = 2.0 ** -abs(i - j) if seen else 0
                mean = 1 / (i + 1) if causal and kind == "free" else 1 / 16
                expected = dict(zero=0, identity=float(i == j), local=near, average=mean * seen)
                found = {init: rows[i][j] for init, rows in entries.items()}
                assert found == pytest.approx(expected)


def test_a_plain_variant_is_the_preset_that_it_is_named_for(data, ablation):
    runs, _ = ablation
    sizes = {
        base: sum(p.numel() for p in build(data, runs, base, "base", name).parameters())
        for base, name in (("paper", "resmlp_tiny"), ("plus", "resmlp_plus_tiny"))
    }
    for base, preset in (("paper", "resmlp_tiny"), ("plus", "resmlp_plus_tiny")):
        runs.BASES["preset"], runs.RUNS["preset"] = f"--arch {preset}", {"": {"": ""}}
        model = build(data, runs, "preset", "", "")
        assert sum(p.numel() for p in model.parameters()) == sizes[base]


def test_every_run_gets_one_row_however_often_the_script_is_run(data, tmp_path):
    results = tmp_path / "results.csv"
    script = [sys.executable, ABLATION / "run.py", "--data", data, "--results", results]
    script += ["--base", "plus", "--factor", "gate", "--updates", 4, "--value", "silu"]
    for _ in range(2):
        run(Path(sys.executable).name, *script[1:])
    with open(results, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["value"], row["seed"]) for row in rows] == [("silu", "1")]
    assert all(re.fullmatch(r"[\d.]+", row[n]) for row in rows for n in ("bleu", "valid_nll_base2"))


def test_a_run_that_fails_is_named_and_leaves_the_others_alone(tmp_path):
    results = tmp_path / "results.csv"
    script = [ABLATION / "run.py", "--data", tmp_path / "nothing", "--results", results]
    script += ["--base", "plus", "--factor", "gate", "--value", "silu"]
    result = run(Path(sys.executable).name, *script, check=False)
    assert result.returncode == 1 and not results.exists()
    assert "--gate silu failed" in result.stderr and str(tmp_path / "nothing") in result.stderr


def test_the_report_gives_means_and_differences_seed_by_seed(ablation, tmp_path):
    columns = "base,factor,value,seed,parameters,updates,valid_nll_base2,bleu,brevity_penalty"
    rows = ["plus,base,resmlp_plus_tiny,1,9,50,3.5,30,0.9", "plus,gate,silu,1,8,50,3.0,31,1.0"]
    rows += ["plus,base,resmlp_plus_tiny,2,9,50,3.7,32,0.8", "plus,gate,silu,2,8,50,3.1,32,0.8"]
    rows += ["plus,gate,silu,1,8,99,2.0,40,1.0"]
    (tmp_path / "results.csv").write_text("\n".join([columns, *rows]) + "\n")
    plot = tmp_path / "plot.png"
    run(Path(sys.executable).name, ABLATION / "report.py", tmp_path / "results.csv", "--plot", plot)
    with open(tmp_path / "summary.csv", newline="", encoding="utf-8") as stream:
        found = [list(row.values()) for row in csv.DictReader(stream)]
    assert found == [
        ["plus", "base", "resmlp_plus_tiny", "50", "9", "2", "3.600", "+0.000", "31.00", "0.850"],
        ["plus", "gate", "silu", "50", "8", "2", "3.050", "-0.550", "31.50", "0.900"],
        ["plus", "gate", "silu", "99", "8", "1", "2.000", "", "40.00", "1.000"],
    ]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_short_pairs_are_kept_to_train_on_and_long_ones_to_test_on(data, tmp_path):
    script = ABLATION / "split_lengths.py"
    out = tmp_path / "short"
    run(Path(sys.executable).name, script, data, out, "--longest", 18)

    def pairs(folder, part):
        sides = [
            data_utils.load_indexed_dataset(f"{folder}/{part}.en-de.{e}") for e in ("en", "de")
        ]
        return [(tuple(s.tolist()), tuple(t.tolist())) for s, t in zip(*sides, strict=True)]

    def is_long(pair):
        return max(map(len, pair)) > 18

    valid = pairs(data, "valid")
    assert pairs(out, "train") == [pair for pair in pairs(data, "train") if not is_long(pair)]
    assert pairs(out, "valid") == [pair for pair in valid if not is_long(pair)]
    assert pairs(out, "test") == [pair for pair in valid if is_long(pair)] != valid != []
    assert (out / "dict.en.txt").read_text() == (data / "dict.en.txt").read_text()
