"""Terms of requests, and the other options of a search that fairseq does."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from serving.conftest import ask, serving
from serving.held import Held, held_models
from serving.held import ask as ask_app
from serving.test_processes import children

from resmlp_mt import Translator
from resmlp_mt.errors import BrokenModel, UserError
from resmlp_mt.files.finding import find_checkpoint
from resmlp_mt.serving.settings import Settings

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


def test_requests_with_several_glossaries_and_with_none_get_their_own_answers(server, translator):
    glossaries = [{}, TERMS, {"bike": "Rad"}, {"dog": "Hund", "man": "Herr"}, {}, {"woman": "Dame"}]
    with ThreadPoolExecutor(len(glossaries)) as pool:
        found = list(pool.map(lambda g: answer(server, text=TEXTS, glossary=g), glossaries))
    expected = [translator.translate(TEXTS, glossary=g or None) for g in glossaries]
    assert [[best for (best,) in texts] for texts in found] == expected
    assert "Drahtesel" in expected[1][0] and len(set(map(tuple, expected))) == 5


def test_a_checkpoint_does_all_searches_with_what_was_imported_at_the_start(server):
    checkpoint = find_checkpoint("multi30k-en-de")
    translator = Translator.from_pretrained(checkpoint, "cpu")
    text = "A man and a man and a man and a man."
    # No place of the term is known in a text with letters that are decomposed: it is held.
    held = {"glossary": {"A dog": "Ein Hund und noch ein Hund"}, "text": "A dog, a\u0308."}
    with serving(checkpoint, "--device", "cpu") as (address, process):
        (worker,) = children(process)
        assert "libtorch" in Path(f"/proc/{worker}/maps").read_text()
        for asked in ({"max_len_b": 3}, {"no_repeat_ngram_size": 2}):
            assert answer(address, text=text, **asked) == [[translator.translate(text, **asked)]]
        for body in ({"text": text, "no_repeat_ngram_size": 2}, held):
            assert ask(address, **body).status_code == 200
            assert ask(server, **body).status_code == 422  # an export
        for body in (
            held | {"max_len_b": 4},
            {"text": text, "prefix": "Ein Hund und ein Hund und", "no_repeat_ngram_size": 2},
        ):
            assert ask(address, **body).status_code == 422


@pytest.mark.parametrize(("error", "status"), [(UserError, 422), (BrokenModel, 500)])
def test_what_no_translation_is_like_is_the_mistake_of_its_request_alone(caplog, error, status):
    class Lacking(Held):
        def translate_segments(self, segments, *arguments, **options):
            if any("poison" in segment.text for segment in segments):
                raise error("more needs fairseq")
            return super().translate_segments(segments, *arguments, **options)

    translator = Lacking()
    translator.let_go.set()
    requests = [("/translate", {"json": {"text": text}}) for text in ("poison", "good")]
    refused, good = ask_app(Settings(), *requests, models=held_models(translator))
    assert (refused.status_code, good.status_code) == (status, 200)
    assert ("needs fairseq" in refused.json()["error"]) == (status == 422)
    assert ("a request failed" in caplog.text) == (status == 500)
