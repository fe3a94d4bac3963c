import warnings

import numpy as np
import pytest
import torch

from resmlp_mt import Translator
from resmlp_mt.data.card import Card
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.text.segments import Segment, Traced
from resmlp_mt.translating.alignment import align_words
from resmlp_mt.translating.hypotheses import Hypothesis, join

CHECKPOINT = PRETRAINED / "multi30k-en-de" / "model.pt"


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de")


def test_sentences_are_translated_one_by_one_and_the_space_between_them_is_kept(translator):
    man, dog = "A man rides a bike.", "A dog sleeps."
    ein_mann, ein_hund = translator.translate([man, dog])
    pattern = "{0} {1}\n\n  {1}\t{0}\n"
    found = translator.translate(pattern.format(man, dog))
    assert found == pattern.format(ein_mann, ein_hund)
    whole = translator.translate(f"{man} {dog}\n{man}", split_sentences=False)
    assert whole.split("\n")[0] != f"{ein_mann} {ein_hund}"
    assert whole.split("\n")[1] == ein_mann
    assert translator.translate([" \n", "\n\x01\n", "\x01"]) == ["\n", "\n\n", ""]


def test_a_line_longer_than_usual_is_cut_unless_it_shall_stay_whole():
    translator = Translator.from_pretrained("multi30k-en-de")
    translator.codec.card = Card(split_sentences=True, usual_length=12)
    line = " ".join(["a man rides a bike and"] * 8)
    parts = translator.split(line)
    assert "".join(part.text for part in parts) == line
    assert len(parts) >= 4 and max(len(part.pieces) for part in parts) <= 12
    for whole in ({"split_sentences": False}, {"begun": True}):
        assert [part.text for part in translator.split(line, **whole)] == [line]


def test_blocks_of_code_stay_as_they_are(translator):
    text, code = "A dog sleeps.", "```\n  A dog sleeps. *A* cat. ONE TWO THREE.\n\n# x\n```"
    dog = translator.translate(text)
    pattern = "{0}\n\n{1}\n\n{0} {0}\n"
    assert translator.translate(pattern.format(text, code)) == pattern.format(dog, code)
    assert translator.translate(code) == code
    (found,) = translator.translate_nbest(f"{code}\n{text}", nbest=2, attention=True)
    assert all(hypothesis.text.startswith(f"{code}\n") for hypothesis in found)
    pairs = align_words(found[0].attention)
    assert pairs and min(map(min, pairs)) >= len(code.split())  # none of code
    # Nor does anything lead its translation.
    for led in ({"glossary": {"cat": "Kater"}}, {"prefix": "Ein"}):
        assert translator.translate(code, **led) == code
        assert translator.translate(f"{code}\n{text}", **led).startswith(f"{code}\nEin ")
    begun = translator.translate(f"{text}\n{code}\n{text}", prefix=f"Ja.\n{code}\nDer")
    assert begun.startswith(f"Ja.\n{code}\nDer ")


def test_what_has_no_letters_stays_as_it_is(translator):
    texts = ["00:00:01,000 --> 00:00:02,500", "  12\n", "```", "🙂 🙂", "---\n* * *", "." * 400]
    texts += ["\u200b", "--\ufeff", "\u200b\n\ufeff"]  # nor subwords
    with warnings.catch_warnings(action="error"):  # no model has seen all of these
        assert translator.translate(texts) == texts
    dog = translator.translate("A dog sleeps.")
    assert translator.translate("1)\nA dog sleeps.\n--") == f"1)\n{dog}\n--"
    (found,) = translator.translate_nbest("1 + 2", nbest=2, attention=True)
    assert [hypothesis.text for hypothesis in found] == ["1 + 2"] * 2
    assert align_words(found[0].attention) == [(0, 0), (1, 1), (2, 2)]
    assert translator.translate("1 + 2", prefix="Ein Hund").startswith("Ein Hund")


def test_bytes_that_are_no_character_are_left_out():
    codec = Translator.from_pretrained("en-de").codec

    def decode(*pieces):
        return codec.decode(np.array([codec.target_dictionary.index(piece) for piece in pieces]))

    dog, half = ["▁H", "und"], ["<0xE5>", "<0xAF>"]
    assert decode(*dog) == "Hund"
    assert decode(*half, "<0xBF>") == "寿"
    assert decode(*dog, "▁", *half, *dog) == "Hund Hund"
    assert decode(*half) == decode("▁", *half) == ""
    assert decode(*dog, *half, *half) == decode(*dog, "▁", *half) == "Hund"


