import json
import subprocess
import sys

import pytest
from cli.commands import assert_refused, run

REFERENCE = ["Der Hund sieht die Katze.", "Heute schläft das alte Kind.", "Er liest ein Buch."]
HYPOTHESIS = ["Der Hund sieht eine Katze.", "heute schläft das Kind.", "Er liest ein Buch ."]


@pytest.fixture
def files(tmp_path):
    paths = {}
    for name, lines in (("ref", REFERENCE), ("hyp", HYPOTHESIS), ("same", REFERENCE)):
        paths[name] = tmp_path / f"{name}.de"
        paths[name].write_text("\n".join(lines) + "\n")
    return paths


def sacrebleu(files, *options):
    command = [sys.executable, "-m", "sacrebleu", files["ref"], "-i", files["hyp"], "-w", "2"]
    result = subprocess.run(
        [*map(str, command), "-m", "bleu", "chrf", "ter", *options], capture_output=True, check=True
    )
    return json.loads(result.stdout)


@pytest.mark.parametrize("lowercase", [[], ["--lowercase"]])
def test_scores_and_signatures_are_those_of_sacrebleu(files, lowercase):
    command = ["resmlp-mt", "score", files["hyp"], files["same"], "--ref", files["ref"], "--json"]
    rows = json.loads(run(*command, *lowercase).stdout)
    for expected in sacrebleu(files, *(["-lc", "--chrf-lowercase"] if lowercase else [])):
        name = {"BLEU": "BLEU", "chrF2": "chrF", "TER": "TER"}[expected["name"]]
        assert rows[0][name] == expected["score"]
        assert rows[0]["signatures"][name] == expected["signature"]
    assert rows[1]["BLEU"] == 100 and rows[1]["TER"] == 0


def test_table_shows_each_file_and_the_signatures(files):
    output = run("resmlp-mt", "score", files["hyp"], files["same"], "--ref", files["ref"]).stdout
    assert "100.00" in output and str(files["hyp"]) in output
    assert "BLEU: nrefs:1|case:mixed|eff:no|tok:13a" in output


def test_several_references_are_used_together(files):
    one, other = ["--ref", files["ref"]], ["--ref", files["hyp"]]
    rows = json.loads(run("resmlp-mt", "score", files["hyp"], *one, *other, "--json").stdout)
    assert rows[0]["BLEU"] == 100 and "nrefs:2" in rows[0]["signatures"]["BLEU"]


def test_tokenizer_is_sacrebleus(files):
    command = ["resmlp-mt", "score", files["hyp"], "--ref", files["ref"], "--json"]
    rows = json.loads(run(*command, "--tokenize", "char").stdout)
    assert "tok:char" in rows[0]["signatures"]["BLEU"]
    assert_refused(run(*command, "--tokenize", "x", check=False), "--tokenize x: SacreBLEU has 13a")


def test_files_out_of_step_are_refused(files, tmp_path):
    (tmp_path / "short.de").write_text("Er liest ein Buch.\n")
    (tmp_path / "empty.de").write_text("")
    command = ["resmlp-mt", "score", "--ref", files["ref"]]
    assert_refused(run(*command, tmp_path / "short.de", check=False), "has 1 lines", "has 3")
    assert_refused(run(*command, tmp_path / "empty.de", check=False), "empty.de: empty file")
    assert_refused(run(*command, tmp_path / "none.de", check=False), "none.de: no such file")
