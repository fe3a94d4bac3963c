"""The compiled search against fairseq's SequenceGenerator, on models of every kind."""

import json
import os

import numpy as np
import pytest
import torch
from fairseq.search import LexicallyConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.token_generation_constraints import pack_constraints

from resmlp_mt.engines.fairseq_search import FairseqSearch
from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.engines.guides import Guide
from resmlp_mt.engines.kernels.library import KINDS, find_library
from resmlp_mt.engines.kernels.steps import Steps
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.engines.search.generator import Ensemble
from resmlp_mt.engines.search.stopping import Stopped, stop_when
from resmlp_mt.errors import UserError
from resmlp_mt.models.folded import SharedWeights
from resmlp_mt.models.parts import SEQUENCE_MIXERS
from resmlp_mt.models.translation.folded import describe_mixing, describe_translator
from resmlp_mt.tasks.search import NoRepeats, mend_generator

ROUNDING = 0.1  # what 8 bits may change of a score

LENGTHS = [4, 11, 2, 7, 7, 1, 9, 3]
ASKED = os.environ.get("RESMLP_CPU_ISA")  # as by sanitize.sh, which asks for one after the other


@pytest.fixture(autouse=True, params=KINDS)
def kind(request, monkeypatch):
    """The form of the compiled code that searches."""
    if find_library() is None:
        pytest.skip("the compiled code was not built")
    if not getattr(find_library(), f"has_{request.param}")():
        pytest.skip(f"this processor has no {request.param}")
    if ASKED and request.param != ASKED:
        pytest.skip(f"RESMLP_CPU_ISA={ASKED}")
    monkeypatch.setenv("RESMLP_CPU_ISA", request.param)
    # So that beams need more room.
    monkeypatch.setattr("resmlp_mt.engines.kernels.steps._ROOM", 2)


def engines(model, task, int8=False, shortlist=None, preview=None, bits=8):
    """The compiled one, perhaps with the arrays of a shortlist or a preview, and the reference."""
    model, shared = model.float(), SharedWeights(bits)
    described = json.loads(json.dumps(describe_translator(model, int8, shared)))
    arrays = shared.arrays | describe_mixing(model)
    dictionaries = task.source_dictionary, task.target_dictionary
    fast = FoldedSearch(described, arrays, *dictionaries, preview, shortlist)
    return fast, FairseqSearch(model, task, "cpu")


@pytest.fixture
def engines_of(build_model, task):
    """engines_of(preset, **flags): `engines` of a small model with three heads."""

    def make(preset="resmlp_plus_tiny", **flags):
        return engines(build_model(preset, **dict(decoder_attention_heads=3) | flags), task())

    return make


def sources(lengths=LENGTHS, symbols=17):
    words = [torch.randint(4, symbols, (length - 1,)).tolist() for length in lengths]
    return [np.array([*sentence, 2]) for sentence in words]


def forbid_ends(model):
    with torch.no_grad():
        model.decoder.output.weight[2] = 0


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


def assert_same(found, expected):
    """All hypotheses, to the last bit."""
    for one, other in zip(found, expected, strict=True):
        assert [(t.tolist(), s) for t, s in one] == [(t.tolist(), s) for t, s in other]


@pytest.mark.parametrize("positions", ["none", "sinusoids", "learned"])
@pytest.mark.parametrize("norm", ["affine", "layer"])
@pytest.mark.parametrize("mixer", SEQUENCE_MIXERS)
def test_every_model_is_searched_as_fairseq_does(mixer, norm, positions, engines_of):
    flags = dict(token_mixer=mixer, norm=norm, mixing_heads=4)
    flags["no_token_positional_embeddings"] = positions == "none"
    flags |= dict.fromkeys(("encoder_learned_pos", "decoder_learned_pos"), positions == "learned")
    fast, reference = engines_of("resmlp_wmt_en_de", **flags)
    batch = sources()
    for beam, lenpen in ((1, 1.0), (3, 0.0), (5, 1.4)):
        options = SearchOptions(beam, lenpen=lenpen)
        assert_alike(fast.search(batch, options), reference.search(batch, options))


