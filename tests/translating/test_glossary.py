import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from translating.test_alignment import Copying, codec
from translating.test_rules import forget, saying

from resmlp_mt import Translator
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.text.pipeline import Pipeline
from resmlp_mt.translating.glossary import Glossary, read_glossary


class Letters:
    """A codec of a language: what a translation must hold is its code points."""

    def __init__(self, source_language):
        self.source_language = source_language

    def encode_held(self, text):
        return np.array(list(map(ord, text)))


def find(terms, text, language="en", capitals=False):
    """The translations of the terms in a text, each once."""
    found = Glossary(terms, Letters(language)).find(text, capitals)
    return list(dict.fromkeys("".join(map(chr, wanted.tokens)) for wanted, _ in found))


TURKISH = "ışık=A istanbul=B kız=C"


@pytest.mark.parametrize(
    ("language", "terms", "text", "expected"),
    [
        ("en", "car=A", "A car, the Car and THE CAR", "A"),
        ("en", "car=A", "scar cart car_ car2", ""),
        ("en", "IT=A it=B", "it", "B"),
        ("en", "red_car=A car=B red=C", "the red  cars are red as a car", "C B"),
        ("en", "red_car=A car_park=B", "red car park", "A"),
        ("en", "C++=A .NET=B C=C", "C++ and .NET, C", "A B C"),
        ("en", "Straße=A", "die Straße STRASSE", "A"),
        ("en", "İzmir=A x=B", "İzmir x", "A B"),
        # The i with a dot and the one without are two letters in Turkish.
        ("tr", TURKISH, "Işık, İstanbul ve kız", "A B C"),
        ("tr", TURKISH, "IŞIK, İSTANBUL VE KIZ", "A B C"),
        ("tr", TURKISH, "İşık, Istanbul ve KİZ", ""),
        ("de", "istanbul=B", "Istanbul", "B"),
        # Scripts without blanks have no whole words, in any language.
        ("en", "猫=A 黒猫=B", "私の黒猫と猫。", "B A"),
        ("ja", "AI=A", "生成AI技術とAIDS治療", "A"),
        # Vowel signs belong to words and to their letters.
        ("hi", "रस=A", "मुझे रस दो।", "A"), ("hi", "रस=A", "सारस उड़ता है", ""),
        ("hi", "फल=A", "फल।", "A"), ("hi", "फल=A", "फली", ""),
        ("bn", "কল=A", "কল", "A"), ("bn", "কল=A", "কলা", ""),
        ("ar", "كتب=A", "كتب", "A"), ("ar", "كتب=A", "كتبَ", ""), ("th", "ปลา=A", "ฉันกินปลา", "A"),
        ("th", "น้ำ=A", "ฉันดื่มน้ำ", "A"), ("th", "น=A", "น้ำ", ""), ("my", "က=A", "ကို", ""),
    ],
)  # fmt: skip
def test_terms_are_found_as_whole_words_longest_first(language, terms, text, expected):
    pairs = (pair.replace("_", " ").rpartition("=") for pair in terms.split())
    assert find({term: said for term, _, said in pairs}, text, language) == expected.split()


def test_texts_in_capitals_have_the_terms_by_the_capitals_of_their_language():
    known = {"IŞIK": "A", "Çin": "B", "kız": "C"}
    assert find(known, "ÇİN, KIZ, IŞIK", "tr", capitals=True) == ["B", "C", "A"]
    assert find(known, "ışık, İŞIK, ÇIN, KİZ", "tr", capitals=True) == []


def test_letters_are_found_composed_and_decomposed():
    composed, decomposed = "\xc4pfel", "A\u0308pfel"
    for term in (composed, decomposed):
        for text in (composed, decomposed, composed.lower()):
            found = find({term: "A", "rot": "B"}, f"{text} {text}, rot", "de")
            assert found == (["A", "B"] if text[0].isupper() else ["B"])
    assert find({"Apfel": "A", "A": "B"}, decomposed, "de") == []


