import importlib.util
import json
import math
import os
import re
import subprocess
import sys

import pytest
from cli.commands import call, refuse, run
from sacrebleu.metrics import BLEU, CHRF, TER

REFERENCE = ["Der Hund sieht die Katze.", "Heute schläft das alte Kind.", "Er liest ein Buch."]
HYPOTHESIS = ["Der Hund sieht eine Katze.", "heute schläft das Kind.", "Er liest ein Buch ."]


@pytest.fixture
def files(tmp_path):
    paths = {}
    for name, lines in (("ref", REFERENCE), ("hyp", HYPOTHESIS), ("same", REFERENCE)):
        paths[name] = tmp_path / f"{name}.de"
        paths[name].write_text("\n".join(lines) + "\n")
    return paths


@pytest.fixture
def score(capsys):
    """score(*words): what it prints, or with --json what that says."""

    def print_score(*words):
        capsys.readouterr()
        call("score", *words)
        said = capsys.readouterr().out
        return json.loads(said) if "--json" in words else said

    return print_score


def sacrebleu(files, *options):
    command = [sys.executable, "-m", "sacrebleu", files["ref"], "-i", files["hyp"], "-w", "2"]
    command += ["-m", "bleu", "chrf", "ter", *options]
    return json.loads(subprocess.run(map(str, command), capture_output=True, check=True).stdout)


@pytest.mark.parametrize("lowercase", [[], ["--lowercase"]])
def test_scores_and_signatures_are_those_of_sacrebleu(files, lowercase, score):
    rows = score(files["hyp"], files["same"], "--ref", files["ref"], "--json", *lowercase)
    for expected in sacrebleu(files, *(["-lc", "--chrf-lowercase"] if lowercase else [])):
        name = {"BLEU": "BLEU", "chrF2": "chrF", "TER": "TER"}[expected["name"]]
        assert rows[0][name] == expected["score"]
        assert rows[0]["signatures"][name] == expected["signature"]
    assert rows[1]["BLEU"] == 100 and rows[1]["TER"] == 0


def test_table_shows_each_file_and_the_signatures(files):
    command = ["resmlp-mt", "score", files["hyp"], "-", "--ref", files["ref"]]
    output = run(*command, stdin=files["same"].read_text()).stdout
    assert re.search(r"^-  +100\.00", output, re.M) and str(files["hyp"]) in output
    assert "BLEU: nrefs:1|case:mixed|eff:no|tok:13a" in output


def test_a_blank_line_among_several_references_is_none(files, tmp_path, score):
    """As SacreBLEU's None. An empty reference would be nearest in length to any short line."""
    other = tmp_path / "other.de"
    other.write_text(f"{REFERENCE[1]}\n \n\n")
    command = [files["hyp"], "--ref", files["ref"], "--ref", other]
    (row,) = score(*command, "--json")
    references = [REFERENCE, [REFERENCE[1], None, None]]
    for name, metric in {"BLEU": BLEU(), "chrF": CHRF(), "TER": TER()}.items():
        assert row[name] == round(metric.corpus_score(HYPOTHESIS, references).score, 2)
        assert row["signatures"][name] == str(metric.get_signature())
    assert row["missing_references"] == {str(files["ref"]): 0, str(other): 2}
    assert f"{other}: 2 of 3 lines" in score(*command)
    # A line with none at all, and a single file, have an empty reference.
    files["ref"].write_text("\n".join([*REFERENCE[:2], "", ""]))
    rows = [score(*words, "--json")[0] for words in (command, command[:-2])]
    assert rows[1]["BLEU"] == sacrebleu(files)[0]["score"] == rows[0]["BLEU"]
    assert "missing_references" not in rows[1]


def test_tokenizer_is_sacrebleus(files, score):
    command = [files["hyp"], "--ref", files["ref"], "--json", "--tokenize"]
    assert "tok:char" in score(*command, "char")[0]["signatures"]["BLEU"]
    assert "--tokenize x" in refuse("score", *command, "x")
    if importlib.util.find_spec("mecab_ko") is None:
        assert "sacrebleu[ko]" in refuse("score", *command, "ko-mecab")
    said = "".join(run("resmlp-mt", "score", "--help").stdout.split())  # lines break at hyphens
    assert not [name for name in BLEU.TOKENIZERS if name not in said]


