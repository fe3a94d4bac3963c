"""examples/ende-mix: what is held out stays out, and one command trains, scores and records."""

import csv
import json
import lzma
import os
import re
import runpy
import shutil
import signal
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import sacrebleu
import torch
from cli.commands import assert_refused, run, start, wait_for
from real_data import DATA, needs

from examples.lesson import write_lesson
from resmlp_mt import Translator
from resmlp_mt.data.reading import read_lines
from resmlp_mt.files.finding import PRETRAINED

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "ende-mix"


@pytest.fixture(scope="module")
def script():
    """prepare.py as a module. Other examples have files of its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE)
        return SimpleNamespace(**runpy.run_path(str(EXAMPLE / "prepare.py")))


@pytest.fixture(scope="module")
def mix(tmp_path_factory):
    """The mix in little, 300 pairs of which every second is Tatoeba's; and the news."""
    folder = tmp_path_factory.mktemp("mix")
    write_lesson(folder, train=300, valid=20, test=4)
    for lang in ("en", "de"):
        text = (folder / f"train.{lang}").read_text("utf-8")
        with lzma.open(folder / f"train.{lang}.xz", "wt", encoding="utf-8") as stream:
            stream.write(text)
    with lzma.open(folder / "train.domain.xz", "wt") as stream:
        stream.write("tatoeba-ende\nbible\n" * 150)
    return folder


def prepare(mix, out, *flags, **options):
    command = ["python", EXAMPLE / "prepare.py", "--raw", mix, "--news", mix / "test"]
    command += ["--out", out, "--vocab-size", 400, "--held-out", 8, "--per-domain", 3, *flags]
    return run(*command, **options)


def test_the_sets_are_apart_spread_evenly_and_as_many_as_asked_for(script):
    rows = [(f"s{i % 190}", f"t{i}", ("tatoeba-a", "b-c", "b-d")[i % 3]) for i in range(240)]
    rows[7] = ("S0!", " T 7", "b-c")  # but for its form a side of what is held out
    sets = script.split(rows, 10, 6, 40)
    assert [len(part) for part in sets.values()] == [40, 10, 10, 12]
    assert [int(row[1][1:]) for row in sets["valid"]] == list(range(0, 240, 24))
    assert {row[2] for row in sets["tatoeba"]} == {"tatoeba-a"}
    assert [script.domain_of(row) for row in sets["domains"]] == ["b"] * 6 + ["tatoeba"] * 6
    held_out = sets["valid"] + sets["tatoeba"] + sets["domains"]
    everything = script.split(rows, 10, 6, None)["train"]
    assert set(sets["train"]) < set(everything) and rows[7] not in everything
    sources, targets = ({row[side] for row in held_out} for side in (0, 1))
    lost = {row for row in rows if row not in everything} - {rows[7]}
    assert lost == {row for row in rows if row[0] in sources or row[1] in targets}


def test_small_domains_are_repeated_and_some_sources_typed_without_care(script):
    rows = [(f"It is {i}.", f"Es ist {i}.", "large-x") for i in range(90)]
    rows += [(f"No {i}!", f"Nein {i}!", "small-y") for i in range(10)]
    assert script.balance(rows, 1.0) == rows
    balanced = Counter(script.balance(rows, 2.0))
    assert set(balanced) == set(rows) and sum(balanced.values()) == 90 + 30  # 90 * (1/9)**0.5
    assert {count for row, count in balanced.items() if row[2] == "small-y"} == {3}
    assert sum(Counter(script.balance(rows, 1e9)).values()) == 180
    assert script.repeat(rows, ["small", "small=3"]) == rows[90:] * 4
    assert script.type_carelessly(rows, 0.0, 0) == []
    for side in (0, 1):
        careless = script.type_carelessly(rows, 0.6, side)
        assert 40 <= len(careless) <= 60  # no pair has quotes
        sources, targets = ({row[i] for row in rows} for i in (side, 1 - side))
        assert all(row[side] not in sources and row[1 - side] in targets for row in careless)
        endings = {row[side][-1].isdigit() for row in careless}
        assert endings == {True, False} and any(row[side].islower() for row in careless)


