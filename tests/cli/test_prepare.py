import gzip
import json
import lzma
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import sentencepiece
from cli.commands import assert_refused, fill_disk, flags_of, prepare, refuse, run
from fairseq.data import Dictionary, data_utils

from resmlp_mt.data.subwords import train_subwords


def decode(folder, split, lang):
    """The text of a binarized split, read with fairseq and SentencePiece alone."""
    words = Dictionary.load(str(folder / f"dict.{lang}.txt"))
    data = data_utils.load_indexed_dataset(str(folder / f"{split}.en-de.{lang}"), words)
    model = next(folder / n for n in (f"spm.{lang}.model", "spm.model") if (folder / n).exists())
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return [subwords.decode([words[i] for i in line[:-1].tolist()]) for line in data]


def add(raw, tmp_path, train, valid=None):
    """A copy of the raw text with more pairs; a text alone is of both sides."""
    folder = shutil.copytree(raw, tmp_path / "raw")
    for split, pairs in ("train", train), ("valid", valid or []):
        for side, lang in enumerate(("en", "de")):
            lines = [pair if isinstance(pair, str) else pair[side] for pair in pairs]
            with open(folder / f"{split}.{lang}", "a", encoding="utf-8", newline="") as text:
                text.writelines(f"{line}\n" for line in lines)
    return folder


@pytest.mark.parametrize("sharing", ["--joined", "--separate"])
def test_binarized_data_decodes_to_the_raw_text(raw, tmp_path, sharing):
    prepare(raw, tmp_path / "out", sharing)
    for split in ("train", "valid", "test"):
        for lang in ("en", "de"):
            expected = (raw / f"{split}.{lang}").read_text().splitlines()
            assert decode(tmp_path / "out", split, lang) == expected
    joined = sharing == "--joined"
    assert (tmp_path / "out" / "spm.model").exists() == joined
    dictionaries = [(tmp_path / "out" / f"dict.{lang}.txt").read_text() for lang in ("en", "de")]
    assert (dictionaries[0] == dictionaries[1]) == joined


def test_no_piece_that_sentencepiece_emits_is_unknown(prepared):
    # Pieces of which longer ones are made stand nowhere alone in the text that they come from.
    model = sentencepiece.SentencePieceProcessor(model_file=str(prepared / "spm.model"))
    for lang in ("en", "de"):
        words = Dictionary.load(str(prepared / f"dict.{lang}.txt"))
        pieces = [model.id_to_piece(i) for i in range(len(model)) if not model.is_control(i)]
        counts = {piece: words.count[words.index(piece)] for piece in pieces}
        assert [p for p in pieces if words.index(p) == words.unk()] == ["<unk>"]
        assert min(counts.values()) == 0  # the case that the test is about
        assert len(words) % 8 == 0


