import csv
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sentencepiece
from cli.commands import ENVIRONMENT, ROOT
from cli.zygote import find_commands

FOLDER = ROOT / "examples/convergence"
sys.path.append(str(FOLDER))
import plan  # noqa: E402


@pytest.mark.parametrize("stage", plan.STAGES, ids=lambda stage: stage.name)
def test_fairseq_takes_the_flags_of_every_run(stage, monkeypatch):
    from fairseq import options

    monkeypatch.syspath_prepend(ROOT / "examples/ablation")
    import variants  # noqa: F401  # what --user-dir imports: its presets

    for model in stage.models:
        for purpose in ("rate", "final"):
            run = plan.Run(stage.name, purpose, model, stage.rates[0], "0.1", 9000, 1)
            parser = options.get_training_parser()
            args = options.parse_args_and_arch(parser, ["data", *plan.list_flags(stage, run)])
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
run.program = lambda name: f"{commands}/{{name}}"  # in forks
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
            commands=find_commands(),
            data=prepared.name,
            size=SIZE,
            recipe=RECIPE,
        )  # fmt: skip
    )
    command = [sys.executable, driver, "--data", prepared.parent, "--work", tmp_path / "work"]
    command += ["--results", tmp_path / "results.csv"]
    env = ENVIRONMENT | {"DTYPE": ""}  # some processors have no bf16
    options = dict(env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    process = subprocess.Popen(command, **options)
    begun = next(line for line in process.stdout if "begin small-final" in line)
    folder = tmp_path / "work" / begun.split()[1]
    second = subprocess.run(command, **options)  # finds nothing else to do
    assert second.returncode == 0 and f"{folder.name} is at work" in second.stdout
    assert "begin" not in second.stdout
    wait_for_checkpoint(process, folder)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=1800) == 128 + signal.SIGTERM, process.stdout.read()
    status = subprocess.run([*command, "--status"], **options).stdout
    assert "done, validation loss" in status and "of 40" in status
    done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stdout + (folder / "output").read_text()[-2000:]
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


def wait_for_checkpoint(process: subprocess.Popen, folder: Path) -> None:
    while not (folder / "checkpoint_last.pt").exists():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
