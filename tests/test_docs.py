"""The commands of the README and of the examples run as written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from resmlp_mt import Translator
from resmlp_mt.data.checkpoints import pretrained_names
from resmlp_mt.data.lesson import write_lesson

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", README, re.S)
DATA = os.environ.get("RESMLP_DATA")
real_data = pytest.mark.skipif(not DATA, reason="RESMLP_DATA does not name a folder of real data")


def shell(script: str, cwd: Path, **variables: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)} | variables
    command = ["bash", "-euo", "pipefail", "-c", script]
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


def block(beginning: str) -> str:
    (found,) = [text for _, text in BLOCKS if text.startswith(beginning)]
    return found


def test_readme_begins_with_its_two_commands():
    assert [text.split("#")[0].strip() for _, text in BLOCKS[:2]] == [
        "bash scripts/quickstart.sh",
        "bash scripts/test.sh",
    ]


def test_readme_translates(tmp_path):
    commands = [text for kind, text in BLOCKS if text.startswith(("resmlp-mt translate", "echo"))]
    assert len(commands) == 2
    for command in commands:
        assert shell(command, tmp_path).strip()
    (tmp_path / "example.py").write_text(block("from resmlp_mt"))
    output = shell("python example.py", tmp_path)
    assert output.count("',") == 1 and "Mann" in output


def test_readme_trains_scores_and_draws(tmp_path):
    write_lesson(tmp_path / "corpus", train=300, valid=10, test=10)
    # The same commands, on less data for less time.
    script = block("resmlp-mt prepare")
    for written, shorter in (
        ("--vocab-size 8000", "--vocab-size 300"),
        ("--max-update 8000", "--max-epoch 3"),
        ("--warmup-updates 2000", "--warmup-updates 4"),
        ("generate data-bin/mine", "generate data-bin/mine --max-len-b 10"),
    ):
        assert written in script
        script = script.replace(written, shorter)
    output = shell(script, tmp_path)
    assert re.search(r"Generate test with beam=5: BLEU", output)
    shutil.copy(tmp_path / "corpus" / "test.de", tmp_path / "references.de")
    shutil.copy(tmp_path / "corpus" / "test.de", tmp_path / "hypotheses.de")
    assert "100.00" in shell(block("resmlp-mt score"), tmp_path)
    assert (tmp_path / "curves.png").stat().st_size > 5000
    assert (tmp_path / "my-model" / "model.pt").exists()


@pytest.mark.parametrize("name", ["README.md", "examples/multi30k/README.md"])
def test_results_tables_are_those_of_the_csv(name):
    text = shell(f"python scripts/results_table.py --check {name}", ROOT)
    assert "<!-- results: " in (ROOT / name).read_text() and not text


def test_links_lead_somewhere():
    for path in ROOT.glob("**/*.md"):
        if ".venv" not in path.parts:
            for link in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text(encoding="utf-8")):
                assert (path.parent / link).exists(), f"{path}: {link}"


def test_every_flag_of_our_own_is_in_the_readme():
    from resmlp_mt.models.presets import PRESETS

    for name in ("--token-mixer", "--mixing-heads", "--mixing-init-std", "--norm", *PRESETS):
        assert name in README


@real_data
def test_multi30k_example_runs_from_raw_text_to_a_row_of_results(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    for split, count in (("train", 400), ("val", 10), ("test_2016_flickr", 10)):
        for lang in ("en", "de"):
            lines = (Path(DATA) / "multi30k" / f"{split}.{lang}").read_text("utf-8").split("\n")
            (raw / f"{split}.{lang}").write_text("\n".join(lines[:count]) + "\n", "utf-8")
    variables = {"DATA": str(tmp_path / "bin"), "OUT": str(tmp_path / "out")}
    variables["RESULTS"] = str(tmp_path / "results.csv")
    scripts = ROOT / "examples" / "multi30k"
    prepare = (scripts / "prepare.sh").read_text()
    assert "--vocab-size 6000" in prepare  # 400 lines do not support that many
    copy = tmp_path / "project" / "examples" / "multi30k"
    shutil.copytree(scripts, copy)
    shutil.copytree(ROOT / "scripts", tmp_path / "project" / "scripts")
    (copy / "prepare.sh").write_text(prepare.replace("--vocab-size 6000", "--vocab-size 800"))
    shell(f"bash {copy}/prepare.sh --raw {raw}", tmp_path, **variables)
    shell(f"bash {copy}/train.sh transformer_tiny 3 4", tmp_path, **variables)
    shell(f"bash {copy}/train.sh resmlp_tiny 3 4", tmp_path, **variables)
    shell(f"bash {copy}/evaluate.sh resmlp_tiny 3", tmp_path, **variables)
    header, row = (tmp_path / "results.csv").read_text().splitlines()
    committed = (scripts / "results.csv").read_text().splitlines()[0]
    assert header == committed and row.startswith("resmlp_tiny,3,")


def test_shipped_models_are_small_and_have_cards():
    assert "multi30k-en-de" in pretrained_names()
    for name in pretrained_names():
        folder = ROOT / "resmlp_mt" / "pretrained" / name
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 16 * 2**20
        card = (folder / "README.md").read_text(encoding="utf-8")
        for heading in ("Data", "Terms", "Scores", "Limits"):
            assert f"## {heading}" in card


@real_data
def test_shipped_model_reaches_the_score_on_its_card():
    folder = Path(DATA) / "multi30k"
    sources, references = (
        (folder / f"test_2016_flickr.{lang}").read_text("utf-8").splitlines()
        for lang in ("en", "de")
    )
    card = (ROOT / "resmlp_mt/pretrained/multi30k-en-de/README.md").read_text("utf-8")
    claimed = float(re.search(r"BLEU \| ([\d.]+)", card)[1])
    translations = Translator.from_pretrained("multi30k-en-de").translate(sources)
    score = sacrebleu.corpus_bleu(translations, [references]).score
    assert score == pytest.approx(claimed, abs=0.1)  # rounding differs between processors