def test_what_both_sides_share_is_swapped_on_both(script):
    swap = script.swap
    rows = [
        ("Tom has 3 dogs.", "Tom hat 3 Hunde.", "a-x"),
        ("Where is Tom?", "Wo ist Tom? Tom!", "a-x"),  # twice on one side
        ("It was 1.5 at 12:30 in the Tom-tent.", "Es war 1.5 um 12:30 im Tom-Zelt.", "a-x"),
        ("The dog sleeps.", "Der Hund schläft.", "a-x"),
    ]
    assert swap(rows[1:3], 1.0) == [] == swap(rows, 0.0)
    swapped = [pair for seed in range(200) for pair in swap(rows, 0.25, seed)]
    assert len(swapped) == 200 and swapped[:1] == swap(rows, 0.25, 0)
    names = set()
    for source, target, domain in swapped:
        parts = [
            re.fullmatch(f"(.+) {has} (.+) {dogs}", text)
            for text, has, dogs in ((source, "has", r"dogs\."), (target, "hat", r"Hunde\."))
        ]
        name, number = parts[0].groups()
        assert (name, number) == parts[1].groups() and domain == "a-x"
        assert (name == "Tom") != (number == "3") or (name, number) == ("Tom", "3")
        names.add(name.lower())
    # Pieces of the only long words, where spelled names end in a vowel and n, r, s, l or t.
    spliced = re.compile("(do|dog|dogs|hu|hun|hund|hunde)(gs|ogs|dogs|de|nde|unde|hunde)")
    assert any(map(spliced.fullmatch, names))
    assert len(swap(rows, 1.0)) == 5  # the only one four times, and another with an emoji


def bash(script, *arguments, **variables):
    """The status of a script, what it says, and what it complains of."""
    done = run("bash", EXAMPLE / script, *arguments, env=variables, check=False)
    return done.returncode, done.stdout, done.stderr


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_translator_that_ships_is_trained_from_nothing_and_further(mix, tmp_path):
    rows, made, further = (tmp_path / name for name in ("results.csv", "new", "further"))
    flags = ["--held-out", "8", "--per-domain", "3", "--repeat", "tatoeba"]  # of prepare.py
    flags += ["--copied", "0.1", "--workers", "1"]  # the last is of `resmlp-mt prepare`
    fixed = {"RESULTS": str(rows), "TOKENS": "600", "VOCAB": "500", "WIDTH": "32", "LAYERS": "1"}

    def train(out, model, **settings):
        call = [mix, mix / "test", out, model, *flags]
        return bash("everyday.sh", *call, **fixed | settings)

    half = made / "words"
    half.mkdir(parents=True)  # as a stop leaves it, without what is written last
    (half / "dict.en.txt").touch()
    status, *said = train(made, "", UPDATES="9")
    assert status == 0, said
    status, *said = train(further, made / "en-de", UPDATES="6", SOURCE="de", LR="1e-4")
    assert status == 0, said
    status, _, complaint = train(made, "")
    assert status == 2 and "UPDATES=9" in complaint
    report = json.loads((made / "short" / "report.json").read_text())
    assert all(max(report[n]["max_length"].values()) <= 20 for n in ("train", "train1"))
    # German lines that shall stay as they are, among all that it was trained on.
    report = json.loads((made / "all" / "report.json").read_text())
    pairs = [report[name]["kept"] for name in ("train", "train1")]
    assert 20 < pairs[1] < pairs[0] / 9
    one, other = (made / "all" / f"train1.en-de.{lang}.bin" for lang in ("en", "de"))
    assert one.read_bytes() == other.read_bytes()
    folders = made / "en-de", further / "de-en"
    old, new = (torch.load(folder / "model.pt")["model"] for folder in folders)
    (name,) = [name for name in old if name.startswith("encoder.embed")]
    moved = (new[name] - old[name]).float().abs().mean()
    assert 0 < moved < old[name].float().abs().mean() / 4  # it began where the first had ended
    assert [(row["model"], row["updates"], row["set"]) for row in read_rows(rows)] == [
        (model, updates, name)
        for model, updates in (("en-de", "9"), ("de-en", "6"))
        for name in ("newstest2014", "tatoeba", "domains")
    ]
    # All updates of the first part and of the second, of which it restored the state.
    logs = [(made / part / "train.log").read_text() for part in ("first", "run")]
    counts = [re.findall(r'train_num_updates": "(\d+)"', log)[-1] for log in logs]
    assert counts == ["5", "9"]