CHINESE = ["今天天气很好,我们去公园散步。", "猫坐在垫子上。"]
JAPANESE = ["これは新しいペンです。", "猫が好きです。"]
THAI = ["ฉันรักแมวสีขาว", "แมวนอนบนเสื่อ"]
KOREAN = ["오늘은 날씨가 아주 좋다.", "고양이가 매트 위에 앉아 있다."]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("lines", "tokenizers", "warned"),
    [
        (CHINESE, ["13a", "intl", "none"], True),
        (CHINESE, ["zh", "char"], False),
        (JAPANESE, ["13a"], True),
        (THAI, ["13a", "zh"], True),  # zh splits Chinese characters alone
        (THAI, ["char"], False),
        (KOREAN, ["13a"], False),
        ([*REFERENCE, CHINESE[1]], ["13a"], False),
    ],
)
def test_tokenizers_that_take_sentences_for_words_are_warned_of(
    lines, tokenizers, warned, tmp_path, score
):
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    for name in tokenizers:
        command = [path, "--ref", path, "--tokenize", name, "--json"]
        if warned:
            with pytest.warns(UserWarning, match=f"--tokenize {name}"):
                (row,) = score(*command)
        else:
            (row,) = score(*command)
            assert row["BLEU"] > 99.9
        assert row["TER"] == 0


@pytest.mark.parametrize("test", ["bs", "ar"])
@pytest.mark.parametrize(("options", "seed"), [([], 12345), (["--seed", 7], 7)])
def test_paired_tests_are_those_of_sacrebleu(files, tmp_path, test, options, seed):
    (tmp_path / "other.de").write_text("\n".join([HYPOTHESIS[0], *REFERENCE[1:]]) + "\n")
    systems = [files["hyp"], tmp_path / "other.de", files["same"]]
    # Fifteen lines: three would prove less than SacreBLEU says.
    for path in (files["ref"], *systems):
        path.write_text(path.read_text() * 5)
    flags = [f"--paired-{test}", f"--paired-{test}-n", 60]
    command = [sys.executable, "-m", "sacrebleu", files["ref"], "-m", "bleu", "chrf", "ter"]
    command += ["-i", *systems, *flags, "-f", "latex", "-w", "4"]  # its JSON fails with TER
    environment = os.environ | {"SACREBLEU_SEED": str(seed)}
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, check=True)
    table = [line for line in done.stdout.decode().splitlines() if ".de & " in line]
    command = ["resmlp-mt", "score", *systems, "--ref", files["ref"], *flags, *options]
    rows = json.loads(run(*command, "--json").stdout)
    for row, line in zip(rows, table, strict=True):
        for name, cell in zip(("BLEU", "chrF", "TER"), line.split("&")[1:], strict=True):
            result = row[f"paired_{test}"][name]
            found = [row[name], *(result[key] for key in ("mean", "ci") if test == "bs")]
            found += [result["p_value"]] if row is not rows[0] else []
            theirs = [float(number) for number in re.findall(r"\d+\.\d+", cell)]
            assert found == pytest.approx(theirs, abs=0.006)
            assert f"{test}:60|seed:{seed}|" in row["signatures"][name]
    assert f"p {rows[1][f'paired_{test}']['BLEU']['p_value']:.3f}" in run(*command).stdout


@pytest.mark.parametrize("changed", [1, 2, 3])
def test_a_few_lines_are_no_proof(files, changed, score):
    """All ways of exchanging k lines are equally likely, and two make the whole difference."""
    files["hyp"].write_text("\n".join([*["falsch"] * changed, *REFERENCE[changed:]]))
    rows = score(files["hyp"], files["same"], "--ref", files["ref"], "--json", "--paired-ar")
    for result in rows[1]["paired_ar"].values():
        assert result["p_value"] == 2 / 2**changed


def judge(raw, model, *options, hypotheses="test.de"):
    command = ["resmlp-mt", "score", raw / hypotheses, "--source", raw / "test.en"]
    return [float(x) for x in run(*command, "--model", model, *options).stdout.split()]


def test_a_model_judges_as_fairseq_scores_references(trained, prepared, raw, tmp_path):
    flags = ["--path", trained / "checkpoint_best.pt", "--gen-subset", "test", "--score-reference"]
    output = run("resmlp-mt", "generate", prepared, *flags).stdout
    found = re.findall(r"^P-(\d+)\t(.*)$", output, re.M)
    by_line = {int(i): [float(x) for x in scores.split()] for i, scores in found}
    expected = [-math.log(2) * sum(by_line[i]) for i in range(30)]  # fairseq's are in bits
    scores = judge(raw, trained)
    assert scores == pytest.approx(expected, abs=0.01)
    lengths = [len(by_line[i]) for i in range(30)]
    means = [score / length for score, length in zip(scores, lengths, strict=True)]
    assert judge(raw, trained, "--per-subword") == pytest.approx(means, abs=1e-3)
    run("resmlp-mt", "export", trained, "--out", tmp_path / "exported")
    assert judge(raw, tmp_path / "exported", "--threads", 1) == pytest.approx(scores, abs=0.01)


def test_what_a_model_has_no_room_for_is_infinitely_unlikely(packed, tmp_path):
    sides = {"test.en": ["a dog", "a " * 70, "a dog", ""], "test.de": ["Hund", "a", "b " * 70, ""]}
    for name, lines in sides.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    scores = judge(tmp_path, packed)
    assert [math.isinf(score) for score in scores] == [False, True, True, False]