ONE = dict(decoder_layers=1, encoder_layers=1, encoder_embed_dim=24, mixing_heads=1)
WIDE = dict(encoder_embed_dim=80, decoder_embed_dim=80, decoder_ffn_embed_dim=130)
WIDE |= dict(mixing_heads=5, decoder_attention_heads=2)
LONG = dict(max_source_positions=120, encoder_layers=3, mixing_heads=2)
MANY = [*range(2, 31), 48, 49, 50, 97, 98, 120, 3, 61]


@pytest.mark.parametrize(
    ("preset", "flags", "symbols", "lengths", "options"),
    [
        ("resmlp_wmt_en_de", ONE | dict(share_all_embeddings=True), 17, LENGTHS, SearchOptions(4)),
        # More rows, outputs and symbols than the compiled code takes at once.
        ("resmlp_plus_tiny", WIDE, 150, [5, 10, 3, 7, 7, 2, 8, 9], SearchOptions(7)),
        # Rows that it takes at once end within sentences, and between them.
        ("resmlp_tiny", LONG, 17, MANY, SearchOptions(2, max_len_b=4)),
        ("resmlp_plus_tiny", LONG, 17, MANY, SearchOptions(2, max_len_b=4)),
        ("resmlp_wmt_en_de", {}, 17, LENGTHS, SearchOptions(12)),  # wider than the vocabulary
    ],
    ids=["one", "wide", "long", "long plus", "beam"],
)
def test_every_size_is_searched_as_fairseq_does(
    preset, flags, symbols, lengths, options, build_model, task, dictionary
):
    large = task(joined=True)
    large.source_dictionary = large.target_dictionary = dictionary(symbols)
    model = build_model(preset, task=large, **dict(decoder_attention_heads=3) | flags)
    fast, reference = engines(model, large)
    batch = sources(lengths, symbols)
    assert_alike(fast.search(batch, options), reference.search(batch, options))


def test_a_source_of_nothing_harms_no_other(engines_of):
    fast, _ = engines_of()
    nothing, source = np.array([], np.int64), sources()[1]
    assert fast.search([nothing], SearchOptions(2))[0]
    together = fast.search([nothing, source], SearchOptions(2))
    assert_alike(together[1:], fast.search([source], SearchOptions(2)))


@pytest.mark.parametrize("int8", [False, True])
def test_a_sentence_is_translated_the_same_alone_and_in_a_batch(int8, build_model, task):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3, fresh=int8)
    fast, _ = engines(model, task(), int8)
    batch, compare = sources(), assert_same if int8 else assert_alike
    for source, found in zip(batch, fast.search(batch, SearchOptions(4)), strict=True):
        compare(fast.search([source], SearchOptions(4)), [found])


def test_a_translation_ends_at_its_longest_or_at_the_matrix(build_model, task):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3)
    forbid_ends(model)
    fast, reference = engines(model, task())
    batch = sources()
    for longest in (3, 200):
        found = fast.search(batch, SearchOptions(3, max_len_b=longest))
        assert_alike(found, reference.search(batch, SearchOptions(3, max_len_b=longest)))
    assert max(len(tokens) for beams in found for tokens, _ in beams) == 8  # N = 9


def test_what_a_search_keeps_grows_with_beam_sentences_and_length(engines_of, monkeypatch):
    (fast, _), seen = engines_of(), []

    class Watched(Steps):
        def collect(self, lenpen):
            seen.append(self.used)
            return super().collect(lenpen)

    monkeypatch.setattr("resmlp_mt.engines.folded_search.Steps", Watched)
    for sentences, beam, length in ((1, 2, 3), (1, 4, 3), (5, 4, 3), (5, 4, 7)):
        fast.search(sources()[:sentences], SearchOptions(beam, max_len_b=length))
        assert seen.pop() <= sentences * (1 + beam * length)  # the first step has one beam


