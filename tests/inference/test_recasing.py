"""Sentences in capitals are translated as those in normal case, and their translations raised."""

import pytest
from resmlp_mt.inference.segments import split_text

from resmlp_mt import Translator
from resmlp_mt.export.writer import export_model
from resmlp_mt.inference.alignment import align_words
from resmlp_mt.inference.glossary import Glossary

DOGS, MAN = "Two dogs play in the snow.", "A man rides a bike."


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de")


def test_capitals_are_answered_in_capitals_and_nothing_else_changes(translator):
    dogs, man = translator.translate([DOGS, MAN])
    assert translator.translate(DOGS.upper()) == dogs.upper() != dogs
    assert translator.translate(f"{MAN}  {DOGS.upper()}\n{MAN}") == f"{man}  {dogs.upper()}\n{man}"
    lines = [DOGS, MAN, "A NATO dog.", "BMX", "IBM PC", "", "Ein Hund und NATO"]
    assert translator.translate(lines) == translator.translate(lines, recase=False)
    typed = translator.translate(DOGS.upper(), recase=False)
    assert typed not in (dogs, dogs.upper())


@pytest.mark.parametrize("options", [dict(nbest=3), dict(sampling=True, nbest=3)], ids=str)
def test_every_hypothesis_is_in_capitals(translator, options):
    (plain,), (raised,) = (
        list(translator.translate_nbest(x, **options)) for x in (DOGS, DOGS.upper())
    )
    assert [h.text for h in raised] == [h.text.upper() for h in plain]
    assert [h.score for h in raised] == [h.score for h in plain]
    assert plain[0].unknown == raised[0].unknown


def test_words_keep_their_alignment(translator):
    (plain,), (raised,) = translator.translate_nbest([DOGS, DOGS.upper()], attention=True)
    assert align_words(plain.attention) == align_words(raised.attention)
    assert len(plain.text.split()) == len(raised.text.split())


def test_exported_models_and_lines_that_stay_whole_read_capitals_too(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    export_model("multi30k-en-de", tmp_path / "fast", int8=True)
    fast = Translator.from_pretrained(tmp_path / "fast", threads=1)
    for options in (dict(), dict(split_sentences=False), dict(glossary={"cat": "Kater"})):
        line = f"{DOGS} {MAN}"
        assert fast.translate(line.upper(), **options) == fast.translate(line, **options).upper()


def test_lines_with_a_prefix_or_words_to_hold_are_taken_as_typed(translator):
    lines = [DOGS.upper(), DOGS.upper()]
    for led in (dict(prefix=["ZWEI", ""]), dict(words=[["Hund"], []])):
        begun, free = translator.translate(lines, **led)
        typed, _ = translator.translate(lines, **led, recase=False)
        assert begun == typed and free == translator.translate(DOGS).upper()


def test_terms_are_found_in_capitals_and_their_translations_raised(translator):
    terms = {"bike": "Drahtesel", "Berlin": "Spree-Athen"}
    found = translator.translate([MAN.upper(), DOGS.upper(), MAN], glossary=terms)
    man, dogs = translator.translate([MAN, DOGS], glossary=terms)
    assert found == [man.upper(), dogs.upper(), man] and "DRAHTESEL" in found[0]
    glossary = Glossary(terms, translator.codec)
    assert glossary.find("IN BERLIN", capitals=True) and not glossary.find("IN BERLIN")
    assert not glossary.find("IN berlin", capitals=True)


def test_sentences_are_read_each_by_itself_and_measured_as_they_are_read():
    def pieces(text):  # a letter in a capital is a subword, and else a word
        return [piece for word in text.split() for piece in (word if word.isupper() else [word])]

    def split(text, longest, sentences=True):
        read = {"STOP IT.": "Stop it.", " GO ON.": " Go on."}
        cut = ["STOP IT.", " GO ON.", " And so on."]
        parts = split_text(
            text, lambda x: cut, pieces, longest, sentences, lambda x: read.get(x, x)
        )
        assert "".join(part.text for part in parts) == text
        return [(part.text, list(part.pieces), part.capitals) for part in parts]

    text = "STOP IT. GO ON. And so on."
    parts = [
        ("STOP IT.", ["Stop", "it."], True),
        (" GO ON.", ["Go", "on."], True),
        (" And so on.", ["And", "so", "on."], False),
    ]
    assert split(text, 3) == split(text, 3, sentences=False) == parts
    whole = [(text, pieces(text), False)]
    assert split(text, 100, sentences=False) == whole
    assert split(text, 1)[:2] == [("STOP ", ["Stop"], True), ("IT.", ["it."], True)]
