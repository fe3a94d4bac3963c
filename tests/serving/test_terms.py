"""Glossaries of requests, and the other options of a search that fairseq does."""

import asyncio
import threading

import httpx
import pytest
from serving.conftest import serving
from serving.held import Held, cut, held_models

from resmlp_mt import Translator
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.errors import BrokenModel, UserError
from resmlp_mt.export.writer import export_model
from resmlp_mt.serving import desk
from resmlp_mt.serving.app import build_app
from resmlp_mt.serving.batcher import Batcher
from resmlp_mt.serving.jobs import Impossible, Options
from resmlp_mt.serving.limits import Limits

TERMS = {"bike": "Drahtesel", "big dog": "Riese", "IT": "EDV", "snow": "ewiges Eis"}
TEXTS = [
    "A man rides a bike. A dog sleeps.\n\nThe big  dog plays in the snow.",
    "",
    "Two dogs play in the grass.",
    "A GIRL RIDES A BIKE IN THE SNOW.",
    "A **big dog** plays.",
    "A woman works in IT.",
]


def ask(server, **body):
    return httpx.post(f"{server}/translate", json=body, timeout=60)


def answer(server, **body):
    response = ask(server, **body)
    assert response.status_code == 200, response.text
    return [[t["text"] for t in r["translations"]] for r in response.json()["results"]]


@pytest.fixture(scope="module", params=["checkpoint", "exported"])
def served(request, tmp_path_factory, server):
    """The address of a server, and its model in Python."""
    if request.param == "checkpoint":
        yield server, Translator.from_pretrained("multi30k-en-de")
        return
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    folder = tmp_path_factory.mktemp("terms") / "fast"
    export_model("multi30k-en-de", folder, int8=True)
    with serving(folder) as (address, _):
        yield address, Translator.from_pretrained(folder)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"beam": 4, "nbest": 3, "lenpen": 1.5, "attention": True},
        {"split_sentences": False, "recase": False, "no_repeat_ngram_size": 2, "max_len_b": 12},
    ],
)
def test_a_glossary_does_what_it_does_in_python(served, asked):
    server, translator = served
    for terms in ({}, TERMS):
        expected = translator.translate_nbest(TEXTS, glossary=terms, **asked)
        expected = [[hypothesis.text for hypothesis in best] for best in expected]
        assert answer(server, text=TEXTS, glossary=terms, **asked) == expected
    assert "Drahtesel" in expected[0][0] and "Riese" in expected[4][0]
    (alone,) = answer(server, text=TEXTS[0], glossary=TERMS, **asked)
    assert alone == expected[0]