def test_subwords_of_a_model_are_taken(raw, prepared, packed, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for split in ("train", "valid", "test"):
        for lang in ("en", "de"):
            lines = (raw / f"test.{lang}").read_text().splitlines(keepends=True)
            (few / f"{split}.{lang}").write_text("".join(lines[:20]))
    prepare(few, tmp_path / "like", "--like", packed)
    for name in ("spm.model", "dict.en.txt", "dict.de.txt"):
        assert (tmp_path / "like" / name).read_bytes() == (prepared / name).read_bytes()
    assert decode(tmp_path / "like", "train", "de") == (few / "train.de").read_text().splitlines()
    # A model that is trained further still takes lines as long as before.
    lengths = [
        json.loads((folder / "text.json").read_text())["usual_length"]
        for folder in (tmp_path / "like", packed)
    ]
    assert lengths[0] == lengths[1] > 32
    langs = ["--source-lang", "de", "--target-lang", "fr"]
    for lang in ("de", "en"):
        (few / f"train.{lang}").rename(few / f"train.{'fr' if lang == 'en' else lang}")
    for options, said in (
        (["--like", packed, "--vocab-size", 8000], "--vocab-size is for"),
        (["--like", packed, "--joined"], "--joined is for"),
        (["--like", packed, *langs], "not for de and fr"),
        (["--like", tmp_path / "nosuch"], "no such model"),
    ):
        assert said in refuse("prepare", *flags_of(few, tmp_path / "out", *options))


def test_binarized_data_is_what_fairseq_makes_of_the_subwords(raw, prepared, tmp_path):
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(prepared / "spm.model"))
    for lang in ("en", "de"):
        lines = (raw / f"train.{lang}").read_text().splitlines()
        pieces = subwords.encode(lines, out_type=str)
        (tmp_path / f"train.{lang}").write_text("".join(" ".join(x) + "\n" for x in pieces))
    dictionary = ["--srcdict", prepared / "dict.en.txt", "--joined-dictionary"]
    languages = ["--source-lang", "en", "--target-lang", "de"]
    files = ["--trainpref", tmp_path / "train", "--destdir", tmp_path / "out"]
    run("fairseq-preprocess", *languages, *dictionary, *files)
    for lang in ("en", "de"):
        for kind in ("bin", "idx"):
            name = f"train.en-de.{lang}.{kind}"
            assert (prepared / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_processes_make_what_one_makes_and_name_what_is_wrong(raw, tmp_path):
    folder = shutil.copytree(raw, tmp_path / "raw")
    for lang in ("en", "de"):
        lines = (raw / f"train.{lang}").read_text().splitlines()
        # Several blocks, with duplicates from one to the other.
        text = "".join(f"{line} {i % 4000 // 10}\n" for i, line in enumerate(lines * 26))
        (folder / f"train.{lang}").write_text(text)
    flags = ["--remove-identical", "--remove-duplicates"]
    for workers in (1, 3):
        prepare(folder, tmp_path / f"by{workers}", *flags, "--workers", workers)
    one, three = (snapshot(tmp_path / f"by{workers}") for workers in (1, 3))
    assert one == three
    report = json.loads(one["report.json"])["train"]
    assert sum(report["dropped"].values()) + report["kept"] == 26 * 400
    assert 0 < report["kept"] < 26 * 400
    lines = (folder / "train.de").read_bytes().split(b"\n")
    lines[9000] = b"T\xfcr"
    (folder / "train.de").write_bytes(b"\n".join(lines))
    refused = prepare(folder, tmp_path / "out", "--workers", 2, check=False)
    assert_refused(refused, "train.de, line 9001: not UTF-8")


def test_packed_files_and_several_tests_are_read(raw, tmp_path, prepared):
    folder = shutil.copytree(raw, tmp_path / "raw")
    for opener, name in ((gzip, "train.en"), (lzma, "train.de")):
        suffix = {gzip: ".gz", lzma: ".xz"}[opener]
        (folder / (name + suffix)).write_bytes(opener.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    found = prepare(folder, tmp_path / "out", "--test", f"{raw / 'test'},{folder / 'valid'}")
    assert found.stdout.count("the same text as valid") == found.stdout.count("the same text") == 1
    for name in ("train.en-de.en.bin", "train.en-de.de.bin", "spm.model"):
        assert (tmp_path / "out" / name).read_bytes() == (prepared / name).read_bytes()
    assert decode(tmp_path / "out", "test1", "en") == decode(prepared, "valid", "en")


def test_subwords_are_learnt_from_as_many_sentences_as_asked_for(raw, tmp_path):
    prepare(raw, tmp_path / "out", "--subword-sentences", 200, "--vocab-size", 250)
    sides = [(raw / f"train.{lang}").read_text("utf-8").splitlines() for lang in ("en", "de")]
    spread = [side[3::4] for side in sides]  # 100 pairs of 400
    lines = [line for pair in zip(*spread, strict=True) for line in pair]
    assert (tmp_path / "out" / "spm.model").read_bytes() == train_subwords(lines, 250, "bpe")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["train"]["kept"] == 400


def test_characters_are_kept_as_flagged(raw, tmp_path):
    folder = shutil.copytree(raw, tmp_path / "raw")
    for lang in ("en", "de"):
        lines = (folder / f"train.{lang}").read_text("utf-8").splitlines()
        lines = ["… ½" if i % 4 == 0 else line for i, line in enumerate(lines)]
        (folder / f"train.{lang}").write_text("\n".join([*lines, "dog 猫"]) + "\n", "utf-8")
    options = ["--normalization-rule-name", "identity", "--character-coverage", 0.9999]
    prepare(folder, tmp_path / "out", *options)
    assert decode(tmp_path / "out", "train", "de")[0] == "… ½"
    pieces = (tmp_path / "out" / "dict.en.txt").read_text("utf-8")
    assert "猫" not in pieces and "d" in pieces
    found = prepare(folder, tmp_path / "default")
    assert decode(tmp_path / "default", "train", "de")[0] == "... 1\u20442"
    assert "SentencePiece rewrites 25% of the target lines" in found.stdout
    reports = ((tmp_path / name / "report.json").read_text() for name in ("default", "out"))
    rates = [json.loads(report)["train"]["rewritten"] for report in reports]
    assert rates == [100 / 401, 0]


def test_symbols_with_blanks_stay_whole_and_carriage_returns_are_blanks(raw, tmp_path):
    folder = add(raw, tmp_path, ["the dog of New York\rruns\r"])
    options = ["--normalization-rule-name", "identity", "--user-defined-symbols", "New York"]
    prepare(folder, tmp_path / "out", *options)
    assert decode(tmp_path / "out", "train", "en")[-1] == "the dog of New York runs"
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / "spm.model"))
    assert "New\u2581York" in subwords.encode("A boy in New York runs.", out_type=str)


