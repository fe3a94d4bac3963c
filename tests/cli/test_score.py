import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import assert_refused, run
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
    command = ["resmlp-mt", "score", files["hyp"], "-", "--ref", files["ref"]]
    output = run(*command, stdin=files["same"].read_text()).stdout
    assert re.search(r"^-  +100\.00", output, re.M) and str(files["hyp"]) in output
    assert "BLEU: nrefs:1|case:mixed|eff:no|tok:13a" in output


def test_several_references_are_used_together(files):
    one, other = ["--ref", files["ref"]], ["--ref", files["hyp"]]
    rows = json.loads(run("resmlp-mt", "score", files["hyp"], *one, *other, "--json").stdout)
    assert rows[0]["BLEU"] == 100 and "nrefs:2" in rows[0]["signatures"]["BLEU"]
    assert rows[0]["missing_references"] == {str(files["ref"]): 0, str(files["hyp"]): 0}


def test_a_blank_line_among_several_references_is_none(files, tmp_path):
    """As SacreBLEU's None. An empty reference would be nearest in length to any short line."""
    other = tmp_path / "other.de"
    other.write_text(f"{REFERENCE[1]}\n \n\n")
    command = ["resmlp-mt", "score", files["hyp"], "--ref", files["ref"], "--ref", other]
    (row,) = json.loads(run(*command, "--json").stdout)
    references = [REFERENCE, [REFERENCE[1], None, None]]
    for name, metric in {"BLEU": BLEU(), "chrF": CHRF(), "TER": TER()}.items():
        assert row[name] == round(metric.corpus_score(HYPOTHESIS, references).score, 2)
        assert row["signatures"][name] == str(metric.get_signature())
    assert row["missing_references"] == {str(files["ref"]): 0, str(other): 2}
    assert f"{other}: 2 of 3 lines are blank, and count as missing" in run(*command).stdout
    # A line with none at all, and a single file, have an empty reference.
    files["ref"].write_text("\n".join([*REFERENCE[:2], "", ""]))
    rows = [json.loads(run(*c, "--json").stdout)[0] for c in (command, command[:-2])]
    assert rows[1]["BLEU"] == sacrebleu(files)[0]["score"] == rows[0]["BLEU"]
    assert "missing_references" not in rows[1]


def test_tokenizer_is_sacrebleus(files):
    command = ["resmlp-mt", "score", files["hyp"], "--ref", files["ref"], "--json"]
    rows = json.loads(run(*command, "--tokenize", "char").stdout)
    assert "tok:char" in rows[0]["signatures"]["BLEU"]
    assert_refused(run(*command, "--tokenize", "x", check=False), "--tokenize x: SacreBLEU has 13a")
    if importlib.util.find_spec("mecab_ko") is None:
        said = "--tokenize ko-mecab: ", "pip install sacrebleu[ko]"
        assert_refused(run(*command, "--tokenize", "ko-mecab", check=False), *said)


def test_help_names_all_tokenizers_of_sacrebleu():
    said = "".join(run("resmlp-mt", "score", "--help").stdout.split())  # lines break at hyphens
    assert [name for name in BLEU.TOKENIZERS if name not in said] == []


CHINESE = ["今天天气很好,我们去公园散步。", "猫坐在垫子上。"]
JAPANESE = ["これは新しいペンです。", "猫が好きです。"]
THAI = ["ฉันรักแมวสีขาว", "แมวนอนบนเสื่อ"]
KOREAN = ["오늘은 날씨가 아주 좋다.", "고양이가 매트 위에 앉아 있다."]


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
    lines, tokenizers, warned, tmp_path
):
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    for name in tokenizers:
        done = run("resmlp-mt", "score", path, "--ref", path, "--tokenize", name, "--json")
        assert json.loads(done.stdout)[0]["TER"] == 0
        if not warned:
            assert done.stderr == "" and json.loads(done.stdout)[0]["BLEU"] > 99.9
            continue
        assert done.stderr.startswith(f"resmlp-mt score: --tokenize {name} takes text without")
        assert "sacrebleu[ja]" in done.stderr and done.stderr.count("\n") == 1


def test_ter_counts_chinese_characters(tmp_path):
    (tmp_path / "ref").write_text("\n".join(CHINESE) + "\n", "utf-8")
    (tmp_path / "hyp").write_text("\n".join(CHINESE).replace("步", "歩") + "\n", "utf-8")
    command = ["resmlp-mt", "score", tmp_path / "hyp", "--ref", tmp_path / "ref", "--json"]
    (row,) = json.loads(run(*command, "--tokenize", "zh").stdout)
    assert row["TER"] == 4.55  # one of 15 + 7 characters
    assert "|norm:yes|punct:yes|asian:yes|" in row["signatures"]["TER"]


