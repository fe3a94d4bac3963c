"""Terms of requests and of the house, and the other options of a search that fairseq does."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from serving.conftest import ask, serving
from serving.held import Held, held_models
from serving.held import ask as ask_app
from serving.test_processes import children

from resmlp_mt.errors import BrokenModel, UserError
from resmlp_mt.serving.models import Model, give_terms
from resmlp_mt.serving.settings import Settings
from resmlp_mt.translating.glossary import Glossary

TERMS = {"bike": "Drahtesel", "big dog": "Riese", "IT": "EDV", "snow": "ewiges Eis"}
TEXTS = [
    "A man rides a bike. A dog sleeps.\n\nThe big  dog plays in the snow.",
    "",
    "Two dogs play in the grass.",
    "A GIRL RIDES A BIKE IN THE SNOW.",
    "A **big dog** plays.",
    "A woman works in IT.",
]


def answer(server, **body):
    response = ask(server, **body)
    assert response.status_code == 200, response.text
    return [[t["text"] for t in r["translations"]] for r in response.json()["results"]]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A server with terms of the house, that does all searches: its `address` and `process`."""
    path = write(tmp_path_factory.mktemp("house") / "terms.tsv", TERMS)
    flags = ["--fairseq", "--glossary", f"EN-de={path}"]
    with serving("multi30k-en-de", *flags) as (address, process):
        yield SimpleNamespace(address=address, process=process)


def test_requests_with_several_glossaries_and_with_none_get_their_own_answers(house):
    glossaries = [{}, TERMS, {"bike": "Rad"}, {"dog": "Hund", "man": "Herr"}, {}, {"A": "Ein"}]
    bodies = [{"text": TEXTS, "glossary": g, "house_terms": False} for g in glossaries]
    singles = [answer(house.address, **body) for body in bodies]
    with ThreadPoolExecutor(len(bodies)) as pool:
        found = list(pool.map(lambda body: answer(house.address, **body), bodies))
    assert found == singles and len({texts[0][0] for texts in singles}) > 3


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"glossary": {"x": "\u2603"}}, 422, "glossary: 'x' -> '\u2603'"),
        ({"glossary": {"red car": "Rad", "red  car": "x"}}, 422, "'red  car'"),
        ({"glossary": {"x" * 101: "Rad"}}, 422, "glossary.xxxx"),
        ({"glossary": {"x y": ["Rad"]}}, 422, "glossary.x y: "),
        ({"glossary": dict.fromkeys(map(str, range(1001)), "Rad")}, 413, "1,001 terms"),
        ({"glossary": {"a": "b"}, "prefix": "Ein"}, 422, "glossary"),
        ({"glossary": {"a": "b"}, "text": "a" * 100_001}, 413, "100,001"),
        ({"glossary": {"a dog": "Wiese " * 4}, "beam": 32, "text": "A dog."}, 422, "'A dog.'"),
        # Held, since no place of the term is known in a text with letters that are decomposed.
        (
            {"glossary": {"A dog": "Ein Hund und noch ein Hund"}, "text": "A dog, a\u0308."}
            | {"max_len_b": 4},
            422,
            "4 at most",
        ),
        ({"prefix": "Ein Hund und ein Hund und", "no_repeat_ngram_size": 2}, 422, "no_repeat"),
        ({"no_repeat_ngram_size": 1}, 422, "no_repeat_ngram_size 1"),
    ],
)
def test_what_cannot_be_had_is_refused(house, body, status, named):
    asked = {"text": "A dog sleeps.", "house_terms": False} | body
    response = ask(house.address, **asked)
    assert response.status_code == status and named in response.json()["error"], response.text
    assert len(response.content) < 500


def test_an_export_does_all_searches_where_fairseq_is_imported_at_the_start(
    house, server, translator
):
    (worker,) = children(house.process)
    assert "libtorch" in Path(f"/proc/{worker}/maps").read_text()
    text = "A man and a man and a man and a man."
    for asked in ({"max_len_b": 3}, {"no_repeat_ngram_size": 2}):
        found = answer(house.address, text=text, house_terms=False, **asked)
        assert found == [[translator.translate(text, **asked)]]
    held = {"glossary": {"A man": "Ein Herr"}, "text": "A man, a\u0308."}
    for body in ({"text": text, "no_repeat_ngram_size": 2}, held):
        assert ask(house.address, **body).status_code == 200
        refused = ask(server, **body)
        assert refused.status_code == 422 and "--fairseq" in refused.json()["error"]