def test_requests_with_several_glossaries_and_with_none_get_their_own_answers(served):
    server, _ = served
    glossaries = [{}, TERMS, {"bike": "Rad"}, {"dog": "Hund", "man": "Herr"}, {}, {"A": "Ein"}]
    bodies = [{"text": TEXTS, "glossary": terms} for terms in glossaries * 2]
    singles = [answer(server, **body) for body in bodies[: len(glossaries)]]

    async def ask_at_once():
        async with httpx.AsyncClient(timeout=60) as client:
            asked = [client.post(f"{server}/translate", json=body) for body in bodies]
            return [response.json()["results"] for response in await asyncio.gather(*asked)]

    for number, found in enumerate(asyncio.run(ask_at_once())):
        texts = [[t["text"] for t in result["translations"]] for result in found]
        assert texts == singles[number % len(glossaries)]
    assert len({texts[0][0] for texts in singles}) > 3


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"glossary": {"x": "\u2603"}}, 422, "glossary: 'x' -> '\u2603': the model cannot say"),
        ({"glossary": {"x": "Acme\u2122"}}, 422, "glossary: 'x' -> 'Acme\u2122': the model would"),
        ({"glossary": {"red car": " "}}, 422, "glossary: 'red car' -> ' ': a side is empty"),
        ({"glossary": {"red car": "Rad", "red  car": "x"}}, 422, "'red  car' stands there twice"),
        ({"glossary": {"": "Rad"}}, 422, "glossary: '' -> 'Rad': a side is empty"),
        ({"glossary": {"red car": 5}}, 422, "glossary: 'red car' -> 5: a side is no text"),
        ({"glossary": {"red car": None}}, 422, "'red car' -> None: a side is no text"),
        ({"glossary": {"x" * 101: "Rad"}}, 422, "xxxx' -> 'Rad': a side has more than 100 chara"),
        ({"glossary": {"x": "Rad " * 50_000}}, 422, "a side has more than 100 characters"),
        ({"glossary": [["a", "b"]]}, 422, "glossary: Input should be a valid dictionary"),
        ({"glossary": "terms.tsv"}, 422, "glossary: Input should be a valid dictionary"),
        ({"glossary": {"a": "b"}, "prefix": "Ein"}, 422, "glossary: goes without prefix and alter"),
        ({"glossary": {"a": "b"}, "alternatives": True}, 422, "glossary: goes without prefix"),
        ({"glossary": {str(i): "b" for i in range(50_000)}}, 413, "50,000 terms; send 1,000 at m"),
        ({"glossary": {"a": "b"}, "text": "a" * 100_001}, 413, "100,001 characters with a gloss"),
        (
            {"glossary": {"a dog": "Wiese " * 4}, "beam": 32, "text": "It is a dog."},
            422,
            "glossary: 'It is a dog.': the terms in it have 4 subwords; with beam 32 3 at most",
        ),
        # Held, since no place of the term is known in a text with letters that are decomposed.
        (
            {"glossary": {"A dog": "Ein Hund und noch ein Hund"}, "text": "A dog, a\u0308."}
            | {"max_len_b": 4},
            422,
            "glossary: constraints of 7 subwords; a translation has 4 at most",
        ),
        ({"prefix": "Ein Mann fährt", "max_len_b": 2}, 422, "a prefix of 3 subwords"),
        (
            {"prefix": "Ein Hund und ein Hund und", "no_repeat_ngram_size": 2},
            422,
            "they repeat what no_repeat_ngram_size bars",
        ),
        ({"no_repeat_ngram_size": 1}, 422, "no_repeat_ngram_size 1 must be 0, or 2 or more"),
        ({"no_repeat_ngram_size": 101}, 422, "no_repeat_ngram_size: "),
        ({"max_len_b": 0}, 422, "max_len_b: "),
    ],
)
def test_what_cannot_be_had_is_refused(server, body, status, said):
    response = ask(server, **{"text": "A dog sleeps."} | body)
    assert (response.status_code, said in response.json()["error"]) == (status, True), response.text
    assert len(response.content) < 500


def test_lengths_and_repeats_are_those_of_python(server):
    translator = Translator.from_pretrained("multi30k-en-de")
    for asked in ({"max_len_b": 3}, {"no_repeat_ngram_size": 2}):
        text = "A man and a man and a man and a man."
        assert answer(server, text=text, **asked) == [[translator.translate(text, **asked)]]


def test_limits_of_a_glossary_are_documented(server):
    described = httpx.get(f"{server}/openapi.json").json()["components"]["schemas"]
    glossary = described["TranslationRequest"]["properties"]["glossary"]
    assert glossary["maxProperties"] == 1000
    for limit in ("1,000", "100 characters", "100,000", "120 subwords"):
        assert limit in glossary["description"]


def test_texts_that_hold_nothing_wait_for_no_others_and_what_fairseq_searches_takes_turns():
    translator, sizes = Held(), []
    batcher = Batcher(1, 64, 1000, 10**6, sizes.append)
    try:
        busy = batcher.submit(cut("busy"), Options(translator))
        assert translator.at_work.acquire(timeout=60)
        lines = [f"{i}{'!' * (i % 4 == 0)}" for i in range(12)]
        held = batcher.submit(cut(*lines, holds="!"), Options(translator))
        other = batcher.submit(cut("a", holds="a"), Options(translator))
        plain = batcher.submit(cut(*"bcd"), Options(translator))
        barred = batcher.submit(
            cut(*"ef"), Options(translator, SearchOptions(no_repeat_ngram_size=2, beam=10))
        )
        translator.let_go.set()
        jobs = busy, held, other, plain, barred
        found = [[best[0].text for best in job.answer.result(60)] for job in jobs]
    finally:
        batcher.close()
    assert found == [["ysub"], [line[::-1] for line in lines], ["a"], [*"bcd"], ["e", "f"]]
    batches = [texts for texts, _ in translator.batches]
    free = [line for line in lines if "!" not in line]
    assert sorted(batches[1]) == sorted([*free, *"bcd"])  # as if nothing held anything
    assert batches[2:] == [["a", "0!"], ["e"], ["4!", "8!"], ["f"]]
    assert sizes == [len(batch) for batch in batches]