def test_files_out_of_step_are_refused(files, tmp_path):
    (tmp_path / "short.de").write_text("Er liest ein Buch.\n")
    (tmp_path / "empty.de").write_text("")
    command = ["resmlp-mt", "score", "--ref", files["ref"]]
    assert_refused(run(*command, tmp_path / "short.de", check=False), "has 1 lines", "has 3")
    assert_refused(run(*command, tmp_path / "empty.de", check=False), "empty.de: empty file")
    assert_refused(run(*command, tmp_path / "none.de", check=False), "none.de: no such file")


def test_bleu_of_lines_too_short_for_it_is_explained(files, tmp_path):
    short, other = tmp_path / "short.de", tmp_path / "other.de"
    short.write_text("Er liest viel\nein Hund\n")
    other.write_text("Er liest wenig\nein Hund\n")
    done = run("resmlp-mt", "score", other, "--ref", short, "--json")
    lines = [path.read_text().splitlines() for path in (other, short)]
    effective = BLEU(effective_order=True).corpus_score(lines[0], lines[1:]).score
    assert json.loads(done.stdout)[0]["BLEU"] == 0 < effective
    assert "no line of 4 tokens" in done.stderr and done.stderr.count("\n") == 1
    assert f"effective order it is {effective:.2f}" in done.stderr
    other.write_text("x y z\nx y\n")  # what is all wrong needs no note
    assert run("resmlp-mt", "score", other, "--ref", short).stderr == ""
    assert run("resmlp-mt", "score", files["hyp"], "--ref", files["ref"]).stderr == ""


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
    table = run(*command).stdout
    assert f"p {rows[1][f'paired_{test}']['BLEU']['p_value']:.3f}" in table
    assert f"{test}:60|seed:{seed}|" in table


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_a_system_does_not_differ_from_itself(files, test):
    command = ["resmlp-mt", "score", files["hyp"], files["hyp"], "--ref", files["ref"], "--json"]
    rows = json.loads(run(*command, f"--paired-{test}", f"--paired-{test}-n", 20).stdout)
    assert [result["p_value"] for result in rows[1][f"paired_{test}"].values()] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("changed", [1, 2, 3])
def test_a_few_lines_are_no_proof(files, changed):
    """All ways of exchanging k lines are equally likely, and two make the whole difference."""
    files["hyp"].write_text("\n".join([*["falsch"] * changed, *REFERENCE[changed:]]))
    command = ["resmlp-mt", "score", files["hyp"], files["same"], "--ref", files["ref"], "--json"]
    rows = json.loads(run(*command, "--paired-ar").stdout)
    for result in rows[1]["paired_ar"].values():
        assert result["p_value"] == 2 / 2**changed


def test_standard_input_is_named_once(files):
    for names in (["-", "-", "--ref", files["ref"]], ["-", "--ref", "-"]):
        refused = run("resmlp-mt", "score", *names, stdin="ein Hund\n", check=False)
        assert_refused(refused, "-: standard input can be read once")


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_impossible_comparisons_are_refused(files, test):
    score = ["resmlp-mt", "score", "--ref", files["ref"], files["hyp"]]
    paired, number = f"--paired-{test}", f"--paired-{test}-n"
    assert_refused(run(*score, paired, check=False), "name two or more")
    both = run(*score, files["same"], "--paired-ar", "--paired-bs", check=False)
    assert_refused(both, "not allowed with")
    for flag in ("--seed", number):
        refused = run(*score, files["same"], paired, flag, 0, check=False)
        assert_refused(refused, f"{flag} must be at least 1")
        alone = run(*score, flag, 9, check=False)
        assert_refused(alone, f"{flag} is for --paired-")
    for seed, said in (("0", "=0 in the environment: SacreBLEU"), ("abc", "=abc in the env")):
        refused = run(*score, files["same"], paired, env={"SACREBLEU_SEED": seed}, check=False)
        assert_refused(refused, f"SACREBLEU_SEED{said}")
    one = Path(files["ref"]).with_name("one")
    one.write_text("ein Hund\n")
    refused = run("resmlp-mt", "score", one, one, "--ref", one, paired, check=False)
    assert_refused(refused, f"{paired} draws lines anew, and there is one")


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


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ([], "--ref"),
        (["--source", "hyp.de"], "--source"),
        (["--model", "en-de"], "--source"),
        (["--model", "en-de", "--source", "same.de", "--ref", "ref.de"], "--ref"),
        (["--model", "en-de", "--source", "short.de"], "short.de ends before line 3"),
    ],
)
def test_judging_refuses_what_is_of_no_use(files, tmp_path, flags, named):
    (tmp_path / "short.de").write_text("Ein\nZwei\n")
    refused = run("resmlp-mt", "score", "hyp.de", *flags, cwd=tmp_path, check=False)
    assert_refused(refused, named)