def test_a_search_that_is_wanted_no_more_ends_between_two_steps(build_model, task):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3, max_target_positions=60)
    forbid_ends(model)
    for engine in engines(model, task()):
        steps = iter([False, False, False, True])
        with pytest.raises(Stopped), stop_when(lambda: next(steps)):  # noqa: B023
            engine.search(sources()[:1], SearchOptions(3))
        assert list(steps) == []
        found = engine.search(sources()[:1], SearchOptions(3))
        assert max(len(tokens) for tokens, _ in found[0]) > 50


@pytest.mark.parametrize(
    "constant",
    ["folded_search._STEPS_UNASKED", "folded_search._ROWS_UNASKED", "kernels.steps._ROOM"],
)
def test_results_do_not_depend_on_pauses_between_steps(constant, engines_of, monkeypatch):
    fast, _ = engines_of()
    batch = sources()
    expected = fast.search(batch, SearchOptions(3))
    monkeypatch.setattr(f"resmlp_mt.engines.{constant}", 1)
    assert_same(fast.search(batch, SearchOptions(3)), expected)


@pytest.mark.parametrize("symbols", [6, 7])
def test_what_fills_up_beams_is_no_translation(symbols, build_model, task, dictionary):
    small = task()
    small.source_dictionary = small.target_dictionary = dictionary(symbols)
    model = build_model("resmlp_plus_tiny", task=small, decoder_attention_heads=3)
    with torch.no_grad():  # the end is likely
        model.decoder.norm.bias.add_(1)
        model.decoder.output.weight[2] = 2
    fast, reference = engines(model, small)
    batch = [np.array([4, 5, 4, 2]), np.array([5, 2])]
    found = fast.search(batch, SearchOptions(5))
    assert_alike(found, reference.search(batch, SearchOptions(5)))
    assert all(2 not in tokens for beams in found for tokens, _ in beams)


@pytest.mark.parametrize("preset", ["resmlp_tiny", "resmlp_plus_tiny"])
def test_int8_scores_are_near_those_in_full_precision(preset, build_model, task):
    full, reference = engines(build_model(preset, decoder_attention_heads=3, fresh=True), task())
    rounded, _ = engines(reference.model, task(), int8=True)
    pairs = given_pairs()
    exact, near = full.score(*pairs), rounded.score(*pairs)
    assert 0 < np.abs(exact - near).max() < ROUNDING * np.abs(exact).min()


@pytest.mark.parametrize(
    "part", [f"{side}.blocks.0.mix_channels.fc1" for side in ("encoder", "decoder")]
)
def test_a_model_whose_numbers_overflow_finds_nothing(part, build_model, task):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3, fresh=True)
    with torch.no_grad():
        model.get_submodule(part).bias[0] = float("nan")
    fast, _ = engines(model, task(), int8=True)
    assert fast.search(sources(), SearchOptions(3)) == [[]] * len(LENGTHS)


def given_pairs():
    lengths = [min(length, 8) for length in reversed(LENGTHS)]
    targets = [torch.randint(4, 17, (length,)).numpy() for length in lengths]
    return sources(), targets


@pytest.mark.parametrize("mixer", SEQUENCE_MIXERS)
def test_given_translations_have_the_probabilities_of_the_model(mixer, build_model, task):
    fast, reference = engines(build_model(token_mixer=mixer), task())
    pairs = given_pairs()
    scores = fast.score(*pairs)
    np.testing.assert_allclose(scores, reference.score(*pairs), rtol=1e-4)
    alone = [fast.score([s], [t]).item() for s, t in zip(*pairs, strict=True)]
    np.testing.assert_allclose(alone, scores, rtol=1e-4)
    symbols = task().target_dictionary
    ensemble = Ensemble([fast, reference], symbols, symbols.pad())
    np.testing.assert_allclose(ensemble.score(*pairs), scores, rtol=1e-4)