def test_characters_without_a_subword_are_spelled_in_bytes_if_asked(raw, tmp_path):
    folder = add(raw, tmp_path, ["dog 猫"])
    options = ["--byte-fallback", "--character-coverage", 0.9995, "--vocab-size", 500]
    prepare(folder, tmp_path / "out", *options)
    pieces = (tmp_path / "out" / "dict.en.txt").read_text("utf-8")
    assert "猫" not in pieces and "<0xE7> " in pieces and "<0x00> 0" in pieces
    for lang in ("en", "de"):
        assert decode(tmp_path / "out", "train", lang)[-1] == "dog 猫"
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert not any(report["train"]["unknown_rate"].values())


MANY = "".join(map(chr, range(0x4E00, 0x4F00)))


@pytest.mark.parametrize(
    ("line", "flags", "said"),
    [
        ("Hund", [], "is more than .* in de"),
        (MANY, [], "is less than .* in de"),
        (MANY, ["--byte-fallback"], "is less than the 256 bytes"),
    ],
    ids=["too large", "too small", "too small for bytes"],
)
def test_a_separate_vocabulary_of_an_impossible_size_is_refused_with_its_language(
    raw, tmp_path, line, flags, said
):
    folder = shutil.copytree(raw, tmp_path / "raw")
    lines = (folder / "train.de").read_text("utf-8").count("\n")
    (folder / "train.de").write_text(f"{line}\n" * lines, "utf-8")
    flags = [*flags_of(folder, tmp_path / "out"), "--separate", "--vocab-size", 200, *flags]
    assert re.search(said, refuse("prepare", *flags))


def test_report_says_what_was_dropped_and_why(raw, tmp_path):
    dropped = [("", "Hund"), ("dog", "  "), "the dog " * 150, ("dog", "dog" * 40)]
    folder = add(raw, tmp_path, dropped, valid=[("", "Hund")])
    options = ["--max-length", 200, "--max-ratio", 12, "--model-type", "unigram"]
    result = prepare(folder, tmp_path / "out", *options)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["train"]["kept"] == 400
    assert sorted(report["train"]["dropped"].values()) == [1, 1, 2]
    assert report["valid"]["kept"] == 21 and not report["valid"]["dropped"]
    assert "400 pairs" in result.stdout and "dropped 2: a side is empty" in result.stdout


