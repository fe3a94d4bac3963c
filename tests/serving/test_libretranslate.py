"""LibreTranslate's interface, as its own client and others ask it."""

import json
import urllib.error

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI
from serving.conftest import ask as post
from serving.held import Held, ask

from resmlp_mt.errors import UserError
from resmlp_mt.serving.models import Models
from resmlp_mt.serving.settings import Settings

TEXT = "A man rides a bike."


def ours(server, text, **options):
    (result,) = post(server, text=text, **options).json()["results"]
    return [found["text"] for found in result["translations"]]


def test_the_real_client_translates_detects_and_lists(server):
    client = LibreTranslateAPI(server)
    lines = f"{TEXT}\nTwo dogs play & bark; in the snow."
    assert [client.translate(lines, "en", "de")] == ours(server, lines) != [lines]
    assert client.translate(TEXT, "auto", "de") == client.translate(TEXT, "en", "de")
    assert client.detect("Ein Hund schläft im Schnee.")[0]["language"] == "de"
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["de", "en"]},
        {"code": "de", "name": "German", "targets": ["de"]},
    ]
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        client.translate(TEXT, "en", "fr")
    assert json.loads(refused.value.read()) == {"error": "fr is not supported"}


def test_alternatives_and_the_language_found_are_told_beside_the_translation(server):
    best, *others = ours(server, TEXT, nbest=3)
    asked = {"q": TEXT, "source": "en", "target": "de", "alternatives": 2}
    assert post(server, **asked).json() == {"translatedText": best, "alternatives": others}
    found = post(server, q=[TEXT, ""], source="auto", target="de", alternatives=1).json()
    assert found["translatedText"] == [best, ""] and found["alternatives"] == [others[:1], []]
    assert [d["language"] for d in found["detectedLanguage"]] == ["en", "en"]
    assert 0 < found["detectedLanguage"][0]["confidence"] <= 100
    # Into its own language a text stays as it is.
    assert post(server, q=TEXT, source="auto", target="en").json()["translatedText"] == TEXT
    settings = httpx.get(f"{server}/frontend/settings").json()
    assert settings["keyRequired"] is False and settings["filesTranslation"] is False
    assert settings["language"]["target"] == {"code": "de", "name": "German"}


def test_health_and_the_description_are_where_libretranslate_has_them(server):
    assert httpx.get(f"{server}/health").json() == {"status": "ok"}
    described = httpx.get(f"{server}/spec").json()
    own = httpx.get(f"{server}/openapi.json").json()
    # Dialect looks at the title to tell whether a server speaks this interface.
    assert described.pop("info") == own.pop("info") | {"title": "LibreTranslate"}
    assert described == own and "/translate" in described["paths"]


def test_paths_may_have_slashes_too_many(server):
    known = {"q": TEXT, "source": "en", "target": "de"}
    assert post(server, "//translate", **known).json() == post(server, **known).json()
    languages = httpx.get(f"{server}/languages").json()
    assert httpx.get(f"{server}//languages").json() == languages
    assert 'path="/languages",status="200"' in httpx.get(f"{server}/metrics").text