def test_languages_without_blanks_between_sentences_lose_and_gain_them():
    one, two = [Hypothesis("1", 0.0)], [Hypothesis("2", 0.0)]
    for language, texts, expected in [
        ("de", ["一。", "二。"], "1 2"),
        ("zh-Hans", ["One. ", "Two."], "12"),
        ("en", ["一。\u3000", "二二", "三「四」", "五"], "1 2 1 2"),
        ("en", ["https://a.", "b/c-", "d."], "121"),  # a word that was too long
        ("de", ["One.\u200f", "Two!\u200b\ufeff", "Three."], "1 2 1"),
    ]:
        parts = [Segment(text, None, Traced.of(text)) for text in texts]
        translations = [one, two, one, two][: len(parts)]
        assert join("".join(texts), translations, parts, language)[0].text == expected


def test_characters_that_the_model_never_saw_are_counted_and_named_once(translator):
    known, strange = "A man rides a bike.", "你好，世界。"
    assert translator.share_unknown(known) == translator.share_unknown(" \x01") == 0
    assert translator.share_unknown("Amanbike" + "你" * 8) == 0.5
    with pytest.warns(UserWarning, match="text 2:.*你好") as caught:
        translator.translate([known, strange, strange, f"{known} {strange}"])
    assert len(caught) == 1


def test_what_stands_there_twice_is_searched_once_and_said_as_by_itself(translator, monkeypatch):
    dog, man = "A dog sleeps.", "A man rides a bike."
    alone, sizes = translator.translate([dog, man]), []
    search = type(translator).search

    def counting(self, sources, *options):
        sizes.append(len(sources))
        return search(self, sources, *options)

    monkeypatch.setattr(type(translator), "search", counting)
    rows = [" ".join([dog, man, dog] * 3), f"{dog}\n{dog}"]
    found = translator.translate(rows)
    assert found == [" ".join([alone[0], alone[1], alone[0]] * 3), f"{alone[0]}\n{alone[0]}"]
    assert sizes == [6]  # where lines begin and end, parts differ