def test_filtered_pairs_are_counted_and_nothing_is_learnt_from_them(raw, tmp_path):
    pairs = [(raw / f"train.{lang}").read_text("utf-8").splitlines() for lang in ("en", "de")]
    kept = list(dict.fromkeys(zip(*pairs, strict=True)))
    identical, french = "qqq www", ("Two dogs play in the snow.", "Deux chiens jouent dehors.")
    folder = add(raw, tmp_path, [identical, french, kept[0]], valid=[identical])
    flags = ["--remove-identical", "--remove-duplicates", "--remove-wrong-language"]
    result = prepare(folder, tmp_path / "out", *flags)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert list(report["train"]["dropped"].values()) == [1, 401 - len(kept), 1]
    assert report["valid"]["kept"] == 21 and not report["valid"]["dropped"]
    assert f"dropped {401 - len(kept)}: the same pair came before" in result.stdout
    for side, lang in zip(zip(*kept, strict=True), ("en", "de"), strict=True):
        assert decode(tmp_path / "out", "train", lang) == list(side)
    lines = [line for pair in kept for line in pair]
    assert (tmp_path / "out" / "spm.model").read_bytes() == train_subwords(lines, 300, "bpe")
    assert not list((tmp_path / "out").glob("text*/*"))


def latin(folder):
    lines = (folder / "train.de").read_bytes().split(b"\n")
    lines[6] = "Tür".encode("latin-1")
    (folder / "train.de").write_bytes(b"\n".join(lines))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "valid.de").unlink(), "valid.de: no such file"),
        (lambda folder: [(folder / f"train.{x}").write_text("") for x in ("en", "de")], "empty"),
        (latin, "train.de, line 7: not UTF-8"),
        (lambda folder: (folder / "train.de").rename(folder / "train.de.gz"), "train.de.gz: "),
    ],
)
def test_bad_text_is_refused_and_leaves_nothing(raw, tmp_path, spoil, said):
    spoil(folder := shutil.copytree(raw, tmp_path / "raw"))
    assert said in refuse("prepare", *flags_of(folder, tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_text_that_the_new_folder_would_not_have_is_not_lost(raw, tmp_path):
    out = tmp_path / "out"
    prepare(raw, out)
    for path in raw.glob("train.*"):
        shutil.copy(path, out / "raw")
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert "raw/train.en" in refuse("prepare", *flags_of(out / "raw", out))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("sharing", ["--joined", "--separate"])
def test_subwords_that_trained_models_need_are_not_replaced_by_others(raw, tmp_path, sharing):
    out = tmp_path / "out"
    prepare(raw, out, "--joined")
    before = snapshot(out)
    for flags in ["--vocab-size", 250], ["--max-length", 12]:  # the second has another order
        said = refuse("prepare", *flags_of(raw, out), sharing, *flags)
        assert f"{out}/" in said and "other subwords" in said
        assert snapshot(out) == before
    (out / "report.json").write_text("made anew")
    prepare(raw, out, "--joined")
    assert snapshot(out) == before


def snapshot(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_full_disk_leaves_the_old_result_whole(raw, prepared, tmp_path):
    # The limit on the size of a file stands for a full disk: writing fails half way.
    out = shutil.copytree(prepared, tmp_path / "out")
    before = snapshot(out)
    result = prepare(raw, out, "--vocab-size", 250, **fill_disk(8192))
    assert_refused(result, f"prepare: {out}: File too large\n")
    assert snapshot(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_the_old_result_whole(raw, prepared, tmp_path, sent, status):
    out = shutil.copytree(prepared, tmp_path / "out")
    before = snapshot(out)
    command = (
        f"prepare -s en -t de --train {raw}/train --valid {raw}/valid --vocab-size 250".split()
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "resmlp_mt.cli", *command, "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background passes on that interrupts are ignored, and hang-ups too.
        preexec_fn=lambda: signal.signal(sent, signal.SIG_DFL),
    )
    while not (tmp_path / ".out.new" / "new").exists() and process.poll() is None:
        time.sleep(0.01)  # until it works there
    process.send_signal(sent)
    _, stderr = process.communicate(timeout=1800)
    assert process.returncode == status and "Traceback" not in stderr
    assert ("interrupted" in stderr) == (sent == signal.SIGINT)
    assert snapshot(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