def test_markup_stays_and_text_is_translated(server):
    html = '<p class="x">A man rides a <b>bike</b>.</p><ul><li>Two dogs play.<li>A cat</ul>'
    asked = {"q": html, "source": "en", "target": "de", "format": "html"}
    found = post(server, **asked, alternatives=1).json()
    man, dogs, cat = (ours(server, t)[0] for t in (TEXT, "Two dogs play.", "A cat"))
    assert "<b>" in found["translatedText"] and len(found["alternatives"]) == 1
    plain = found["translatedText"].replace("<b>", "").replace("</b>", "")
    # An author gives a stop to what needs one.
    cat = cat.removesuffix(".")
    assert plain == f'<p class="x">{man}</p><ul><li>{dogs}</li><li>{cat}</li></ul>'
    (whole,) = post(server, **asked | {"q": [f"{html} <!-- x -->"]}).json()["translatedText"]
    assert whole.startswith(found["translatedText"]) and whole.endswith("<!-- x -->")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"source": ...}, "Invalid request: missing source parameter"),
        ({"source": "de", "target": "en"}, "English (en) is not available as a target language "
         "from German (de)"),
        ({"format": "xml"}, "xml format is not supported"),
        ({"alternatives": 32}, "Invalid request: alternatives"),
        ({"q": "<div>" * 5000, "format": "html"}, "the HTML is more than 100 tags"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_as_by_libretranslate(server, body, said):
    body = {"q": TEXT, "source": "en", "target": "de"} | body
    response = post(server, **{key: value for key, value in body.items() if value is not ...})
    assert response.status_code == 400 and response.json()["error"].startswith(said)


@pytest.mark.parametrize("path", ["/suggest", "/translate_file"])
def test_what_is_not_offered_is_refused(server, path):
    sent = {"files": {"file": ("x.txt", b"A dog.")}, "data": {"source": "en", "target": "de"}}
    refused = httpx.post(server + path, **sent)
    assert refused.status_code == 403 and refused.json()["error"]


def speakers(*pairs):
    models = [Held(source=source, target=target) for source, target in pairs]
    for model in models:
        model.let_go.set()
    return Models(zip(map("-".join, pairs), models, strict=True)), models


def asked(models, *bodies, path="/translate"):
    """The responses of a service of these models."""
    return ask(Settings(), *((path, {"json": body}) for body in bodies), models=models)


ENGLISH, GERMAN = "The children are playing in the garden.", "Die Kinder spielen im Garten."


@pytest.mark.parametrize(
    ("body", "model"),
    [
        ({"text": ENGLISH}, None),  # into German or French?
        ({"text": GERMAN}, 1),
        ({"text": ENGLISH, "target": "de"}, 0),
        ({"text": GERMAN, "target": "de"}, 0),  # nothing else leads there
        ({"text": "x", "source": "EN-gb", "target": "fr"}, 2),
        ({"text": "x", "source": "en", "target": "fr-CA"}, None),  # another region's
        ({"text": "x", "source": "en", "target": "fr"}, 2),
        ({"text": "x", "source": "en", "target": "fr_FR"}, 2),
        ({"text": [GERMAN, GERMAN], "source": "Auto"}, 1),
        ({"text": "x", "source": "fr"}, None),
        ({"q": GERMAN, "source": "auto", "target": "en"}, 1),
        ({"q": ENGLISH, "source": "auto", "target": "fr"}, 2),
        ({"q": "x", "source": "fr", "target": "en"}, None),
        ({"q": "x", "source": "de-AT", "target": "en_US"}, 1),
    ],
)
def test_the_languages_of_a_request_choose_the_model(body, model):
    models, translators = speakers(("en", "de"), ("de", "en"), ("en", "fr_FR"))
    (response,) = asked(models, body)
    if model is None:
        assert response.status_code in (400, 422)
        assert "models for" in response.text or "not available as a target" in response.text
    else:
        assert response.status_code == 200, response.text
    assert [bool(t.batches) for t in translators] == [i == model for i in range(3)]


SPANISH = "El perro duerme en el jardín de la casa."


def test_texts_are_detected_together_with_the_share_of_all_languages():
    """As by LibreTranslate: what there is most of first, as sure as in the texts that have it."""
    models, _ = speakers(("en", "de"), ("de", "en"))
    texts = SPANISH, " ?! ", ENGLISH, [ENGLISH], [ENGLISH, GERMAN * 2, "12"], ["", " "], []
    responses = asked(models, *({"q": q} for q in texts), path="/detect")
    spanish, blank, alone, one, two, empty, none = (response.json() for response in responses)
    assert spanish[0]["confidence"] < 5 and alone[0]["confidence"] > 90
    assert blank == empty == [{"confidence": 0.0, "language": "en"}]
    assert one == alone and alone[0]["language"] == "en"
    assert [found["language"] for found in two] == ["de", "en"]
    assert min(found["confidence"] for found in two) > 90
    assert none == {"error": "Invalid request: missing q parameter"}


def test_a_text_without_letters_is_taken_for_english():
    """LibreTranslate's default."""
    models, _ = speakers(("de", "fr"), ("fr", "en"), ("en", "de"))
    number = {"q": "12", "source": "auto"}
    to_german, to_english = asked(models, *(number | {"target": t} for t in ("de", "en")))
    assert to_german.json()["translatedText"] == "21"  # the model says it backwards
    assert to_english.json()["translatedText"] == "12"
    assert to_english.json()["detectedLanguage"] == {"confidence": 0.0, "language": "en"}


KNOWN = {"source": "de", "target": "en"}
HUND = KNOWN | {"q": "Hund"}
UNSAID = "format", "alternatives", "api_key"


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({"json": HUND | {"source": "De", "target": "EN", "alternatives": -3}}, "dnuH"),
        ({"json": HUND | {"q": ["Hund"]}}, ["dnuH"]),
        ({"json": HUND | {"q": [" ", "Hund"]}}, [" ", "dnuH"]),
        ({"json": HUND | {"q": "\n\t"}}, "\n\t"),
        ({"json": HUND | {"q": " ", "format": "html"}}, " "),
        ({"json": HUND | {"q": GERMAN, "source": "AUTO", "target": "de"}}, GERMAN),
        # Many clients write what they have no value for as null, or as an empty field of a form.
        ({"json": HUND | dict.fromkeys(UNSAID)}, "dnuH"),
        ({"data": HUND | dict.fromkeys(UNSAID, "")}, "dnuH"),
        ({"data": HUND | {"q": ["Hund", ""]}}, ["dnuH", ""]),
        ({"files": {name: (None, value) for name, value in HUND.items()}}, "dnuH"),
        ({"params": KNOWN, "data": {"q": "Hund"}}, "dnuH"),
        ({"params": HUND, "headers": {"Content-Type": "text/plain"}}, "dnuH"),
        ({"params": HUND | {"q": ["Hund", ""]}}, ["dnuH", ""]),
        # As with LibreTranslate, JSON has all that is asked.
        ({"params": HUND, "json": KNOWN}, "Invalid request: missing q parameter"),
        ({"params": {"q": "Hund"}}, "Invalid request: missing source parameter"),
        ({"files": {"q": ("x.txt", b"Hund")}}, "files are not taken"),
        ({"params": {"page": 1}}, "Content-Type: application/json"),
    ],
)
def test_requests_are_read_as_libretranslate_reads_them(sent, answer):
    (response,) = ask(Settings(), ("/translate", sent))
    if response.status_code == 400:
        assert answer in response.json()["error"]
    else:
        found = response.json()
        assert found.pop("translatedText") == answer and found.keys() <= {"detectedLanguage"}


