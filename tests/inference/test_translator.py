from itertools import count, islice

import pytest

from resmlp_mt import Translator
from resmlp_mt.errors import UserError
from resmlp_mt.inference.options import SearchOptions


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("multi30k-en-de")


def test_endless_text_is_read_a_buffer_at_a_time(translator):
    read = 0

    def lines():
        nonlocal read
        for read in count(1):
            yield f"A man has {read} dogs."

    found = translator.translate_nbest(lines(), beam=1, buffer_size=3)
    for number, (hypothesis,) in enumerate(islice(found, 8), 1):
        assert hypothesis.text and number <= read < number + 3


@pytest.mark.parametrize(
    "wrong",
    [
        dict(beam=0),
        dict(beam=2.5),
        dict(nbest=0),
        dict(nbest=6),
        dict(lenpen=float("nan")),
        dict(lenpen=float("inf")),
        dict(sampling_topp=0.5),
        dict(temperature=0),
        dict(no_repeat_ngram_size=1),
        dict(seed=-1),
        dict(words=[["x"]], sampling=True),
        dict(constraints="sorted"),
        dict(max_len_a=-1),
        dict(max_len_b=0),
        dict(max_len_b=-3, max_len_a=5),
        dict(batch_tokens=0),
        dict(options=SearchOptions(3), beam=2),
    ],
    ids=str,
)
def test_impossible_options_are_refused_before_the_first_line(translator, wrong):
    name = {"options": "beam", "words": "constraints"}.get(*[next(iter(wrong))] * 2)
    with pytest.raises(ValueError, match=f"^{name}"):
        translator.translate_nbest(["A man."], **wrong)


def test_length_goes_by_the_sentence_whatever_its_batch(translator):
    lines = ["A man.", "A man and a woman ride a bike through the snow.", "Two dogs play."]
    for limit in (dict(max_len_b=2), dict(max_len_a=0.5, max_len_b=1)):
        together = list(translator.translate_nbest(lines, **limit, attention=True))
        alone = [next(translator.translate_nbest([x], **limit, attention=True)) for x in lines]
        assert [found[0].text for found in together] == [found[0].text for found in alone]
        for ((best,),) in zip(together, strict=True):
            (shown,) = best.attention
            room = limit.get("max_len_a", 0) * len(shown.source) + limit["max_len_b"]
            assert 0 < len(shown.target) - 1 <= room
    unlimited = translator.translate_nbest(lines[1:2], attention=True)
    assert len(next(unlimited)[0].attention[0].target) - 1 > room


def test_attention_is_found_where_it_is_asked_for(translator):
    lines = ["A man.", "", "A man rides a bike. " * 40]
    plain, shown = (
        list(translator.translate_nbest(lines, beam=2, nbest=2, attention=asked))
        for asked in (False, True)
    )
    assert [[h.text for h in best] for best in plain] == [[h.text for h in best] for best in shown]
    assert not any(h.attention for best in plain for h in best)
    assert [len(best[0].attention) for best in shown] == [1, 0, 40]
    for found in shown[0]:
        (attention,) = found.attention
        assert attention.source == ["▁A", "▁man", ".", "</s>"]
        assert "".join(attention.target[:-1]).replace("▁", " ").strip() == found.text
        assert attention.weights.shape == (len(attention.target), 4)


def test_halves_of_surrogate_pairs_do_not_stop_a_translation(translator):
    assert translator.translate(["A \ud800 dog."]) == translator.translate(["A \ufffd dog."])
    assert translator.translate(["\ud83d\ude00"]) == translator.translate(["😀"])


def test_every_line_has_its_own_prefix_or_words(translator):
    long = "Two dogs play. " * 40
    lines = ["A man rides a bike.", "", long, "A woman sings."]
    begun = translator.translate(lines, prefix=["Ein alter", "Eine", "Drei", ""])
    plain = translator.translate(lines)
    assert begun[0].startswith("Ein alter ") and begun[2].startswith("Drei ")
    assert begun[2].count("Drei") == 1 and begun[1] == "" and begun[3] == plain[3]
    assert translator.translate(lines[:1], prefix="Ein alter") == begun[:1]
    words = [["Hund", "Katze"], [], ["Haus"]]
    held = translator.translate([lines[0], "", lines[3]], words=words)
    assert held[0].index("Hund") < held[0].index("Katze") and held[1] == "" and "Haus" in held[2]
    with pytest.raises(UserError, match="line 3: too long"):
        translator.translate(lines, words=[[], [], ["Hund"], []])
    for few in (dict(prefix=["Ein"]), dict(words=[["Hund"]])):
        with pytest.raises(ValueError, match="none for line 2"):
            translator.translate(lines, **few)


def test_samples_are_the_same_in_any_batch(translator):
    lines = ["A man rides a bike.", "Two dogs play in the snow.", "A man rides a bike."] * 3
    drawn = dict(sampling=True, nbest=2, seed=3)

    def texts(*given, **options):
        found = translator.translate_nbest(*given, **drawn | options)
        return [[hypothesis.text for hypothesis in best] for best in found]

    expected = texts(lines)
    assert texts(lines, batch_tokens=1, buffer_size=2) == expected
    assert texts(lines[5:], first=6) == expected[5:]
    assert expected[0] != expected[2] and texts(lines, seed=4) != expected
