"""Documents that nobody would write, sent to a real server."""

import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SENTENCE = "Two dogs play in the snow."
# From every plane, surrogates and unassigned ones too.
anything = st.text(st.integers(0, 0x10FFFF).map(chr), max_size=200)
scripts = "a-z äöüß жук שלום नमस्ते 你好世界 こんにちは 👩‍👩‍👧🇩🇪 ȩ́ȩ́ {{x}} <!-- <b>".split()
mixed = st.lists(st.sampled_from(scripts), min_size=1, max_size=8).map("".join)
controls = st.text("\0\x01\x08\t\x0b\x0c\r\x1b\x7f\x85\xad\u200b\u202e\u2028\ufeff\uffff")
pieces = st.sampled_from(["x", "ab", "ſ", "漢", "👍🏽", "\u0301", "-", "&amp;"])
long_word = st.builds(lambda piece, count: piece * count, pieces, st.integers(100, 600))
line = st.one_of(anything, mixed, controls, long_word)
document = st.lists(st.lists(line, max_size=4).map(" ".join), max_size=4)


def translate(server, lines):
    body = json.dumps({"text": lines, "beam": 1})  # surrogates leave escaped
    headers = {"Content-Type": "application/json"}
    response = httpx.post(f"{server}/translate", content=body, headers=headers)
    assert response.status_code == 200, response.text
    return [result["translations"][0] for result in response.json()["results"]]


@pytest.fixture(scope="module")
def alone(server):
    return translate(server, [SENTENCE])[0]["text"]


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(lines=document)
def test_hostile_documents_are_translated_line_by_line(server, alone, lines):
    found = translate(server, [*lines, SENTENCE])
    assert len(found) == len(lines) + 1
    assert found[-1]["text"] == alone  # whatever its neighbours are
    for text, translation in zip(lines, found, strict=False):
        translation["text"].encode()  # no half of a surrogate pair
        assert translation["text"].count("\n") in (0, text.count("\n"))
        assert translation["score"] <= 0
        if not text.strip():
            assert translation["text"] == ""
