"""Prepared text that is damaged is refused, and what fairseq itself writes is not."""

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


def numbers(path):
    return np.memmap(path, np.uint16, "r+")


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64, np.uint32, np.uint8])
def test_what_fairseq_writes_is_whole(tmp_path, dtype):
    write(tmp_path, dtype=dtype)
    check(tmp_path)
    check_pairs(tmp_path, "train", LANGS[::-1], SIZES[::-1])
    check(tmp_path, "nosuch")  # fairseq says that it is not there


def test_other_formats_are_left_to_fairseq(tmp_path):
    write(tmp_path, impl="cached")
    check(tmp_path)


def zero(numbers_path, index):
    numbers(numbers_path)[:] = 0


def zero_a_part(numbers_path, index):
    numbers(numbers_path)[60:100] = 0


def fill_at_random(numbers_path, index):
    data = numbers(numbers_path)
    data[:] = np.random.default_rng(3).integers(0, SIZES[1], len(data))


def go_beyond_the_dictionary(numbers_path, index):
    numbers(numbers_path)[7] = SIZES[1]


def change_size(numbers_path, index, size=-5):
    with open(index, "r+b") as stream:
        stream.seek(HEADER + 4 * 3)
        stream.write(struct.pack("<i", size))


def have_a_sentence_of_nothing(numbers_path, index):
    change_size(numbers_path, index, 0)


def have_a_longer_sentence(numbers_path, index):
    change_size(numbers_path, index, 1000)


def point_beyond_the_end(numbers_path, index):
    with open(index, "r+b") as stream:
        stream.seek(HEADER + 4 * 50 + 8 * 10)
        stream.write(struct.pack("<q", 10**9))


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def cut_numbers(numbers_path, index):
    cut(numbers_path, 51)


def empty_numbers(numbers_path, index):
    cut(numbers_path, 0)


def cut_index(numbers_path, index):
    cut(index, 100)


def cut_header(numbers_path, index):
    cut(index, 12)


def zero_index(numbers_path, index):
    index.write_bytes(bytes(index.stat().st_size))


def claim_many_sentences(numbers_path, index):
    data = index.read_bytes()
    index.write_bytes(data[:18] + struct.pack("<Q", 2**62) + data[HEADER:])


def have_no_sentence(numbers_path, index):
    index.write_bytes(index.read_bytes()[:18] + struct.pack("<Q", 0))


DAMAGES = {
    zero: ("bin", "sentence 1 does not end with </s>"),
    zero_a_part: ("bin", "does not end with </s>"),
    fill_at_random: ("bin", "does not end with </s>"),
    go_beyond_the_dictionary: ("bin", "it has the token 40, and the dictionary 40 symbols"),
    change_size: ("idx", "sentence 4 has -5 tokens"),
    have_a_sentence_of_nothing: ("idx", "sentence 4 has 0 tokens"),
    have_a_longer_sentence: ("idx", "its sentences do not stand one behind the other"),
    point_beyond_the_end: ("idx", "its sentences do not stand one behind the other"),
    cut_numbers: ("bin", "it has 51 bytes, and train.en-de.de.idx tells of "),
    empty_numbers: ("bin", "it has 0 bytes, and train.en-de.de.idx tells of "),
    cut_index: ("idx", "it is no index of 50 sentences, by its size"),
    cut_header: ("idx", "it ends within its header"),
    zero_index: ("idx", "it begins as no index of fairseq does"),
    claim_many_sentences: ("idx", "it is no index of 4,611,686,018,427,387,904 sentences"),
    have_no_sentence: ("idx", "it has no sentence"),
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_refused_with_the_file_and_a_cure(tmp_path, damage):
    damage(*write(tmp_path))
    kind, said = DAMAGES[damage]
    with pytest.raises(UserError) as refusal:
        check(tmp_path)
    told = str(refusal.value)
    assert told.startswith(f"{tmp_path}/train.en-de.de.{kind}: damaged: ") and said in told
    assert "run 'resmlp-mt prepare' again" in told


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