@pytest.mark.parametrize(
    ("error", "bars", "status"), [(UserError, 2, 422), (UserError, 0, 500), (BrokenModel, 2, 500)]
)
def test_what_no_translation_is_like_is_the_mistake_of_its_request_alone(
    caplog, error, bars, status
):
    class Lacking(Held):
        def translate_segments(self, segments, *arguments, **options):
            if any("poison" in segment.text for segment in segments):
                raise error("more needs fairseq")
            return super().translate_segments(segments, *arguments, **options)

    translator = Lacking()
    translator.let_go.set()
    bodies = [{"text": t, "no_repeat_ngram_size": bars} for t in ("poison", "good")]
    requests = [("/translate", {"json": body}) for body in bodies]
    refused, good = ask_app(Settings(), *requests, models=held_models(translator))
    assert (refused.status_code, good.status_code) == (status, 200)
    assert ("needs fairseq" in refused.json()["error"]) == (status == 422)
    assert ("a batch of" in caplog.text) == (status == 500)


OWN = {"bike": "Velo", "Dogs": "Hunde", "grass": "Wiese"}


def write(path, terms):
    path.write_text("".join(f"{term}\t{said}\n" for term, said in terms.items()))
    return path


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        ({}, TERMS),
        ({"glossary": OWN, "beam": 4, "nbest": 3}, TERMS | OWN),
        ({"house_terms": False}, {}),
        ({"house_terms": False, "glossary": OWN, "attention": True}, OWN),
    ],
)
def test_terms_of_the_house_and_of_a_request_are_one_glossary(house, translator, asked, terms):
    terms, held = Glossary(terms, translator.codec, must=False), asked.get("glossary", {})
    search = {name: asked[name] for name in asked.keys() & {"beam", "nbest", "attention"}}
    glossary = Glossary(held, translator.codec).over(terms)
    expected = translator.translate_nbest(TEXTS, glossary=glossary, **search)
    expected = [[hypothesis.text for hypothesis in best] for best in expected]
    assert answer(house.address, text=TEXTS, **asked) == expected
    assert ("Drahtesel" in expected[0][0]) == (asked == {})


def test_an_export_holds_terms_without_fairseq(server, translator):
    expected = translator.translate(TEXTS, glossary=TERMS)
    assert [best[0] for best in answer(server, text=TEXTS, glossary=TERMS)] == expected


def test_requests_of_libretranslate_have_them_too(house):
    asked = {"q": "A man rides a bike.", "source": "en", "target": "de"}
    html = {"q": "<p>A <b>man</b> rides a bike.</p>", "format": "html"}
    for given, holds in ({}, True), ({"house_terms": "false"}, False), (html, True):
        found = httpx.post(f"{house.address}/translate", data=asked | given).text
        assert ("Drahtesel" in found) == holds


@pytest.mark.parametrize(
    "body",
    [
        {"text": "A man rides a bike.", "prefix": "Ein Mann "},
        {"text": "A man rides a bike.", "prefix": "Ein ", "alternatives": True, "nbest": 3},
        # No place of a term is known in a text with letters that are decomposed.
        {"text": "A man, a\u0308, rides a bike."},
    ],
)
def test_what_cannot_name_them_goes_on_without(house, server, body):
    found, expected = ask(house.address, **body), ask(server, **body)
    assert found.status_code == 200 and found.json() == expected.json()


def test_terms_belong_to_the_direction_that_is_named(tmp_path):
    pairs = ("en", "de"), ("de", "en"), ("en", "pt_BR")
    models = [Model("-".join(pair), Held(1, *pair)) for pair in pairs]
    path = write(tmp_path / "a.tsv", TERMS)
    given = give_terms(models, [("de-en", path), ("EN-pt-br", path)])
    assert [bool(model.house) for model in given] == [False, True, True]
    (alone,) = give_terms(models[:1], [("", path)])
    assert alone.house.find("bike")[0][0].text == "Drahtesel"
    for files in ([("", path)], [("en-pt", path)], [("en-de", path)] * 2):
        with pytest.raises(UserError, match=f"--glossary .*{path}"):
            give_terms(models, files)
