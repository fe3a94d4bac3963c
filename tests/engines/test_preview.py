"""The search through a preview: rough logits of all symbols, exact ones of the likely."""

import numpy as np
import pytest
import torch
from engines.test_folded_search import (  # noqa: F401
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
from resmlp_mt.export.preview import learn_preview
from resmlp_mt.models.folded import round_rows

SYMBOLS, CHANNELS = 3000, 136  # more than a vector of bytes, and no whole ones
SIZES = dict(encoder_embed_dim=CHANNELS, decoder_embed_dim=CHANNELS, decoder_attention_heads=2)
PAIRS = [
    ("A man rides a bike.", "Ein Mann fährt Fahrrad."),
    ("Two dogs play in the snow.", "Zwei Hunde spielen im Schnee."),
    ("", ""),
    ("The girl jumps into the pool.", "Das Mädchen springt ins Schwimmbecken."),
    ("An old man with a white beard reads a newspaper.", "Ein alter Mann liest eine Zeitung."),
    ("People walk down a street at night.", "Leute gehen nachts eine Straße entlang."),
    ("A boy throws a ball to his dog.", "Ein Junge wirft seinem Hund einen Ball zu."),
]


@pytest.fixture
def large(task, dictionary):
    """A task of so many symbols that the compiled code looks at few of them in full."""
    task = task()
    task.target_dictionary = dictionary(SYMBOLS)
    return task


def cut(rows, size):
    """The preview that is nearest to (V, C) for features of all directions alike."""
    _, _, axes = torch.linalg.svd(rows.detach().double(), full_matrices=False)
    narrow = axes[:size].T.float().contiguous()
    wide, scales = round_rows((rows.detach().float() @ narrow).numpy())
    return {"narrow": narrow.numpy(), "wide": wide, "scales": scales}


@pytest.mark.parametrize(("int8", "beam"), [(False, 8), (True, 8), (True, 300)])
def test_likely_symbols_have_the_logits_of_the_output_layer(int8, beam, build_model, large):  # noqa: F811
    model = build_model("resmlp_plus_tiny", task=large, **SIZES)
    with torch.no_grad():
        model.decoder.output.weight.mul_(0.2)  # all symbols count for something
    rough = cut(model.decoder.output.weight, size=100)
    (plain, _), (fast, _) = (
        engines(model, large, int8, preview=preview) for preview in (None, rough)
    )
    batch, options = sources(), SearchOptions(beam, max_len_b=1)
    offs = []
    for ours, exact in zip(fast.find(batch, options), plain.find(batch, options), strict=True):
        # The first words of a sentence come from the same step, so their logits have the same sum.
        ours, exact = (
            {found.tokens[0]: found.log_p[0] for found in hypotheses}
            for hypotheses in (ours, exact)
        )
        off = np.array([ours[token] - exact[token] for token in ours.keys() & exact.keys()])
        assert np.ptp(off) < 1e-5 and np.abs(off).max() < 0.1
        offs += off.tolist()
    assert len(offs) > 3 / 4 * beam * len(batch)
    assert any(offs)  # the logits of the others are rough
    for source, together in zip(batch, fast.find(batch, options), strict=True):
        (alone,) = fast.find([source], options)
        assert [f.score for f in alone] == [f.score for f in together]


def test_with_as_many_numbers_as_channels_it_finds_what_fairseq_finds(build_model, large):
    model = build_model("resmlp_plus_tiny", task=large, **SIZES)
    whole = cut(model.decoder.output.weight, size=CHANNELS)
    fast, reference = engines(model, large, preview=whole)
    batch = sources()
    guides = [Guide(np.array([300 + i, 9])) for i in range(len(batch))]
    for led in (None, guides):
        expected = reference.search(batch, SearchOptions(4), led)
        for ours, theirs in zip(fast.search(batch, SearchOptions(4), led), expected, strict=True):
            assert [s for _, s in ours] == pytest.approx([s for _, s in theirs], abs=2e-3)
            near = [tokens.tolist() for tokens, score in theirs if score > theirs[0][1] - 4e-3]
            assert ours[0][0].tolist() in near


def test_a_sentence_has_the_same_scores_beside_one_with_a_prefix(build_model, large):
    model = build_model("resmlp_plus_tiny", task=large, **SIZES)
    fast, _ = engines(model, large, preview=cut(model.decoder.output.weight, size=40))
    batch, end = sources()[:3], 2
    # With a single beam the first ends at its prefix, and leaves the batch before the third.
    for beam, first in ((3, []), (1, [300, end])):
        options = SearchOptions(beam)
        guides = [Guide(np.array(p, int)) for p in (first, [300], [300, 9, 500, 7, 8])]
        together = fast.search(batch, options, guides)
        for source, guide, found in zip(batch, guides, together, strict=True):
            (alone,) = fast.search([source], options, [guide])
            assert_alike([alone], [found])


def test_in_a_small_vocabulary_all_symbols_are_likely(build_model, task):
    random = np.random.default_rng(1)
    nonsense = {
        "narrow": random.normal(size=(24, 5)).astype("f4"),
        "scales": np.full(19, 1e-2, "f4"),
    }
    nonsense["wide"] = random.integers(-127, 128, (19, 5)).astype("i1")
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3)
    fast, reference = engines(model, task(), preview=nonsense)
    batch = sources()
    assert_alike(fast.search(batch, SearchOptions(4)), reference.search(batch, SearchOptions(4)))