@pytest.mark.parametrize("norm", ["affine", "layer"])
@pytest.mark.parametrize("mixer", ["linear", "gated-toeplitz", "projected-toeplitz"])
def test_a_rounded_model_scores_as_its_export_does(mixer, norm, build_model, task):
    """With few bits: how activations are rounded differs from processor to processor."""
    flags = dict(token_mixer=mixer, norm=norm, share_all_embeddings=True, decoder_embed_dim=16)
    joined = task(joined=True)
    plain = build_model(task=joined, **flags).float()
    rounded = build_model(task=joined, round_bits=4, **flags).float()
    rounded.load_state_dict(plain.state_dict())
    exported, reference = engines(rounded, joined, int8=True, bits=4)
    pairs = given_pairs()
    lost = [
        np.abs(exported.score(*pairs) - engine.score(*pairs)).mean()
        for engine in (reference, FairseqSearch(plain, joined, "cpu"))
    ]
    assert lost[0] < 0.4 * lost[1]


@pytest.mark.parametrize("preset", ["resmlp_tiny", "resmlp_plus_tiny"])
def test_attention_is_that_of_fairseqs_search(preset, engines_of):
    fast, reference = engines_of(preset)
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


@pytest.mark.parametrize("mixer", ["linear", "toeplitz"])
def test_what_the_model_has_no_symbol_or_position_for_is_refused(mixer, engines_of):
    fast, _ = engines_of("resmlp_wmt_en_de", token_mixer=mixer)
    source, longest = np.array([5, 6, 2]), np.full(8, 5)  # N = 9, the end included
    fast.attend(source, [longest, np.array([18]), np.array([], np.int64)])
    with pytest.raises(ValueError, match="12 tokens for 11 positions"):
        fast.search([np.full(12, 5)], SearchOptions(2))
    for targets in ([np.full(9, 5)], [longest, np.full(200, 5)]):
        with pytest.raises(ValueError, match="^a translation .* has room for 8"):
            fast.attend(source, targets)
    for token in (19, 2**40, -1):
        wrong = np.array([5, token])
        with pytest.raises(ValueError, match="^tokens .* of 19 in the dictionary"):
            fast.attend(source, [longest, wrong])
        with pytest.raises(ValueError, match="^tokens .* of 19 in the dictionary"):
            fast.search([source], SearchOptions(2), [Guide(wrong)])


def said_by_fairseq(models, symbols, sources, strategy=None, led=None, **options):
    """The beams of fairseq's generator for each source: (tokens, score), best first."""
    options = dict(beam_size=4, unk_penalty=float("inf")) | options
    generator = mend_generator(
        SequenceGenerator(models, symbols, search_strategy=strategy, **options)
    )
    tokens = torch.nn.utils.rnn.pad_sequence(
        list(map(torch.from_numpy, sources)), batch_first=True, padding_value=symbols.pad()
    )
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor(LENGTHS)}}
    found = generator.generate(models, sample, **(led or {}))
    return [[(f["tokens"][:-1].numpy(), f["score"].item()) for f in beams] for beams in found]


@torch.no_grad()
def log_p_of(models, source, tokens):
    """That of each token and of the end, by the mean of the models: of a text read at once."""
    told = torch.tensor([[2, *tokens]])
    logits = [model(torch.from_numpy(source)[None], None, told)[0][0] for model in models]
    mean = sum(torch.softmax(x, -1) for x in logits) / len(models)
    return mean.log()[torch.arange(len(told[0])), [*tokens, 2]]


def holds(tokens, wanted):
    return any(list(tokens[i : i + len(wanted)]) == wanted for i in range(len(tokens)))


MODELS = {
    "paper": dict(preset="resmlp_wmt_en_de", norm="affine"),
    "plus": {},
    "learned": dict(
        preset="resmlp_wmt_en_de", decoder_learned_pos=True, token_mixer="toeplitz", mixing_heads=4
    ),
    "projected": dict(token_mixer="projected-toeplitz"),
}
kinds = pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS)