WRONG = [
    dict(beam=0), dict(beam=2.5), dict(nbest=6), dict(foo=1), dict(lenpen=float("nan")),
    dict(sampling_topp=0.5), dict(constraints="sorted"), dict(batch_tokens="many"), dict(first=-1),
    dict(beam=2, options=SearchOptions(3)), dict(prefix=b"Ein"), dict(words=[[], []]),
    dict(glossary={"bike": None}), dict(glossary={"bike": "Rad"}, words=[[]]),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_impossible_options_are_refused_before_the_first_line(translator, wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}"):
        translator.translate_nbest(["A man."], **wrong)
    with pytest.raises(ValueError, match="translate_nbest"):
        translator.translate(["A man."], nbest=3)


@pytest.mark.parametrize("wrong", [None, float("nan"), b"A man."])
def test_what_comes_before_a_line_that_is_no_text_is_translated(translator, wrong):
    lines = ["A man rides a bike.", "Two dogs play."]
    found = translator.translate_nbest([*lines, wrong, "A cat."])
    assert [next(found)[0].text for _ in lines] == translator.translate(lines)
    with pytest.raises(ValueError, match=f"^line 3: {wrong} is no text"):
        next(found)


def test_length_goes_by_the_sentence_whatever_its_batch(translator):
    lines = ["A man.", "A man and a woman ride a bike through the snow.", "Two dogs play."]
    assert translator.translate(lines, max_len_b=10**400) == translator.translate(lines)
    limit = dict(max_len_a=0.5, max_len_b=1)
    together = list(translator.translate_nbest(lines, **limit, attention=True))
    alone = [next(translator.translate_nbest([x], **limit, attention=True)) for x in lines]
    assert [found[0].text for found in together] == [found[0].text for found in alone]
    for ((best,),) in zip(together, strict=True):
        (shown,) = best.attention
        assert 0 < len(shown.target) - 1 <= 0.5 * len(shown.source) + 1


def test_loading_leaves_torchs_random_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    Translator.from_pretrained(CHECKPOINT, "cpu")
    assert torch.equal(torch.rand(2), expected)


def test_halves_of_surrogate_pairs_do_not_stop_a_translation(translator):
    assert translator.translate(["A \ud800 dog."]) == translator.translate(["A \ufffd dog."])
    assert translator.translate(["\ud83d\ude00"]) == translator.translate(["😀"])
    text, begun = "A dog sleeps. A man rides.", "Ein \ud800 Hund. Ein"
    mended = begun.replace("\ud800", "\ufffd")
    found = translator.translate(text, prefix=begun)
    assert found == translator.translate(text, prefix=mended) and found.startswith(mended)


def test_every_line_has_its_own_prefix_or_words(translator):
    long = "Two dogs play. " * 40
    lines = ["A man rides a bike.", "", long, "A woman sings."]
    begun = translator.translate(lines, prefix=["Ein alter", "Eine", "Drei", ""])
    plain = translator.translate(lines)
    assert begun[0].startswith("Ein alter ") and begun[2].startswith("Drei ")
    assert begun[2].count("Drei") == 1 and begun[1] == "" and begun[3] == plain[3]
    assert translator.translate(lines[:1], prefix="Ein alter") == begun[:1]
    words = [iter(["Hund", "Katze"]), [], ["Haus"]]
    held = translator.translate([lines[0], "", lines[3]], words=words)
    assert held[0].index("Hund") < held[0].index("Katze") and held[1] == "" and "Haus" in held[2]
    # What is blank leads nothing: the line is divided as ever.
    two = "A dog sleeps. A woman sings."
    for blank in (dict(words=[[" ", ""]]), dict(prefix=" ")):
        assert translator.translate([two], **blank) == translator.translate([two])
    with pytest.raises(UserError, match="line 3: too long"):
        translator.translate(lines, words=[[], [], ["Hund"], []])
    for few in (dict(prefix=["Ein"]), dict(words=[["Hund"]])):
        with pytest.raises(ValueError, match="none for line 2"):
            translator.translate(lines, **few)


@pytest.mark.parametrize("held", [dict(prefix="Haus " * 4), dict(words=[["Haus " * 4]])], ids=str)
def test_what_a_translation_must_hold_and_must_not_is_no_fault_of_the_weights(translator, held):
    with pytest.raises(UserError, match="no_repeat_ngram_size") as caught:
        translator.translate(["The house."], max_len_b=20, no_repeat_ngram_size=2, **held)
    assert "weights" not in str(caught.value)


BEGUN, ON = "Der Mann da fährt.", "Zwei kleine"
LINE = "A man rides a bike. Two dogs play. A girl sings."
LINES = "A man rides a bike\nTwo dogs play. A girl sings.\nA cat sleeps"


@pytest.mark.parametrize(
    ("text", "prefix", "rest"),
    [
        (LINE, f"{BEGUN}  ", "{dogs} {girl}"),
        (LINE, f"{BEGUN}  {ON}", "{small} {girl}"),
        (LINE, f"{BEGUN} Ja. ", "{girl}"),
        # It may hold what the model cannot say, since nothing has to.
        (LINE, "Ein ☃ fährt. ", "{dogs} {girl}"),
        (LINES, "Der Mann da\n", "{dogs} {girl}\n{cat}"),
        (LINES, f"Der Mann da\n{ON}", "{small} {girl}\n{cat}"),
        (LINES, "Der Mann da\nJa. ", "{girl}\n{cat}"),
        # A finished line may have other sentences than the source.
        (LINES, "Der Mann da\nJa\n", "{cat}"),
        (LINES, "Der Mann da\nJa. Nein. Doch.\n", "{cat}"),
    ],
)
def test_a_translation_begun_goes_on_in_its_last_line_and_sentence(translator, text, prefix, rest):
    dogs, girl, cat = translator.translate(["Two dogs play.", "A girl sings.", "A cat sleeps"])
    small = translator.translate("Two dogs play.", prefix=ON)
    rest = rest.format(dogs=dogs, girl=girl, cat=cat, small=small)
    assert translator.translate(text, prefix=prefix) == prefix.removesuffix(ON) + rest


def test_what_ends_a_prefix_may_be_no_sentence_or_more_than_the_line_has(translator):
    dogs, girl = translator.translate(["Two dogs play.", "A girl sings."])
    # Neither an abbreviation nor a last sentence without a blank behind it is finished.
    for prefix in ("Dr. ", "Ein Mann."):
        found = translator.translate(LINE, prefix=prefix)
        assert found.startswith(prefix.strip()) and found.endswith(f" {dogs} {girl}")
    # More sentences than the line has belong to the last of them.
    found = translator.translate("A girl sings. Two dogs.", prefix=f"{BEGUN} " * 3)
    assert found.startswith(BEGUN) and found.count("fährt") == 3
    listed = translator.translate("- A man\n- Two dogs\n\n- A cat", prefix="- Ja\n\n- Nein\n")
    assert listed.startswith("- Ja\n\n- Nein\n") and listed.count("\n") == 3
    # What the prefix translates is aligned as if it had been found.
    (whole,) = translator.translate_nbest(LINE, attention=True)
    first = translator.translate("A man rides a bike.")
    (found,) = translator.translate_nbest(LINE, prefix=f"{first} ", attention=True)
    assert found[0].text == whole[0].text
    assert align_words(found[0].attention) == align_words(whole[0].attention)


def test_a_sentence_begun_longer_than_the_model_writes_has_no_attention(translator):
    text, long = "A man rides a bike. A girl sings.", f"Ja, {'der Hund ' * 200}bellt. "
    ((found, *_),) = translator.translate_nbest(text, prefix=long, attention=True)
    assert found.text == f"{long}Ein Mädchen singt." and len(found.attention) == 1
