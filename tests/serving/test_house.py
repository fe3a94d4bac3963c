"""Terms of the house, which hold in every request."""

import re
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from cli.commands import run
from serving.conftest import serving
from serving.test_terms import TEXTS, answer, ask

from resmlp_mt import Translator
from resmlp_mt.errors import UserError
from resmlp_mt.serving.house import House, follow_terms
from resmlp_mt.serving.models import Model, give_terms
from resmlp_mt.translating.glossary import Glossary

TERMS = {"bike": "Drahtesel", "big dog": "Riese", "IT": "EDV", "snow": "ewiges Eis"}
OWN = {"bike": "Velo", "Dogs": "Hunde", "grass": "Wiese"}


def write(path, terms):
    path.write_text("".join(f"{term}\t{said}\n" for term, said in terms.items()))
    return path


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """The address of a server with terms."""
    path = write(tmp_path_factory.mktemp("house") / "terms.tsv", TERMS)
    with serving("multi30k-en-de", "--glossary", f"EN-de={path}") as (address, _):
        yield address


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de")


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        ({}, TERMS),
        ({"glossary": OWN}, TERMS | OWN),
        ({"house_terms": False}, {}),
        ({"house_terms": False, "glossary": OWN}, OWN),
    ],
)
def test_terms_of_the_house_and_of_a_request_are_one_glossary(house, translator, asked, terms):
    terms, held = Glossary(terms, translator.codec, must=False), asked.get("glossary", {})
    glossary = Glossary(held, translator.codec).over(terms)
    expected = translator.translate_nbest(TEXTS, glossary=glossary)
    expected = [[hypothesis.text for hypothesis in best] for best in expected]
    assert answer(house, text=TEXTS, **asked) == expected


def test_requests_of_libretranslate_have_them_too(house, translator):
    asked = {"q": "A man rides a bike.", "source": "en", "target": "de"}
    for given, terms in ({}, TERMS), ({"house_terms": "false"}, {}):
        found = httpx.post(f"{house}/translate", data=asked | given).json()["translatedText"]
        assert found == translator.translate(asked["q"], glossary=terms)
    html = {"q": "<p>A <b>man</b> rides a bike.</p>", "format": "html"}
    assert "Drahtesel" in httpx.post(f"{house}/translate", data=asked | html).text


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
    found, expected = ask(house, **body), ask(server, **body)
    assert found.status_code == 200 and found.json() == expected.json()


def test_they_are_named_whatever_else_is_asked(house):
    text = "A big dog rides a bike in the snow."
    for asked in ({"attention": True}, {"beam": 32}, {"no_repeat_ngram_size": 2}):
        assert "Drahtesel" in answer(house, text=text, **asked)[0][0]


def test_what_a_request_asks_itself_is_refused_as_ever(house):
    terms = {"bike": "Rad"}
    for body, status, said in (
        ({"glossary": terms, "prefix": "Ein"}, 422, "goes without prefix"),
        ({"glossary": terms, "text": "a" * 100_001}, 413, "characters with a glossary"),
        ({"glossary": {"dog": "Hund " * 9}, "beam": 32}, 422, "the terms in it have 9 subwords"),
    ):
        response = ask(house, **{"text": "A dog in the snow."} | body)
        assert response.status_code == status and said in response.json()["error"]
    assert "Drahtesel" in answer(house, text=" " * 100_001 + "A man rides a bike.")[0][0]


def test_texts_with_terms_and_without_are_translated_together(house):
    def count_batches():
        metrics = httpx.get(f"{house}/metrics").text
        return float(re.search(r"resmlp_batch_texts_count ([\d.]+)", metrics)[1])

    for texts in (["A dog."] * 40, ["A dog."] * 38 + ["A bike."] * 2):
        before = count_batches()
        answer(house, text=texts)
        assert count_batches() == before + 1


def test_terms_are_made_ready_once_and_again_where_their_file_changes(tmp_path, caplog, translator):
    path = write(tmp_path / "terms.tsv", TERMS)
    house = House(follow_terms(path), translator.codec)

    def find():
        assert house.read() is house.read()
        return [wanted.text for wanted, _ in house.read().find("a bike")]

    assert find() == ["Drahtesel"]
    write(path, {"bike": "Velo"})
    assert find() == ["Velo"] and not caplog.messages
    for text, said in (
        ("bike\tRad\nbike\tVelo\n", ", line 2: 'bike' stands in line 1 too"),
        ("bike\t\u2603\n", ": 'bike' -> '\u2603': the model cannot say '\u2603'"),
    ):
        path.write_text(text)
        assert find() == ["Velo"]
        assert caplog.messages == [f"--glossary {path}{said}; the terms stay as they were"]
        caplog.clear()
    path.write_text("")
    assert find() == []


def test_terms_belong_to_the_direction_that_is_named(tmp_path):
    class Codec:
        def __init__(self, source, target):
            self.source_language, self.target_language = source, target

        def encode_held(self, text):
            return np.array(list(map(ord, text)))

    pairs = ("en", "de"), ("de", "en"), ("en", "pt_BR")
    models = [Model("-".join(p), SimpleNamespace(codec=Codec(*p))) for p in pairs]
    file = follow_terms(write(tmp_path / "a.tsv", TERMS))
    given = give_terms(models, [("de-en", file), ("EN-pt-br", file)])
    assert [bool(model.house) for model in given] == [False, True, True]
    assert [model.name for model in given] == [model.name for model in models]
    (alone,) = give_terms(models[:1], [("", file)])
    assert alone.house.read().find("bike")[0][0].text == "Drahtesel"
    there = "there are models for en-de, de-en, en-pt_BR"
    for files, said in (
        ([("", file)], f"a.tsv: say whose terms these are, as en-de={file.path}; {there}"),
        ([("en-pt", file)], f"--glossary en-pt={file.path}: no model translates en-pt; {there}"),
        ([("en-de", file)] * 2, f"en-de has the terms of {file.path}; join the files"),
    ):
        with pytest.raises(UserError, match=re.escape(said)):
            give_terms(models, files)


def test_terms_that_the_model_cannot_say_are_refused_before_the_server_starts(tmp_path):
    path = write(tmp_path / "terms.tsv", {"x": "\u2603"})
    flags = ["--port", 0, "--glossary", path]
    done = run("resmlp-mt", "serve", "multi30k-en-de", *flags, check=False)
    assert done.returncode == 2 and done.stdout == ""
    said = f"--glossary {path}: 'x' -> '\u2603': the model cannot say '\u2603'"
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