@kinds
def test_temperature_and_no_repeats_are_fairseqs(kind, engines_of):
    fast, reference = engines_of(**kind)
    batch, symbols, plain = sources(), reference.symbols, SearchOptions(4)
    for name, value in (("temperature", 2.5), ("no_repeat_ngram_size", 2)):
        options = SearchOptions(4, **{name: value})
        expected = said_by_fairseq([reference.model], symbols, batch, **{name: value})
        for engine in (fast, reference):
            assert_alike(engine.search(batch, options), expected)
    pairs = [
        [list(zip(t, t[1:], strict=False)) for beams in found for t, _ in beams]
        for found in (expected, reference.search(batch, plain))
    ]
    repeats = [sum(len(p) - len(set(p)) for p in each) for each in pairs]
    assert repeats[0] == 0 < repeats[1]


def test_what_has_ended_is_dropped_while_others_are_led(build_model, task, monkeypatch):
    class Watched(Steps):
        def force(self, *arguments):
            at_work.append(len(self.at_work))
            super().force(*arguments)

    monkeypatch.setattr("resmlp_mt.engines.folded_search.Steps", Watched)
    model, at_work = build_model("resmlp_plus_tiny", decoder_attention_heads=3), []
    with torch.no_grad():  # all want to end
        model.decoder.norm.bias.add_(1)
        model.decoder.output.weight[2] = 9
    fast, _ = engines(model, task())
    guides = [Guide(prefix=np.array([4, 5, 6, 7, 8, 9, 4][: 7 * (i == 3)])) for i in range(5)]
    fast.search(sources()[:5], SearchOptions(2), guides)
    assert at_work[0] == 5 and at_work[-1] == 1


@kinds
def test_prefixes_are_forced_as_by_fairseq(kind, engines_of):
    fast, reference = engines_of(**kind)
    batch, symbols = sources(), reference.symbols
    # The fourth has a long one: its search still is led when others have ended.
    prefixes = [torch.randint(4, 19, (7 if i == 3 else i % 4,)).numpy() for i in range(len(batch))]
    padded = torch.full((len(batch), 7), symbols.pad())
    for row, prefix in zip(padded, prefixes, strict=True):
        row[: len(prefix)] = torch.from_numpy(prefix)
    led = dict(prefix_tokens=padded)
    for beam in (1, 4):
        expected = said_by_fairseq([reference.model], symbols, batch, led=led, beam_size=beam)
        for engine in (fast, reference):
            found = engine.search(batch, SearchOptions(beam), list(map(Guide, prefixes)))
            assert_alike(found, expected)
    for beams, prefix in zip(found, prefixes, strict=True):
        assert all(t[: len(prefix)].tolist() == prefix.tolist() for t, s in beams)
    # Those without one are translated as they are alone: fairseq itself lets them end at once.
    assert_alike(found[::4], [fast.search([s], SearchOptions(4))[0] for s in batch[::4]])


@kinds
@pytest.mark.parametrize("order", ["ordered", "unordered"])
def test_constraints_are_kept_as_by_fairseq(order, kind, engines_of):
    fast, reference = engines_of(**kind)
    batch, symbols = sources(), reference.symbols
    wanted = [[torch.randint(4, 19, (1 + i % 2,)) for i in range(n % 3)] for n in range(len(batch))]
    strategy = LexicallyConstrainedBeamSearch(symbols, order)
    led = dict(constraints=pack_constraints(wanted))
    expected = said_by_fairseq([reference.model], symbols, batch, strategy, led)
    guides = [Guide(constraints=tuple(w.numpy() for w in words)) for words in wanted]
    for engine in (fast, reference):
        found = engine.search(batch, SearchOptions(4, constraints=order), guides)
        assert_alike(found, expected)
    for beams, words in zip(found, wanted, strict=True):
        assert all(holds(tokens, word.tolist()) for tokens, _ in beams for word in words)


