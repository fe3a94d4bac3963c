import csv
import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean

import pytest
import sentencepiece
from cli.commands import ROOT, run, start

FOLDER = ROOT / "examples/convergence"
sys.path.append(str(FOLDER))
import plan  # noqa: E402
import time_to_quality  # noqa: E402

del sys.modules["run"]  # of that folder, and other examples have one too

STAGE = plan.Stage(
    "small", "data", "", {"a": "--arch a", "b": "--arch b"}, "", ("1", "2", "3"), ("x", "y", "z"),
    pilot_updates=5, updates=9, seeds=(1, 2),
)  # fmt: skip


def test_every_model_chooses_from_the_same_and_trains_with_what_was_best():
    losses, order = {}, []
    while r := next((r for r in plan.list_runs(STAGE, losses) if r.known and r not in losses), 0):
        order.append(r)
        worth = {"a": {"1": 3, "2": math.inf, "3": 2}, "b": {"1": 1, "2": 2, "3": 3}}[r.model]
        losses[r] = worth[r.lr] + {"x": 0, "y": -1, "z": 1}[r.dropout]
    assert [(r.purpose, r.model, r.lr, r.dropout, r.seed, r.updates) for r in order] == [
        *(("rate", model, lr, "x", 1, 5) for model in "ab" for lr in "123"),
        *(("final", m, lr, d, 1, 9) for d in "xyz" for m, lr in (("a", "3"), ("b", "1"))),
        *(("final", model, lr, "y", 2, 9) for model, lr in (("a", "3"), ("b", "1"))),
    ]


@pytest.mark.parametrize("stage", plan.STAGES, ids=lambda stage: stage.name)
def test_fairseq_takes_the_flags_of_every_run(stage, monkeypatch):
    from fairseq import options

    monkeypatch.syspath_prepend(ROOT / "examples/ablation")
    import variants  # noqa: F401  # what --user-dir imports: its presets

    for model in stage.models:
        for purpose in ("rate", "final"):
            planned = plan.Run(stage.name, purpose, model, stage.rates[0], "0.1", 9000, 1)
            parser = options.get_training_parser()
            args = options.parse_args_and_arch(parser, ["data", *plan.list_flags(stage, planned)])
            assert args.lr == [float(stage.rates[0])] and args.warmup_updates == 2000
            assert args.encoder_embed_dim == args.decoder_embed_dim > 100
            assert (args.source_lang, args.target_lang) == stage.langs
            by_clock = purpose == "rate" and stage.pilot_hours
            assert args.stop_time_hours == (by_clock or 0)


SIZE = (
    "--encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-ffn-embed-dim 24 "
    "--decoder-ffn-embed-dim 40 --encoder-layers 1 --decoder-layers 1 "
    "--decoder-attention-heads 2"
)
RECIPE = (
    "--share-all-embeddings --max-source-positions 60 --max-target-positions 50 "
    "--criterion label_smoothed_cross_entropy --optimizer adam --lr-scheduler inverse_sqrt "
    "--max-tokens 1000"
)
DRIVER = """
import sys
sys.path[:0] = {paths!r}
import plan, run
run.STAGES = [plan.Stage(
    "small", {data!r}, {size!r}, dict(ours="--arch resmlp_plus_tiny --mixing-heads 4"),
    {recipe!r}, ("1e-2", "2e-2"), ("0.1",), pilot_updates=4, updates=40, seeds=(1,),
    langs=("de", "en"), tests=dict(lesson="test"),
)]
sys.exit(run.main())
"""