@pytest.mark.parametrize(
    ("in_body", "header", "status"),
    [
        ({}, "Bearer ours", 200),
        ({"api_key": None}, "bearer ours", 200),
        ({"api_key": "ours"}, "Bearer another", 403),
        ({"api_key": 123}, "", 200),
        ({"api_key": "another"}, "Bearer ours", 200),  # what stands in the head is looked at first
        ({"api_key": ""}, "", 403),
    ],
)
def test_a_key_may_stand_in_the_body_or_in_a_header(tmp_path, in_body, header, status):
    (keys := tmp_path / "keys").write_text("ours\n123\n")
    request = "/translate", {"json": HUND | in_body}
    (response,) = ask(Settings(keys=keys), request, Authorization=header)
    assert response.status_code == status, response.text


def test_a_code_is_the_nearest_that_the_service_has():
    models, _ = speakers(("en", "zh"), ("zh-Hant", "pt_BR"))
    asked = "zh zh-CN zh_hans zh-TW ZH-hant pt pt-br pt-PT de".split()
    assert [models.find_language(code) for code in asked] == [
        *("zh", "zh", "zh", "zh", "zh-Hant"),
        *("pt_BR", "pt_BR", None, None),
    ]


def test_two_models_of_the_same_languages_are_refused():
    with pytest.raises(UserError, match="en-de and en-de both translate en-de"):
        speakers(("en", "de"), ("en", "de"))
