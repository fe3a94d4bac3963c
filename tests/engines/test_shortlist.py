"""The search over a shortlist, against fairseq's over a model that cannot say anything else."""

import numpy as np
import pytest
import torch
from engines.test_folded_search import (  # noqa: F401
    ROUNDING,
    assert_alike,
    engines,
    kind,
    sources,
)

from resmlp_mt.checkpoints.loading import load_translator, read_checkpoint
from resmlp_mt.data.codec import TextCodec
from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.errors import UserError
from resmlp_mt.export.parallel_text import ParallelText
from resmlp_mt.export.shortlist import ShortlistText, learn_shortlist

ALWAYS, UNLISTED = [2, 5, 9, 14], 16
# The target's symbols that may translate each of the source's.
TABLE = {word: {4 + word % 7, 18 - word % 5} for word in range(4, UNLISTED)}


def lay_out(table):
    rows = [sorted(table.get(word, ())) for word in range(17)]
    starts = np.cumsum([0, *map(len, rows)])
    arrays = {"always": ALWAYS, "starts": starts, "symbols": np.concatenate(rows)}
    return {name: np.array(values, np.int32) for name, values in arrays.items()}


def allowed(source):
    return sorted({*ALWAYS}.union(*(TABLE.get(word, ()) for word in source.tolist())))


def searched_within(reference, source, symbols, options, guides=None):
    """The beams of fairseq's search if all other symbols are impossible."""
    barred = torch.full((19,), -torch.inf)
    barred[symbols] = 0
    hook = reference.model.decoder.output.register_forward_hook(lambda _, __, y: y + barred)
    try:
        return reference.search([source], options, guides)[0]
    finally:
        hook.remove()


@pytest.mark.parametrize("preset", ["resmlp_tiny", "resmlp_plus_tiny"])
def test_the_search_finds_what_is_best_within_the_shortlist_of_each_sentence(
    preset, build_model, task
):
    model = build_model(preset, decoder_attention_heads=3)
    fast, reference = engines(model, task(), shortlist=lay_out(TABLE))
    batch, prefix = sources(), np.array([17, 6])  # no shortlist has both
    listed = [source for source in batch if UNLISTED not in source]
    assert len(listed) > 1 and len({tuple(allowed(source)) for source in listed}) > 1
    for beam in (1, 3):
        options = SearchOptions(beam, lenpen=0.7)
        found = dict(zip(map(id, batch), fast.search(batch, options), strict=True))
        for source in listed:
            expected = searched_within(reference, source, allowed(source), options)
            assert_alike([found[id(source)]], [expected])
    guides = [Guide(prefix)] * len(listed)
    for source, begun in zip(listed, fast.search(listed, options, guides), strict=True):
        symbols = sorted({*allowed(source), *prefix.tolist()})
        expected = searched_within(reference, source, symbols, options, guides[:1])
        assert_alike([begun], [expected])
        assert all(tokens[:2].tolist() == prefix.tolist() for tokens, _ in begun)
    for ours, theirs in zip(
        fast.attend(listed[0], [prefix]), reference.attend(listed[0], [prefix]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_without_a_word_in_the_table_or_with_another_search_all_symbols_are_looked_at(
    build_model, task
):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3)
    fast, reference = engines(model, task(), shortlist=lay_out(TABLE))
    batch = [np.array([5, UNLISTED, 7, 2]), np.array([8, 2])]
    options = SearchOptions(4)
    expected = reference.search(batch, options)
    assert_alike(fast.search(batch, options)[:1], expected[:1])
    assert {*expected[0][0][0].tolist()} - {*allowed(batch[0])}  # words that no list has
    for other in (SearchOptions(4, shortlist=False), SearchOptions(4, no_repeat_ngram_size=2)):
        assert_alike(fast.search(batch, other), reference.search(batch, other))
    guides = [Guide(np.array([6])), Guide(np.array([17, 9]))]  # the second is searched first
    found = fast.search(batch, options, guides)
    assert_alike(found[:1], reference.search(batch, options, guides)[:1])
    for beams, guide in zip(found, guides, strict=True):
        begun = guide.prefix.tolist()
        assert all(tokens[: len(begun)].tolist() == begun for tokens, _ in beams)


def test_scores_within_a_shortlist_in_int8_are_near_those_in_full_precision(build_model, task):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3, fresh=True)
    batch, options = [np.array([5, 7, 2]), np.array([8, 6, 4, 2])], SearchOptions(1, max_len_b=1)
    exact, near = (
        np.array([beams[0][1] for beams in engine.search(batch, options)])
        for engine, _ in (
            engines(model, task(), int8, shortlist=lay_out(TABLE)) for int8 in (False, True)
        )
    )
    assert 0 < np.abs(exact - near).max() < ROUNDING * np.abs(exact).min()


def test_a_forged_shortlist_is_refused(build_model, task):
    model, right = build_model(decoder_attention_heads=3), lay_out(TABLE)
    starts = [*range(18)], [0, 24], [0, 24, 3] + [24] * 15
    wrong = [("always", [2, 19]), ("symbols", [-1] * 24), *(("starts", each) for each in starts)]
    assert len(right["symbols"]) == 24
    for name, value in wrong:
        with pytest.raises(ValueError, match="a shortlist"):
            engines(model, task(), shortlist=right | {name: np.array(value, np.int32)})


def test_the_table_is_learned_from_text_in_any_order(tmp_path):
    trained = load_translator(*read_checkpoint("multi30k-en-de", "text"))
    both = trained.task.source_dictionary, trained.task.target_dictionary
    codec = TextCodec.from_folder(trained.folder, ("en", "de"), both)
    words = {"dog": "Hund", "man": "Mann", "house": "Haus", "tree": "Baum", "water": "Wasser"}
    random = np.random.default_rng(1)
    lines = [random.permutation(list(words))[: 2 + i % 3] for i in range(60)]
    paths = tmp_path / "x.en", tmp_path / "x.de"
    paths[0].write_text("".join(" ".join(line) + "\n" for line in lines))
    paths[1].write_text(
        "".join(" ".join(words[w] for w in random.permutation(line)) + "\n" for line in lines)
    )
    arrays = learn_shortlist(ShortlistText(ParallelText(*paths), best=1, first=2), codec)
    for word, translation in words.items():
        (subword,) = codec.encode(codec.split(word))[:-1]
        row = arrays["symbols"][arrays["starts"][subword] : arrays["starts"][subword + 1]]
        # Its translation, and itself to be copied.
        assert {*codec.name_target(row)} == {f"▁{translation}", f"▁{word}"}
    assert len(arrays["always"]) == 3 and both[1].eos() in arrays["always"]
    assert (np.diff(arrays["starts"]) > 0).sum() == len(words)
    paths[1].write_text("Hund\n" * 61)
    with pytest.raises(UserError, match="x.en ends before line 61"):
        learn_shortlist(ShortlistText(ParallelText(*paths)), codec)