def test_a_queue_that_is_stopped_goes_on_and_ends_with_a_row_for_each_run(prepared, raw, tmp_path):
    driver = tmp_path / "driver.py"
    driver.write_text(
        DRIVER.format(
            paths=[str(FOLDER)],
            data=prepared.name,
            size=SIZE,
            recipe=RECIPE,
        )  # fmt: skip
    )
    command = ["python", driver, "--data", prepared.parent, "--work", tmp_path / "work"]
    command += ["--results", tmp_path / "results.csv"]
    env = {"DTYPE": ""}  # some processors have no bf16
    process = start(*command, env=env)
    begun = next(line for line in process.stdout if "begin small-final" in line)
    folder = tmp_path / "work" / begun.split()[1]
    second = run(*command, env=env)  # finds nothing else to do
    assert f"{folder.name} is at work" in second.stdout
    assert "begin" not in second.stdout
    wait_for_checkpoint(process, folder)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=1800) == 128 + signal.SIGTERM, process.stdout.read()
    status = run(*command, "--status", env=env).stdout
    assert "done, validation loss" in status and "of 40" in status
    run(*command, env=env)
    with open(tmp_path / "results.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["purpose"] for row in rows] == ["rate", "rate", "final"]
    assert [row["set"] for row in rows] == ["", "", "lesson"]
    assert not rows[0]["bleu"] and 0 <= float(rows[2]["bleu"]) <= 100
    assert rows[2]["updates"] == "40" and rows[2]["bleu_signature"].startswith("nrefs:1")
    assert rows[2]["command"].startswith("resmlp-mt train data-bin/data-bin --source-lang de")
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(prepared / "spm.model"))
    targets = subwords.encode((raw / "valid.en").read_text().splitlines(), out_type=str)
    share = sum(len(t) + 1 for t in targets) / sum(len("".join(t)) for t in targets)
    for row in rows:
        bits = float(row["valid_nll_base2"]) * share
        assert float(row["bits_per_character"]) == pytest.approx(bits, abs=1e-3)
    assert "Loaded checkpoint" in (folder / "output").read_text()  # it went on, not anew


def test_seconds_to_a_loss_are_those_of_all_epochs_each_once(tmp_path):
    entries = [
        {"epoch": epoch, "valid_nll_loss": str(loss), "valid_num_updates": str(updates)}
        for epoch, loss, updates in ((1, 5.5, 7), (2, 4.5, 14), (2, 4.25, 14), (3, 4.0, 21))
    ]
    walls = [{"epoch": e, "train_train_wall": s} for e, s in ((1, "10"), (2, "99"), (2, "12"))]
    lines = ["2026-11-22 | INFO | valid | " + json.dumps(entry) for entry in entries + walls]
    (tmp_path / "train.log").write_text("\n".join(["a line", *lines]) + "\n")
    points = time_to_quality.read_points(tmp_path / "train.log")
    expected = [(1, 7, 10.0, 5.5), (2, 14, 22.0, 4.25)]
    assert points == [time_to_quality.Point(*point) for point in expected]
    assert time_to_quality.reach(points, 5.0) == points[1]
    assert time_to_quality.reach(points, 4.0) is None
    output = ["--csv", tmp_path / "race.csv", "--plot", tmp_path / "race.png"]
    command = ["python", FOLDER / "time_to_quality.py", f"a={tmp_path}"]
    assert run(*command, "--target", 5.0, *output).stdout.startswith("a: 22 s, 14 updates to 5.0")


MODELS = {
    "resmlp_plus": "resmlp_plus",
    "resmlp_plus, 6+4 layers": "resmlp_plus_6_4",
    "Transformer, pre-norm": "transformer_pre",
    "Transformer, post-norm": "transformer_post",
}


def test_means_of_the_page_are_those_of_the_rows():
    """scripts/results_table.py writes the other tables."""
    with open(FOLDER / "results.csv", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["updates"] == "8000" and row["bleu"]]
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    means = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d.]+) \| ([^|]+, .*) \|$", page, re.M)
    means = [mean for mean in means if mean[0] in MODELS]
    assert means
    for name, parameters, dropout, figures in means:
        wanted = [MODELS[name], parameters.replace(",", ""), dropout]
        found = [r for r in rows if [r[n] for n in ("model", "parameters", "dropout")] == wanted]
        bleus = [float(row["bleu"]) for row in sorted(found, key=lambda row: row["seed"])]
        bits = mean(float(row["bits_per_character"]) for row in found)
        assert figures == " | ".join(
            [", ".join(f"{bleu:.2f}" for bleu in bleus), f"{mean(bleus):.2f}", f"{bits:.4f}"]
        ), name


def wait_for_checkpoint(process: subprocess.Popen, folder: Path) -> None:
    while not (folder / "checkpoint_last.pt").exists():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