_WORDS = ("red", "Red", "red car", "car", "Car", "park")
_TERMS = st.dictionaries(st.sampled_from(_WORDS), st.sampled_from("ABC"), max_size=4)


@given(_TERMS, st.lists(st.sampled_from("red Red RED car, Car park (car) \t".split(" "))))
def test_what_is_found_stands_at_its_place(terms, words):
    text, glossary = " ".join(words), Glossary(terms, Letters("en"))
    found = [(wanted.text, at) for wanted, at in glossary.find(text)]
    for wanted, (start, end) in found:
        word = " ".join(text[start:end].split())
        assert terms.get(word, terms.get(word.lower())) == wanted
    decomposed = [(wanted.text, at) for wanted, at in glossary.find(f"{text} a\u0308")]
    assert decomposed == [(wanted, None) for wanted, _ in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A  red  car is here.", "A blaues Auto is here."),
        ("My red bike, see setup.py.", "My blau bike, see setup.py."),
        ("THE RED CAR IS HERE.", "THE BLAUES AUTO IS HERE."),
        ("She is in Łódź, in a red car 🐶!", "She is in Łódź, in a blaues Auto 🐶!"),
        ("I like **red** very much", "I like **blau** very much"),
        ('My red <a href="red.html">bike</a>', 'My blau <a href="red.html">bike</a>'),
    ],
)
def test_terms_are_read_as_names_and_become_their_translations(text, expected):
    translator = Translator(Copying(), codec("en-de"))
    glossary = {"red": "blau", "red car": "blaues Auto", "Łódź": "Łódź"}
    assert translator.translate(text, glossary=glossary) == expected


def test_a_term_whose_name_was_lost_is_held_by_the_search():
    translator = saying(forget)
    (found,) = translator.translate_nbest("A red dog", glossary={"red": "blau"})
    assert (found[0].text, found[0].lost) == ("A red dog", False)
    assert translator.engine.held == [0, 1]


def test_a_file_of_terms_is_read_and_its_faults_are_named(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("bike\tRad\n\n red  car \trotes Auto \n")
    assert read_glossary(path) == {"bike": "Rad", "red car": "rotes Auto"}
    for text, said in (
        ("a\tb\nc\n", "line 2: not a term"),
        ("a\t\n", "line 1: not a term"),
        ("a\tb\nc\td\na\te\n", "line 3: 'a' stands in line 1 too"),
        ("\xe4\tb\na\u0308\tc\n", "line 2: 'ä' stands in line 1 too"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=said):
            read_glossary(path)


def test_sentences_hold_the_terms_and_those_without_any_are_as_ever(tmp_path):
    checkpoint = PRETRAINED / "multi30k-en-de" / "model.pt"
    searched, fast = (Translator.from_pretrained(m) for m in (checkpoint, "multi30k-en-de"))
    lines = ["A man rides a bike. Two dogs play.", "A girl sings.", "Three men ride a bike."]
    for translator in (searched, fast):
        plain = translator.translate(lines)
        held = translator.translate(lines, glossary={"bike": "Drahtesel"})
        assert "Drahtesel" in held[0] and "Drahtesel" in held[2]
        assert held[0].endswith(plain[0].rpartition(". ")[2])  # without a term in the same line
        assert held[1] == plain[1]
    (path := tmp_path / "terms.tsv").write_text("bike\tDrahtesel\n")
    assert fast.translate(lines, glossary=path) == held
    for wrong in ({"x": "☃"}, {"x": "Acme™"}, {"x": " "}, tmp_path / "nowhere.tsv"):
        with pytest.raises(UserError):
            fast.translate(lines, glossary=wrong)


def test_what_is_taken_as_typed_is_read_again_as_typed():
    reader = Pipeline(codec("en-de"), 255)
    glossary = Glossary({"dogs": "Hunde"}, reader.model)
    text = "**12,500** dogs saw setup.py."
    (segment,) = reader.split(text, recase=False, find_terms=glossary.find)
    again = reader.read_again(segment)
    assert again.read.text == text and [wanted.text for wanted in again.held] == ["Hunde"]
