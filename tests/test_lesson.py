import re

import pytest

from examples.lesson import sentence_pairs, write_lesson
from examples.lesson.grammar import (
    PRONOUNS,
    Clause,
    NounPhrase,
    clock,
    date,
    lay_out,
    number,
    prepositional,
)
from examples.lesson.words import QUESTION, SUBORDINATE, VERBS, Pair

BOY, MEN, GIRL = NounPhrase("boy"), NounPhrase("man", many=True), NounPhrase("girl")
DOG, DOOR = NounPhrase("dog", "the", "old"), NounPhrase("door")
TODAY, NOW = Pair("today", "heute"), Pair("now", "jetzt")
SEE, OPEN, CALL, GIVE = (VERBS[name] for name in ("see", "open", "call", "give"))
IN_KITCHEN = prepositional("in", NounPhrase("kitchen", "a", "small"))
TO_STATION = prepositional("to", NounPhrase("station", "the", "new"))
# What the rules of German say, in sentences written by hand.
EXPECTED = [
    (lay_out(Clause(BOY, SEE, object=NounPhrase("dog", "a", "old"), negated=True)),
     "the boy does not see an old dog", "der Junge sieht keinen alten Hund"),
    (lay_out(Clause(GIRL, OPEN, "past", object=DOOR), SUBORDINATE),
     "the girl opened the door", "das Mädchen die Tür aufgemacht hat"),
    (lay_out(Clause(PRONOUNS["I"], CALL, "want", object=NounPhrase("boy", "this"), time=NOW)),
     "I want to call this boy now", "ich will diesen Jungen jetzt anrufen"),
    (lay_out(Clause(MEN, VERBS["sleep"], "past", place=IN_KITCHEN, negated=True), QUESTION),
     "did the men not sleep in a small kitchen", "haben die Männer nicht in einer kleinen Küche "
     "geschlafen"),
    (lay_out(Clause(BOY, GIVE, object=NounPhrase("apple", "a", "red"), recipient=PRONOUNS["she"])),
     "the boy gives a red apple to her", "der Junge gibt ihr einen roten Apfel"),
    (lay_out(Clause(MEN, VERBS["help"], object=NounPhrase("dog", 23, "small"))),
     "the men help twenty-three small dogs", "die Männer helfen dreiundzwanzig kleinen Hunden"),
    (prepositional("next to", NounPhrase("house", "this", "red", many=True)),
     "next to these red houses", "neben diesen roten Häusern"),
    (clock(7, 30), "at half past seven", "um halb acht"),
    (date(21, "March"), "on the twenty-first of March", "am einundzwanzigsten März"),
    (number(67), "sixty-seven", "siebenundsechzig"),
]  # fmt: skip
GENDERS = {
    "m": "Mann Junge Bruder Hund Bär Apfel Brief Stuhl Garten Bahnhof",
    "f": "Frau Schwester Katze Birne Zeitung Tür Lampe Küche Schule",
    "n": "Kind Pferd Ei Buch Bild Auto Haus Schloss",
}
# Each word that can stand before a singular, and the ending of an adjective after it.
ENDINGS = {
    "m": "der-e den-en dem-en im-en zum-en dieser-e diesen-en diesem-en -er en-en em-en",
    "f": "die-e der-en zur-en diese-e dieser-en e-e er-en",
    "n": "das-e dem-en im-en zum-en dieses-e diesem-en -es em-en",
}


@pytest.fixture(scope="module")
def pairs():
    return sentence_pairs(4000, seed=1)


@pytest.mark.parametrize(("pair", "english", "german"), EXPECTED)
def test_german_is_as_written_by_hand(pair, english, german):
    assert pair == (english, german)


def test_articles_and_adjectives_agree_with_a_gender_table_written_by_hand(pairs):
    singular = {noun: gender for gender, nouns in GENDERS.items() for noun in nouns.split()}
    allowed = {g: dict(row.split("-") for row in rows.split()) for g, rows in ENDINGS.items()}
    stems = "alt|groß|klein|jung|freundlich|neu|schön|rot|schwarz|grün"
    checked = 0
    for _, german in pairs:
        for word, stem, adjective, noun in re.findall(
            rf"(\w+)(?: ({stems})(\w+))? ({'|'.join(singular)})\b", german
        ):
            # The endings of ein, kein and the possessives are the same.
            word = re.sub("^(ein|kein|mein|dein|sein|ihr)(e|er|en|em|)$", r"\2", word.lower())
            table = allowed[singular[noun]]
            assert word in table, german
            assert not stem or adjective == table[word], german
            checked += 1
    assert checked > 2000


def test_english_determines_german():
    german = {}
    for seed in (1, 2):
        pairs = sentence_pairs(4000, seed)
        assert pairs[:200] == sentence_pairs(200, seed)
        for source, target in pairs:
            assert german.setdefault(source, target) == target
    assert len(german) > 4000


def test_no_side_occurs_twice_in_short_sentences_with_a_capital_and_a_mark(pairs):
    for side in zip(*pairs, strict=True):
        assert len(set(side)) == len(pairs)
        for text in side:
            assert re.fullmatch(r"[A-ZÄÖÜ][\w ,'-]*\w[.?]", text)
            assert len(text.split()) <= 20
    assert all(english[-1] == german[-1] for english, german in pairs)


def test_splits_share_no_sentence(tmp_path):
    write_lesson(tmp_path, train=300, valid=50, test=40, seed=5)
    for lang in ("en", "de"):
        splits = [(tmp_path / f"{s}.{lang}").read_text("utf-8") for s in ("train", "valid", "test")]
        lines = [split.splitlines() for split in splits]
        assert [len(split) for split in lines] == [300, 50, 40]
        assert len(set().union(*lines)) == 390
    assert len(list(tmp_path.iterdir())) == 6
