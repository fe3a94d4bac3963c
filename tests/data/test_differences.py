"""Differences between the texts of two models."""

from dataclasses import replace

from resmlp_mt.data.identity import KEY, Identity

JOINED = Identity(("en", "de"), ("a", "a"), ("m", "m"))
SEPARATE = Identity(("en", "de"), ("a", "b"), ("m", "n"))


def test_what_differs_is_named():
    for text in (JOINED, SEPARATE):
        turned = Identity(*(pair[::-1] for pair in vars(text).values()))
        assert not text.differences(text) and not text.differences(
            replace(text, subwords=(None,) * 2)
        )
        assert text.differences(turned) == "source and target are swapped"
        french = replace(text, languages=("en", "fr"))
        assert text.differences(french) == "its languages are en to fr, not en to de"
        assert not text.differences(french, languages=False)
    turned = replace(SEPARATE, dictionaries=("b", "a"), subwords=("n", "m"))
    assert SEPARATE.differences(turned, languages=False) == "source and target are swapped"
    other = replace(SEPARATE, dictionaries=("a", "c"), subwords=("m", "o"))
    told = "dict.de.txt has other symbols, spm.de.model is another one"
    assert SEPARATE.differences(other) == told
    assert JOINED.differences(replace(JOINED, subwords=("o", "o"))) == "spm.model is another one"


def test_a_state_that_is_none_of_ours_tells_nothing():
    state = JOINED.as_state()
    assert Identity.of_state({KEY: state}) == JOINED
    broken = [None, 3, {}, state | {"more": ["x", "y"]}, state | {"languages": ["en"]}]
    broken += [state | {"languages": [3, 4]}, state | {"subwords": None}]
    for each in broken:
        assert Identity.of_state({KEY: each}) is None
    assert Identity.of_state(None) is Identity.of_state({}) is None
