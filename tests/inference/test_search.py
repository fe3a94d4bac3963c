"""The fast search against fairseq's SequenceGenerator, on models of every kind."""

import numpy as np
import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from resmlp_mt.inference.export import export_mixing
from resmlp_mt.inference.options import SearchOptions
from resmlp_mt.inference.reference import ReferenceSearch
from resmlp_mt.nn.mixers import MIXERS

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")

from resmlp_mt.inference.search import BeamSearch, MixingMatrices, MixingRows  # noqa: E402
from resmlp_mt.inference.translation_graphs import build_encoder, build_step  # noqa: E402

LENGTHS = [4, 11, 2, 7, 7, 1, 9, 3]


def engines(model, task, int8=False):
    """The fast one and the reference."""
    model, symbols = model.float(), task.target_dictionary
    fast = BeamSearch(
        build_encoder(model.encoder, model.decoder, int8),
        build_step(model.decoder, [symbols.pad(), symbols.unk()], symbols.eos(), int8),
        export_mixing(model),
        task.source_dictionary,
        symbols,
        model.encoder.longest,
        model.decoder.longest,
    )
    return fast, ReferenceSearch(model, task, "cpu")


def sources():
    words = [torch.randint(4, 17, (length - 1,)).tolist() for length in LENGTHS]
    return [np.array([*sentence, 2]) for sentence in words]


def assert_alike(found, expected):
    """All hypotheses, in order, but where two score the same within rounding."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert [len(t) for t, _ in ours] and len(ours) == len(theirs)
        np.testing.assert_allclose(
            [s for _, s in ours], [s for _, s in theirs], rtol=1e-5, atol=2e-5
        )
        for (tokens, score), (other, _) in zip(ours, theirs, strict=True):
            ties = [t.tolist() for t, s in theirs if abs(s - score) < 4e-5]
            assert tokens.tolist() == other.tolist() or tokens.tolist() in ties


@pytest.mark.parametrize("positions", ["none", "sinusoids", "learned"])
@pytest.mark.parametrize("norm", ["affine", "layer"])
@pytest.mark.parametrize("mixer", MIXERS)
def test_every_model_is_searched_as_fairseq_does(mixer, norm, positions, build_model, task):
    flags = dict(token_mixer=mixer, norm=norm, mixing_heads=4, decoder_attention_heads=3)
    flags["no_token_positional_embeddings"] = positions == "none"
    flags |= dict.fromkeys(("encoder_learned_pos", "decoder_learned_pos"), positions == "learned")
    fast, reference = engines(build_model(**flags), task())
    batch = sources()
    for beam, lenpen in ((1, 1.0), (3, 0.0), (5, 1.4)):
        expected = reference.search(batch, SearchOptions(beam, lenpen=lenpen))
        assert_alike(fast.search(batch, SearchOptions(beam, lenpen=lenpen)), expected)


def test_one_layer_one_head_and_shared_embeddings(build_model, task):
    sizes = dict(decoder_layers=1, encoder_layers=1, encoder_embed_dim=24, mixing_heads=1)
    model = build_model(task=task(joined=True), share_all_embeddings=True, **sizes)
    fast, reference = engines(model, task(joined=True))
    batch = sources()
    assert_alike(fast.search(batch, SearchOptions(4)), reference.search(batch, SearchOptions(4)))


def test_a_sentence_is_translated_the_same_alone_and_in_a_batch(build_model, task):
    fast, _ = engines(build_model("resmlp_plus_tiny", decoder_attention_heads=3), task())
    batch = sources()
    together = fast.search(batch, SearchOptions(4))
    for source, found in zip(batch, together, strict=True):
        assert_alike(fast.search([source], SearchOptions(4)), [found])


def test_a_translation_ends_at_its_longest_or_at_the_matrix(build_model, task):
    fast, reference = engines(build_model("resmlp_plus_tiny", decoder_attention_heads=3), task())
    with torch.no_grad():
        reference.model.decoder.output.weight[2] = 0  # nothing wants to end
    fast, reference = engines(reference.model, task())
    batch = sources()
    for longest in (3, 200):
        found = fast.search(batch, SearchOptions(3, max_len_b=longest))
        assert_alike(found, reference.search(batch, SearchOptions(3, max_len_b=longest)))
    assert max(len(tokens) for beams in found for tokens, _ in beams) == 8  # N = 9


def test_a_beam_wider_than_the_vocabulary(build_model, task):
    fast, reference = engines(build_model(decoder_attention_heads=3), task())
    batch = sources()
    assert_alike(fast.search(batch, SearchOptions(12)), reference.search(batch, SearchOptions(12)))


@pytest.mark.parametrize("preset", ["resmlp_tiny", "resmlp_plus_tiny"])
def test_int8_scores_are_near_those_in_full_precision(preset, build_model, task):
    full, reference = engines(build_model(preset, decoder_attention_heads=3, fresh=True), task())
    rounded, _ = engines(reference.model, task(), int8=True)
    batch = sources()
    exact, near = (
        np.array([beams[0][1] for beams in engine.search(batch, SearchOptions(1, max_len_b=1))])
        for engine in (full, rounded)
    )
    assert 0 < np.abs(exact - near).max() < 0.1 * np.abs(exact).min()


def test_toeplitz_matrices_are_views_of_their_weights():
    weights = torch.randn(2, 3, 9).numpy()  # N = 5
    matrices = MixingMatrices(weights)
    assert np.shares_memory(matrices.matrices, weights)
    for layer, square in enumerate(matrices.squares(4)):
        for i in range(4):
            for j in range(4):
                assert (square[:, i, j] == weights[layer, :, 4 + i - j]).all()


@pytest.mark.parametrize("kind", ["toeplitz", "free"])
def test_a_row_has_the_scaled_weights_of_every_channel(kind):
    weights = torch.randn(2, 3, 9).numpy()  # N = 5
    free = np.stack(
        [[[[h[4 + i - j] for j in range(5)] for i in range(5)] for h in layer] for layer in weights]
    )
    scale = torch.randn(2 * 6).numpy()  # 6 channels a layer, 2 a head
    rows = MixingRows(weights if kind == "toeplitz" else free, scale)
    for position in range(5):
        row = rows[position]
        assert row.shape == (position + 1, 12) and row.flags.c_contiguous
        for j in range(position + 1):
            expected = np.repeat(free[:, :, position, j].ravel(), 2) * scale
            np.testing.assert_array_equal(row[j], expected)


@pytest.mark.parametrize("preset", ["resmlp_tiny", "resmlp_plus_tiny"])
def test_attention_is_that_of_fairseqs_search(preset, build_model, task):
    fast, reference = engines(build_model(preset, decoder_attention_heads=3), task())
    lengths = set()
    for source in sources():
        generator = SequenceGenerator([reference.model], reference.symbols, beam_size=3)
        reference.model.decoder.need_attn = True
        tokens = torch.from_numpy(source)[None]
        sample = {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor([len(source)])}}
        (beams,) = generator.generate([reference.model], sample)
        targets = [found["tokens"][:-1].numpy() for found in beams]
        lengths.update(map(len, targets))
        for engine in (fast, reference):
            for found, weights in zip(beams, engine.attend(source, targets), strict=True):
                expected = found["attention"].T.numpy()
                assert weights.shape == (len(found["tokens"]), len(source))
                np.testing.assert_allclose(weights, expected, atol=1e-5)
                np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
    assert len(lengths) > 1