def test_a_plain_request_does_not_wait_for_all_that_fairseq_searches():
    translator = Held()
    batcher = Batcher(1, 64, 1000, 10**6)
    try:
        jobs = [batcher.submit(cut("busy"), Options(translator))]
        assert translator.at_work.acquire(timeout=60)
        held = cut("held", holds="held")
        jobs += [batcher.submit(held, Options(translator)) for _ in range(40)]
        jobs.append(batcher.submit(cut("plain"), Options(translator)))
        translator.let_go.set()
        for job in jobs:
            job.answer.result(60)
    finally:
        batcher.close()
    batches = [texts for texts, _ in translator.batches]
    assert batches == [["busy"], ["held"] * 2, ["plain"], *[["held"] * 2] * 19]


def test_an_answer_with_a_glossary_waits_for_no_long_texts_that_are_read(monkeypatch):
    monkeypatch.setattr(desk, "_LONG", 50)  # the text is shorter, and ten times as long with terms
    batcher, read = Batcher(1, 64, 1000, 10**6), threading.Event()
    front, submit = desk.Desk(batcher, Limits()), batcher.submit

    def submit_and_read(*asked):
        front.slow.submit(read.wait)
        return submit(*asked)

    monkeypatch.setattr(batcher, "submit", submit_and_read)
    asked = ["A man rides a bike."], Options(Translator.from_pretrained("multi30k-en-de"))

    def describe(found):
        return found[0].hypotheses[0].text.encode()

    work = front.translate(*asked, describe, glossary={"bike": "Drahtesel"})
    try:
        answer = asyncio.run(asyncio.wait_for(work, 1800))
    finally:
        read.set()
        batcher.close()
    assert b"Drahtesel" in answer


@pytest.mark.parametrize(
    ("error", "bars", "status"), [(UserError, 2, 422), (UserError, 0, 500), (BrokenModel, 2, 500)]
)
def test_what_no_translation_is_like_is_the_mistake_of_its_request_alone(
    caplog, error, bars, status
):
    translator = lacking(error)

    async def ask_both():
        app = build_app(held_models(translator), Limits())
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            bodies = [{"text": t, "no_repeat_ngram_size": bars} for t in ("poison", "good")]
            return await asyncio.gather(*(client.post("/translate", json=b) for b in bodies))

    refused, good = asyncio.run(ask_both())
    assert (refused.status_code, good.status_code) == (status, 200)
    assert ("needs fairseq" in refused.json()["error"]) == (status == 422)
    assert ("a batch of" in caplog.text) == (status == 500)


def test_terms_that_no_search_can_hold_are_the_mistake_of_their_request_alone():
    translator, batcher = lacking(UserError), Batcher(1, 64, 1000, 10**6)
    try:
        jobs = [
            batcher.submit(cut(text, holds="o"), Options(translator)) for text in ("poison", "go")
        ]
        with pytest.raises(Impossible, match="glossary: more needs fairseq"):
            jobs[0].answer.result(60)
        assert jobs[1].answer.result(60)[0][0].text == "og"
    finally:
        batcher.close()


def lacking(error):
    """A translator that refuses some texts."""

    class Lacking(Held):
        def translate_segments(self, segments, *arguments, **options):
            if any("poison" in segment.text for segment in segments):
                raise error("more needs fairseq")
            return super().translate_segments(segments, *arguments, **options)

    translator = Lacking()
    translator.let_go.set()
    return translator