FORGED = {
    "narrow": [((23, 5), "f4"), ((24, 25), "f4"), ((), "f4"), ((24, 5), "f8")],
    "wide": [((18, 5), "i1"), ((19, 4), "i1"), ((19, 5), "u1")],
    "scales": [((18,), "f4")],
}


def test_a_forged_preview_is_refused(build_model, task):
    right = {"narrow": np.ones((24, 5), "f4"), "wide": np.ones((19, 5), "i1")}
    right |= {"scales": np.ones(19, "f4")}
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3)
    wrong = [(name, np.ones(*about)) for name, all_ in FORGED.items() for about in all_]
    for name, array in [*wrong, ("narrow", np.full((24, 5), np.nan, "f4"))]:
        with pytest.raises(ValueError, match=r"preview|outputs|product"):
            engines(model, task(), preview=right | {name: array})


def test_a_preview_that_overflows_only_finds_symbols_that_there_are(build_model, task):
    # Where all logits are -inf, so is what the likely ones must reach. Padding has as much.
    narrow = np.zeros((24, 5), np.float32)
    narrow[0] = 1e30
    arrays = {"narrow": narrow, "wide": np.full((19, 5), 127, np.int8)}
    arrays |= {"scales": np.full(19, 3e38, np.float32)}
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3)
    fast, _ = engines(model, task(), preview=arrays)
    for found in fast.find(sources(), SearchOptions(4, max_len_b=5)):
        assert all(0 <= symbol < 19 for beam in found for symbol in beam.tokens)


def test_it_is_nearest_on_text_like_that_it_was_learned_from(tmp_path):  # noqa: F811
    trained = load_translator(*read_checkpoint("multi30k-en-de", "text"))
    both = trained.task.source_dictionary, trained.task.target_dictionary
    codec = TextCodec.from_folder(trained.folder, ("en", "de"), both)
    paths = tmp_path / "x.en", tmp_path / "x.de"
    for path, side in zip(paths, zip(*PAIRS, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in side))
    model, features = trained.model, []
    for source, target in PAIRS:
        if source:
            symbols = codec.target_subwords.encode(target, out_type=str)
            begun = [2, *map(both[1].index, symbols)]
            source = torch.tensor(codec.encode(codec.split(source)))[None]
            with torch.no_grad():
                found, _ = model(source, None, torch.tensor(begun)[None], features_only=True)
            features.append(found[0])
    features = torch.cat(features).numpy()
    rows = model.decoder.output.weight
    exact = features @ rows.detach().numpy().T

    def error_of(preview):
        rough = features @ preview["narrow"] @ (preview["wide"] * preview["scales"][:, None]).T
        return np.square(rough - exact).mean()

    learned = learn_preview(ParallelText(*paths), model, codec)
    assert learned["narrow"].shape == (128, 32) and learned["wide"].shape == (len(both[1]), 32)
    assert error_of(learned) < 0.3 * error_of(cut(rows, 32))
    torch.nn.init.zeros_(model.decoder.norm.bias)
    for weight in (torch.inf, 0):
        torch.nn.init.constant_(model.decoder.norm.weight, weight)
        with pytest.raises(UserError, match="x.en, .*x.de: the model makes nothing of it"):
            learn_preview(ParallelText(*paths), model, codec)
    for path in paths:
        path.write_text("\n")
    with pytest.raises(UserError, match="no words to learn a preview from"):
        learn_preview(ParallelText(*paths), model, codec)
