import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from translating.test_alignment import Copying, codec
from translating.test_rules import Forgetting

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


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        ("car=A", "A car, the Car and THE CAR", "A"),
        ("car=A", "scar cart car_ car2", ""),
        ("IT=A it=B", "it", "B"),
        ("red_car=A car=B red=C", "the red  cars are red as a car", "C B"),
        ("red_car=A car_park=B", "red car park", "A"),
        ("C++=A .NET=B C=C", "C++ and .NET, C", "A B C"),
        ("Straße=A", "die Straße STRASSE", "A"),
        ("İzmir=A x=B", "İzmir x", "A B"),
    ],
)
def test_terms_are_found_as_whole_words_longest_first(terms, text, expected):
    pairs = (pair.replace("_", " ").rpartition("=") for pair in terms.split())
    terms = {term: wanted for term, _, wanted in pairs}
    assert find(terms, text) == expected.split()


def test_the_i_with_a_dot_and_the_one_without_are_two_letters_in_turkish():
    language = "tr"
    terms = {"ışık": "A", "istanbul": "B", "kız": "C"}
    for text in ("Işık, İstanbul ve kız", "IŞIK, İSTANBUL VE KIZ", "Işık, İstanbul, Kız"):
        assert find(terms, text, language) == ["A", "B", "C"]
        assert find(terms, text, language, capitals=True) == ["A", "B", "C"]
    assert find(terms, "İşık, Istanbul ve KİZ", language) == []
    assert find({"IŞIK": "A", "Çin": "B"}, "ışık, İŞIK, ÇIN", language, capitals=True) == []
    assert find({"Çin": "B"}, "ÇİN", language, capitals=True) == ["B"]
    assert find({"istanbul": "B"}, "Istanbul", "de") == ["B"]


def test_scripts_without_blanks_have_no_whole_words_in_any_language():
    for language in ("en", "ja"):
        assert find({"猫": "A", "黒猫": "B"}, "私の黒猫と猫。", language) == ["B", "A"]
        assert find({"AI": "A"}, "生成AI技術とAIDS治療", language) == ["A"]


# Terms, texts that have them, and texts where vowel signs make others of them.
MARKED = [
    ("रस", "मुझे रस दो।", "सारस उड़ता है"), ("फल", "फल।", "फली"), ("কল", "কল", "কলা"),
    ("كتب", "كتب", "كتبَ"), ("ปลา", "ฉันกินปลา", "ฉัน"), ("น้ำ", "ฉันดื่มน้ำ", "น"),
    ("น", "น", "น้ำ"), ("က", "က", "ကို"),
]  # fmt: skip


@pytest.mark.parametrize(("term", "text", "other"), MARKED)
def test_vowel_signs_belong_to_words_and_to_their_letters(term, text, other):
    for language in ("hi", "th"):
        assert find({term: "A"}, text, language) == ["A"]
        assert find({term: "A"}, other, language) == []


def test_letters_are_found_composed_and_decomposed():
    composed, decomposed = "\xc4pfel", "A\u0308pfel"
    for term in (composed, decomposed):
        for text in (composed, decomposed, composed.lower()):
            found = find({term: "A", "rot": "B"}, f"{text} {text}, rot", "de")
            assert found == (["A", "B"] if text[0].isupper() else ["B"])
    assert find({"Apfel": "A", "A": "B"}, decomposed, "de") == []


@given(st.lists(st.sampled_from("red car, the Red\tcar  redcar (car) a".split(" ")), max_size=6))
def test_terms_are_located_in_a_text_with_any_blanks(words):
    text = "".join(f"{word} {' ' * (i % 3)}" for i, word in enumerate(["", *words]))
    terms = {"red": "A", "red car": "B", "car": "C"}
    located = Glossary(terms, Letters("en")).find(text)
    assert [wanted.text for wanted, _ in located] == [
        terms[" ".join(text[i:j].split()).lower()] for _, (i, j) in located
    ]
    decomposed = Glossary(terms, Letters("en")).find(f"{text}a\u0308")
    assert [(wanted.text, at) for wanted, at in decomposed] == [
        (wanted.text, None) for wanted, _ in located
    ]


_WORDS = ("red", "Red", "red car", "car", "Car", "park")
_TERMS = st.dictionaries(st.sampled_from(_WORDS), st.sampled_from("ABC"), max_size=4)


@given(_TERMS, _TERMS, st.lists(st.sampled_from("red Red RED car Car park".split())))
def test_two_glossaries_find_what_one_of_both_finds(terms, others, words):
    text = " ".join(words)
    joined = Glossary(terms, Letters("en")).over(Glossary(others, Letters("en")))
    one = Glossary(others | terms, Letters("en"))
    found, expected = (
        [(wanted.text, at) for wanted, at in each.find(text)] for each in (joined, one)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A  red  car is here.", "A blaues Auto is here."),
        ("My red bike, see setup.py.", "My blau bike, see setup.py."),
        ("THE RED CAR IS HERE.", "THE BLAUES AUTO IS HERE."),
        ("She is in Łódź, in a red car 🐶!", "She is in Łódź, in a blaues Auto 🐶!"),
        ("I like **red** very much", "I like **blau** very much"),
    ],
)
def test_terms_are_read_as_names_and_become_their_translations(text, expected):
    translator = Translator(Copying(), codec("en-de"))
    glossary = {"red": "blau", "red car": "blaues Auto", "Łódź": "Łódź"}
    assert translator.translate(text, glossary=glossary) == expected


@pytest.mark.parametrize(("must", "held"), [(True, [0, 1]), (False, [0, 0, 0])])
def test_a_term_whose_name_was_lost_is_held_by_the_search_if_it_must_be(must, held):
    asked = []

    class Noting(Forgetting):
        def search(self, sources, options, guides):
            asked.append(sum(len(guide.constraints) for guide in guides or ()))
            return super().search(sources, options, guides)

    translator = Translator(Noting(), codec("en-de"))
    glossary = Glossary({"red": "blau"}, translator.codec, must=must)
    (found,) = translator.translate_nbest("A red dog", glossary=glossary)
    assert (found[0].text, found[0].lost) == ("A red dog", False)
    assert asked == held


def test_a_file_of_terms_is_read_and_its_faults_are_named(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("bike\tRad\n\n red  car \trotes Auto \n")
    assert read_glossary(path) == {"bike": "Rad", "red car": "rotes Auto"}
    for text, said in (
        ("a\tb\nc\n", "line 2: not a term"),
        ("a\t\n", "line 1: not a term"),
        ("a\tb\tc\n", "line 1: not a term"),
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
    assert translator.translate(lines, glossary=path) == held
    for wrong in ({"x": "☃"}, {"x": "Acme™"}, {"x": " "}, tmp_path / "nowhere.tsv"):
        with pytest.raises(UserError):
            fast.translate(lines, glossary=wrong)
    with pytest.raises(ValueError, match="glossary: goes without words"):
        fast.translate(lines, glossary={"x": "y"}, words=[[], [], []])


def test_what_is_taken_as_typed_is_read_again_as_typed():
    reader = Pipeline(codec("en-de"), 255)
    glossary = Glossary({"dogs": "Hunde"}, reader.model)
    text = "**12,500** dogs saw setup.py."
    (segment,) = reader.split(text, recase=False, find_terms=glossary.find)
    again = reader.read_again(segment)
    assert again.read.text == text and [wanted.text for wanted in again.held] == ["Hunde"]
