"""Prepared text that is damaged is refused, and what fairseq itself writes is not."""

import os
import struct

import numpy as np
import pytest
import torch
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder, make_builder

from resmlp_mt.data import binary_check
from resmlp_mt.data.binary_check import check_pairs
from resmlp_mt.errors import UserError

LANGS, SIZES = ("en", "de"), (30, 40)
HEADER = 26  # bytes of an index before the sizes


def write(folder, split="train", sentences=50, impl="mmap", seed=1, dtype=None):
    """Random pairs as fairseq-preprocess writes them; each ends with </s>."""
    rng = np.random.default_rng(seed)
    for lang, size in zip(LANGS, SIZES, strict=True):
        stem = f"{folder}/{split}.en-de.{lang}"
        if dtype:
            builder = MMapIndexedDatasetBuilder(f"{stem}.bin", dtype=dtype)
        else:
            builder = make_builder(f"{stem}.bin", impl, size)
        for length in rng.integers(0, 9, sentences):
            tokens = [*rng.integers(3, size, length).tolist(), 2]
            builder.add_item(torch.tensor(tokens, dtype=torch.int32))
        builder.finalize(f"{stem}.idx")
    return folder / f"{split}.en-de.de.bin", folder / f"{split}.en-de.de.idx"


def check(folder, split="train"):
    check_pairs(folder, split, LANGS, SIZES)


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64, np.uint32, np.uint8])
def test_what_fairseq_writes_is_whole(tmp_path, dtype):
    write(tmp_path, dtype=dtype)
    check(tmp_path)
    check_pairs(tmp_path, "train", LANGS[::-1], SIZES[::-1])
    check(tmp_path, "nosuch")  # fairseq says that it is not there


def test_other_formats_are_left_to_fairseq(tmp_path):
    write(tmp_path, impl="cached")
    check(tmp_path)


def fill(path, value, start=0, end=None):
    """Overwrite numbers of a file of them."""
    np.memmap(path, np.uint16, "r+")[start:end] = value


def overwrite(path, place, kind, value):
    """Overwrite a number of an index."""
    with open(path, "r+b") as stream:
        stream.seek(place)
        stream.write(struct.pack(kind, value))


def drawn(path):
    return np.random.default_rng(3).integers(0, SIZES[1], path.stat().st_size // 2)


DAMAGES = {
    "zeros": ("bin", lambda path: fill(path, 0)),
    "some zeros": ("bin", lambda path: fill(path, 0, 60, 100)),
    "numbers at random": ("bin", lambda path: fill(path, drawn(path))),
    "a number beyond the dictionary": ("bin", lambda path: fill(path, SIZES[1], 7, 8)),
    "numbers that break off": ("bin", lambda path: os.truncate(path, 51)),
    "no numbers": ("bin", lambda path: os.truncate(path, 0)),
    "a size below 0": ("idx", lambda path: overwrite(path, HEADER + 12, "<i", -5)),
    "a size of 0": ("idx", lambda path: overwrite(path, HEADER + 12, "<i", 0)),
    "a larger size": ("idx", lambda path: overwrite(path, HEADER + 12, "<i", 1000)),
    "a place beyond the end": (
        "idx",
        lambda path: overwrite(path, HEADER + 4 * 50 + 8 * 10, "<q", 10**9),
    ),
    "an index that breaks off": ("idx", lambda path: os.truncate(path, 100)),
    "a header that breaks off": ("idx", lambda path: os.truncate(path, 12)),
    "an index of zeros": ("idx", lambda path: path.write_bytes(bytes(path.stat().st_size))),
    "many sentences": ("idx", lambda path: overwrite(path, 18, "<Q", 2**62)),
    "no sentence": ("idx", lambda path: overwrite(path, 18, "<Q", 0)),
}


@pytest.mark.parametrize(("kind", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_refused_with_the_file(tmp_path, kind, damage):
    write(tmp_path)
    path = tmp_path / f"train.en-de.de.{kind}"
    damage(path)
    with pytest.raises(UserError, match=f"^{path}: damaged: "):
        check(tmp_path)


def test_a_missing_half_and_sides_of_other_lengths_are_refused(tmp_path):
    write(tmp_path)
    write(tmp_path, "valid", 10)
    (tmp_path / "valid.en-de.de.idx").rename(tmp_path / "kept")
    with pytest.raises(UserError, match="valid.en-de.de.idx: missing"):
        check(tmp_path, "valid")
    (tmp_path / "kept").replace(tmp_path / "train.en-de.de.idx")
    (tmp_path / "valid.en-de.de.bin").replace(tmp_path / "train.en-de.de.bin")
    with pytest.raises(UserError, match=r"number of sentences \(50 in .*en, 10 in .*de\); run"):
        check(tmp_path)


def test_a_file_is_read_anew_only_where_its_size_or_time_is_another(tmp_path, monkeypatch):
    files = write(tmp_path)
    read = []
    fromfile = np.fromfile
    monkeypatch.setattr(
        binary_check.np, "fromfile", lambda *given: read.append(given) or fromfile(*given)
    )
    for _ in range(3):
        check(tmp_path)
    assert len(read) == 2  # a file for each language
    files[0].write_bytes(files[0].read_bytes() + b"\0\0")
    with pytest.raises(UserError, match="damaged"):
        check(tmp_path)
    assert len(read) == 3