@needs("tatoeba")
@pytest.mark.parametrize("model", ["en-de", "de-en"])
def test_a_translator_that_ships_has_the_score_of_its_card(model, tmp_path):
    """Exported, which takes a fraction of the time and changes nothing but rounding."""
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    paths = (DATA / "tatoeba" / f"test.{language}" for language in model.split("-"))
    sources, references = (list(read_lines(path)) for path in paths)
    card = (PRETRAINED / model / "README.md").read_text("utf-8")
    claimed = float(re.search(r"^\| Tatoeba Challenge, 1,951 [^|]*\| ([\d.]+) \|", card, re.M)[1])
    # Lines as a whole, as everyday.sh scores them.
    run("resmlp-mt", "export", model, "--out", tmp_path / "fast")
    translator = Translator.from_pretrained(tmp_path / "fast")
    translations = translator.translate(sources, split_sentences=False)
    if model == "en-de":  # the card says 97 of 100
        some = references[:100]
        assert sum(map(str.__eq__, translator.translate(some), some)) >= 90
    score = sacrebleu.corpus_bleu(translations, [references]).score
    assert score == pytest.approx(claimed, abs=0.1)  # rounding differs between processors


def test_what_was_stopped_is_not_scored_and_the_same_command_trains_scores_and_records(
    mix, tmp_path
):
    prepare(mix, tmp_path / "bin")
    given = {"DATA": str(tmp_path / "bin"), "OUT": str(tmp_path), "TOKENS": "1000"}
    given |= {"FAMILIES": "resmlp_plus", "RESULTS": str(tmp_path / "results.csv")}
    process = start("bash", EXAMPLE / "compare.sh", "tiny", "7", env=given)
    wait_for("Start iterating", process)
    training = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    os.kill(int(training), signal.SIGTERM)
    said, _ = process.communicate(timeout=1800)
    assert process.returncode == 1 and "SIGTERM: saving and stopping" in said
    assert "was stopped; the same command goes on" in said
    assert not (tmp_path / "results.csv").exists()
    status, said, complaint = bash("compare.sh", "tiny", "7", UPDATES="4", **given)
    assert status == 0, said[-1000:] + complaint[-3000:]
    rows = read_rows(tmp_path / "results.csv")
    assert [(row["model"], row["set"], row["seed"]) for row in rows] == [
        ("resmlp_plus_tiny", name, "7") for name in ("newstest2014", "tatoeba", "domains")
    ]
    table = re.findall(r"^\| (\w+) \| (\d+) \|", said, re.M)
    assert table == [("bible", "3"), ("tatoeba", "3"), ("all", "6")]
    assert rows[0].keys() == read_rows(EXAMPLE / "results.csv")[0].keys()
    assert bash("compare.sh", "tiny", "7", UPDATES="4", **given)[0] == 0
    assert read_rows(tmp_path / "results.csv") == rows  # nothing is done twice


