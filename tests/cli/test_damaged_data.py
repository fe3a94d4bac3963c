"""A training on damaged data ends before it begins: with the file, a cure and no crash.pt."""

import json
import shutil

import numpy as np
from cli.commands import assert_refused, run, train
from cli.test_identity import exchange

from resmlp_mt.files.sums import sum_files


def test_the_report_has_the_sum_of_each_file(prepared):
    sums = json.loads((prepared / "report.json").read_text())["sha256"]
    names = {path.name for path in prepared.iterdir() if path.is_file()} - {"report.json"}
    assert sums == sum_files(prepared, names) and {"train.en-de.en.bin", "spm.model"} < names


def test_what_prepare_did_not_write_is_refused_and_the_cure_helps(prepared, tmp_path):
    data, out = shutil.copytree(prepared, tmp_path / "data"), tmp_path / "out"
    numbers = np.memmap(path := data / "train.en-de.en.bin", np.uint16, "r+")
    place = np.flatnonzero(numbers > 10)[0]
    numbers[place] -= 1  # another word, which only a sum tells
    refusal = train(data, out, "--max-update", 1, check=False)
    assert_refused(refusal, f"{path}: ", f"SHA-256 in {data}/report.json")
    assert not list(out.glob("*.pt"))
    (data / "report.json").unlink()
    train(data, out, "--max-update", 1)


def test_data_of_fairseq_preprocess_is_checked_in_every_folder(raw, tmp_path):
    line = ["fairseq-preprocess", "--source-lang", "en", "--target-lang", "de", "--workers", 1]
    line += ["--trainpref", raw / "train", "--validpref", raw / "valid", "--joined-dictionary"]
    run(*line, "--destdir", tmp_path / "a", own=True)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    line = [f"{tmp_path}/a:{tmp_path}/b", tmp_path / "out", "--max-epoch", 2]
    for lang in ("en", "de"):
        exchange(tmp_path / f"b/dict.{lang}.txt")
    refusal = train(*line, check=False)
    said = f"{tmp_path}/b: not the text of {tmp_path}/a, whose dictionaries are taken: dict.en.txt"
    assert_refused(refusal, said)
    for lang in ("en", "de"):
        exchange(tmp_path / f"b/dict.{lang}.txt")
    path = tmp_path / "b/train.en-de.de.idx"
    index = np.memmap(path, np.uint8, "r+", offset=26, shape=4).view(np.int32)
    index[0] = -5
    index.flush()
    refusal = train(*line, check=False)  # b is read in the second epoch
    assert_refused(refusal, f"{path}: damaged: sentence 1 has -5 tokens; run 'resmlp-mt prepare' a")
    assert not list((tmp_path / "out").glob("*.pt"))