def test_an_ensemble_searches_with_the_mean_of_probabilities(build_model, task):
    one = engines(build_model("resmlp_plus_tiny", decoder_attention_heads=3), task())
    two = engines(build_model(decoder_attention_heads=4, decoder_layers=2), task())
    symbols, batch = task().target_dictionary, sources()
    models = [engine.model for engine in (one[1], two[1])]
    expected = said_by_fairseq(models, symbols, batch)
    for members in (one[1:] + two[1:], one[:1] + two[:1], one[:1] + two[1:]):
        ensemble = Ensemble(list(members), symbols, symbols.pad())
        assert (ensemble.source_positions, ensemble.target_positions) == (11, 9)
        assert ensemble.device == "cpu"
        assert_alike(ensemble.search(batch, SearchOptions(4)), expected)
        attention = ensemble.attend(batch[1], [expected[1][0][0]])[0]
        each = [m.attend(batch[1], [expected[1][0][0]])[0] for m in members]
        np.testing.assert_allclose(attention, (each[0] + each[1]) / 2, atol=1e-6)
    # Independent of all searches: the probabilities of the whole translations, read at once.
    for source, beams in zip(batch, expected, strict=True):
        for tokens, score in beams:
            said = log_p_of(models, source, tokens)
            assert score == pytest.approx(said.mean().item(), abs=1e-4)


@pytest.mark.parametrize("limit", [dict(), dict(sampling_topk=3), dict(sampling_topp=0.6)])
def test_samples_are_drawn_with_the_probabilities_of_the_model(limit, engines_of):
    fast, reference = engines_of("resmlp_wmt_en_de")
    source, count, heat = sources()[1], 3000, 1.3
    with torch.no_grad():
        encoded = reference.model.encoder(torch.from_numpy(source)[None])
        logits = reference.model.decoder(torch.tensor([[2]]), encoded)[0][0, 0] / heat
    logits[[1, 2, 3]] = -torch.inf  # padding, an end at once, and what is unknown
    p = torch.softmax(logits, -1).double().numpy()
    best = np.argsort(-p)
    if "sampling_topk" in limit:
        p[best[3:]] = 0
    if "sampling_topp" in limit:
        p[best[1 + np.argmax(p[best].cumsum() >= 0.6) :]] = 0
    p /= p.sum()
    options = SearchOptions(sampling=True, temperature=heat, max_len_b=1, **limit)
    guides = [Guide(number=(i,)) for i in range(count)]
    for engine in (fast, reference):
        found = engine.search([source] * count, options, guides)
        drawn = np.bincount([beams[0][0][0] for beams in found], minlength=19)
        assert not drawn[p == 0].any()
        # Five standard deviations: once in two million subwords by chance, and the seed is fixed.
        assert (np.abs(drawn - count * p) <= 5 * np.sqrt(count * p * (1 - p)) + 1).all()


def test_samples_depend_on_the_seed_and_the_sentence_alone(engines_of):
    fast, reference = engines_of()
    batch, options = sources(), SearchOptions(sampling=True, nbest=3, seed=5)
    guides = [Guide(number=(i, 0)) for i in range(len(batch))]
    together = fast.search(batch, options, guides)
    assert_alike(reference.search(batch, options, guides), together)
    for source, guide, found in zip(batch, guides, together, strict=True):
        assert_alike(fast.search([source], options, [guide]), [found])
        for tokens, score in found:
            said = log_p_of([reference.model], source, tokens)
            assert score == pytest.approx(said.mean().item(), abs=1e-4)
    for other in (SearchOptions(sampling=True, nbest=3, seed=6), options):
        moved = [Guide(number=(i + 100 * (other is options), 0)) for i in range(len(batch))]
        again = fast.search(batch, other, moved)
        same = [
            [t.tolist() for t, _ in a] == [t.tolist() for t, _ in b]
            for a, b in zip(again, together, strict=True)
        ]
        assert sum(same) < len(batch) / 2


def test_to_bar_single_subwords_is_refused():
    """fairseq bars nothing then."""
    with pytest.raises(UserError, match="--no-repeat-ngram-size must be at least 2"):
        NoRepeats(1)