def test_files_that_do_not_belong_together_are_refused(mix, tmp_path):
    def refuse(folder, *flags, said):
        assert_refused(prepare(folder, tmp_path / "bin", *flags, check=False), said)

    copy = shutil.copytree(mix, tmp_path / "mix")
    with lzma.open(copy / "train.domain.xz", "at") as stream:
        stream.write("one too many\n")
    refuse(copy, said="length")
    packed = (copy / "train.de.xz").read_bytes()
    (copy / "train.de.xz").write_bytes(packed[: len(packed) // 2])
    refuse(copy, said="train.de.xz")
    (tmp_path / "also.tsv").write_text("Yes\tJa\nNo\n")
    refuse(mix, "--also", tmp_path / "also.tsv", said="also.tsv, line 2")
    for flag in ("--pairs=0", "--news=nix", "--repeat=bible=0", "--balance=nan"):
        refuse(mix, flag, said=flag.split("=")[0] if flag != "--news=nix" else "nix.en")
    assert not (tmp_path / "bin").exists()


def test_pairs_of_further_files_are_trained_on_but_for_those_held_out(mix, tmp_path):
    further, out = tmp_path / "letters.v2.tsv", tmp_path / "bin"
    prepare(mix, tmp_path / "plain")
    held_out = (tmp_path / "plain/raw/test1.en").read_text("utf-8").splitlines()[0]
    further.write_text(f"Dear Ida\tLiebe Ida\n{held_out.upper()}\tNein\nBye\tTschau\n", "utf-8")
    prepare(mix, out, "--also", further, "--repeat", "letters=4")
    counts = [
        json.loads((folder / "report.json").read_text())["train"]["kept"]
        for folder in (tmp_path / "plain", out)
    ]
    assert counts[1] == counts[0] + 2 * 5
    for name in ("valid.en", "test.de", "test1.de", "test2.domain"):
        assert (out / "raw" / name).read_bytes() == (tmp_path / "plain/raw" / name).read_bytes()


def test_text_in_the_target_language_is_none_that_the_filters_leave_out(mix, tmp_path):
    """Every second German line of the mix was never translated."""
    copy = shutil.copytree(mix, tmp_path / "mix")
    english, german = (list(read_lines(copy / f"train.{lang}.xz")) for lang in ("en", "de"))
    with lzma.open(copy / "train.de.xz", "wt", encoding="utf-8") as stream:
        stream.writelines(
            f"{pair[i % 2]}\n" for i, pair in enumerate(zip(german, english, strict=True))
        )
    prepare(copy, tmp_path / "bin", "--copied", "1", "--remove-identical")
    report = json.loads((tmp_path / "bin" / "report.json").read_text())
    assert report["train"]["dropped"]["both sides are the same text"] > 20
    assert report["train1"]["kept"] == report["train"]["kept"]


def half_a_day(time):
    hour = int(time[1])
    return f"{(hour - 1) % 12 + 1}:{time[2]} {'ap'[hour > 11]}m"


def test_what_must_be_kept_is_found_as_whole_words(tmp_path):
    lang = "de"
    command, said = ["python", EXAMPLE / "kept.py"], tmp_path / "translation"
    for folder in (tmp_path / "kept", tmp_path / "again"):
        run(*command, "write", "--lang", lang, "--each", 4, "--out", folder)
    original = (tmp_path / "kept" / f"source.{lang}").read_text()
    assert original == (tmp_path / "again" / f"source.{lang}").read_text()
    score = [*command, "score", tmp_path / "kept", said, "--json"]

    def kept(text):
        said.write_text(text)
        return json.loads(run(*score).stdout)["kept"]

    shares = kept(original)
    assert {share for kind, share in shares.items() if kind not in ("long", "all")} == {1.0}
    assert len(shares) == 19 and shares["long"] == 0
    other = re.sub(r"(\d)[.,](?=\d{3}\b)", lambda n: n[1] + ".,"[lang == "de"], original)
    assert set(kept(other).values()) == {1.0}
    changed = re.sub(r"\b(\d+)\b(?=\D*$)", r"\g<1>0", original, flags=re.M)
    found = kept(changed.replace("https://", "https:// "))
    assert (found["number"], found["url"], found["name"]) == (0, 0, 1)
    assert kept(re.sub(r"\b(\d+):(\d\d)", half_a_day, original))["time"] == 1
    said.write_text("nichts\n")
    assert_refused(run(*score, check=False), "translation")
    (tmp_path / "kept" / "kept.tsv").write_text("name\tTom\nTom\n")
    assert_refused(run(*score, check=False), "kept.tsv, line 2")


def test_one_script_measures_what_a_card_says(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    raw = tmp_path / "data" / "raw"
    raw.mkdir(parents=True)
    for name in ("test", "test1", "test2"):
        (raw / f"{name}.en").write_text("A man rides a bike.\nTwo dogs play in the snow.\n")
        (raw / f"{name}.de").write_text("Ein Mann fährt Fahrrad.\nZwei Hunde spielen im Schnee.\n")
    (raw / "test2.domain").write_text("a\nb\n")
    call = ["measure.sh", "multi30k-en-de", tmp_path / "data", tmp_path / "out"]
    variables = {"KEPT": "4", "CHALLENGE": str(raw / "test")}
    assert bash(*call, **variables)[0] == 2 and not (tmp_path / "out").exists()
    (tmp_path / "data" / "train.en-de.en.idx").touch()
    status, said, complaint = bash(*call, **variables)
    assert status == 0, said + complaint
    scores = re.findall(r"/(\w+)\.de +[\d.]+ ", said)
    assert scores == ["newstest2014", "tatoeba", "domains", "challenge", "messages", "same"]
    for line in ("| up to 10 words | 2 |", "| all | 2 |", "| double-spaces | 2 |"):
        assert line in said
    same = (tmp_path / "out" / "same.de").read_text().splitlines()
    expected = sum(map(str.__eq__, same, (raw / "test1.de").read_text().splitlines()))
    assert f"{expected} of 2 lines stay as they are" in said
    kept = (tmp_path / "out" / "kept" / "translation").read_text().splitlines()
    assert len(kept) == 72 and all(kept)
