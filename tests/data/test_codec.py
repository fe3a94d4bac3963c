"""Texts that a translation shall hold, in subwords that SentencePiece joins to them again."""

import numpy as np
import pytest

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.data.subwords import train_subwords


@pytest.fixture(params=[0, 256], ids=["", "bytes"])
def folder(request, tmp_path):
    """Of a model whose subwords have 鱼 both with a blank before it and without."""
    lines = ["鱼 鱼肉 ปลา fish"] * 9 + ["我吃鱼 กินปลา a fish"] * 9 + ["鱼OK"]
    model = train_subwords(lines, 40 + request.param, "bpe", byte_fallback=request.param > 0)
    (tmp_path / "spm.model").write_bytes(model)
    pieces = "▁鱼 ▁鱼肉 吃鱼 OK ▁fish ปลา ▁ 鱼 O K 吃 我 肉 า".split()
    (tmp_path / "dict.zh.txt").write_text("".join(f"{piece} 1\n" for piece in pieces))
    return tmp_path


def load(folder):
    return TextCodec.from_folder(folder, ("zh", "zh"))


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("鱼", "我吃鱼"),
        (" 鱼肉", "我吃鱼肉"),
        ("吃鱼 OK", "我吃吃鱼 OK"),
        ("ปลา", "我吃ปลา"),
        ("fish", "我吃 fish"),
        ("OK鱼", "我吃 OK鱼"),
    ],
)
def test_what_is_held_has_no_blank_before_it_where_its_script_has_none(folder, text, joined):
    codec = load(folder)
    said = map(codec.target_dictionary.index, "我吃")
    held = codec.encode_held(text)
    assert held.dtype == np.int64
    assert codec.decode(np.array([*said, *held])) == joined


def test_a_subword_that_is_known_only_with_a_blank_is_said_with_it(folder):
    lines = (folder / "dict.zh.txt").read_text().splitlines(keepends=True)
    (folder / "dict.zh.txt").write_text("".join(line for line in lines if line[0] != "鱼"))
    codec = load(folder)
    assert codec.name_target(codec.encode_held("鱼")) == ["▁鱼"]
