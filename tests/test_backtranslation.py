"""examples/backtranslation: from two files to two rows, however often it is stopped."""

import csv
import lzma
import re
from pathlib import Path

import pytest
import sentencepiece
from cli.commands import assert_refused, run

from examples.lesson import write_lesson
from resmlp_mt.data.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "backtranslation"


@pytest.fixture
def mix(tmp_path):
    """The mix in little: 260 pairs, and the news."""
    write_lesson(tmp_path, train=260, valid=8, test=3)
    for lang in ("en", "de"):
        text = (tmp_path / f"train.{lang}").read_bytes()
        (tmp_path / f"train.{lang}.xz").write_bytes(lzma.compress(text))
    (tmp_path / "train.domain.xz").write_bytes(lzma.compress(b"tatoeba-ende\nbible\n" * 130))
    return tmp_path


def test_the_study_goes_on_where_it_was_stopped_and_ends_with_its_rows(mix):
    variables = {
        "PAIRS": "120", "MONOLINGUAL": "50", "UPDATES": "4", "TOKENS": "800", "VOCABULARY": "400",
        "HELD_OUT": "--held-out 6 --per-domain 3", "DATA": str(mix / "bin"),
        "OUT": str(mix / "out"), "RESULTS": str(mix / "results.csv"), "DTYPE": "",
    }  # fmt: skip
    command = ["bash", EXAMPLE / "run.sh", mix, mix / "test"]
    taken = mix / "out" / "mixed.en"
    taken.mkdir(parents=True)  # where a file shall be, so that the fourth step fails
    # As if these were done, which are what is done with the mixed text too.
    (mix / "out" / "without").mkdir()
    for mark in ("trained", "evaluated"):
        (mix / "out" / "without" / mark).touch()
    assert_refused(run(*command, env=variables, check=False), "mixed.en: a folder")
    taken.rmdir()
    samples = (mix / "out" / "sampled.en").stat().st_mtime_ns
    done = run(*command, env=variables)
    steps = re.findall("Z (.*)", done.stdout)
    wanted = "translate back|prepare the mixed text|train with|evaluate with|done"
    assert steps == wanted.split("|")
    assert (mix / "out" / "sampled.en").stat().st_mtime_ns == samples

    bitext, held_out = mix / "bin" / "bitext", set()
    for name in ("valid", "test1", "test2"):
        held_out |= set((bitext / "raw" / f"{name}.de").read_text().splitlines())
    monolingual = (bitext / "raw" / "monolingual.de").read_text().splitlines()
    trained_on = (bitext / "raw" / "train.de").read_text().splitlines()
    assert len(monolingual) == 50 and not (held_out | set(trained_on)) & set(monolingual)
    sides = [(mix / "out" / f"mixed.{lang}").read_text().splitlines() for lang in ("en", "de")]
    pairs = list(zip(*sides, strict=True))
    made = [pair for pair in pairs if pair[0].startswith("<BT> ")]
    assert made and [target for _, target in made] == [x for x in monolingual if x in sides[1]]
    for folder in ("bitext", "mixed"):  # the tag is known, and one subword
        path = mix / "bin" / folder
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(path / "spm.model"))
        words = Vocabulary(path / "dict.en.txt")
        found = pieces.encode("<BT> A man.", out_type=str)
        assert found[:3] == ["▁", "<BT>", "▁A"] and words.index("<BT>") != words.unk()

    with open(mix / "results.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["set"] for row in rows] == ["newstest2014", "tatoeba", "domains"]
    found = {(row["model"], row["updates"], int(row["pairs"]) > 120) for row in rows}
    assert found == {("resmlp_plus_tiny", "4", True)}
