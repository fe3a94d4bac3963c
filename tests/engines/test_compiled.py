"""fairseq's generators in compiled code against themselves without it."""

from argparse import Namespace

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.engines.kernels.library import find_kind
from resmlp_mt.plugin import TranslationTask

pytestmark = pytest.mark.skipif(find_kind() is None, reason="no compiled code on this processor")

LENGTHS = [4, 11, 2, 7, 7, 1, 9, 3]  # with the end, which may stand alone
UNLIKE = {"resmlp_wmt_en_de": {}, "resmlp_plus_tiny": {"decoder_attention_heads": 3}}


@pytest.fixture
def finds(monkeypatch):
    """What each call of the compiled search got."""
    calls, find = [], FoldedSearch.find
    monkeypatch.setattr(
        FoldedSearch, "find", lambda self, *given: calls.append(given) or find(self, *given)
    )
    return calls


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def a_task(dictionary):
    return TranslationTask(Namespace(), dictionary(17), dictionary(19))


def freeze(model):
    model.make_generation_fast_()
    return model


def make_sample(task):
    tokens = torch.full((len(LENGTHS), max(LENGTHS)), task.source_dictionary.pad())
    for row, length in zip(tokens, LENGTHS, strict=True):  # fairseq pads sources on the left
        row[-length:] = torch.randint(4, 17, (length,))
    tokens[:, -1] = task.source_dictionary.eos()
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor(LENGTHS)}}


def search_both_ways(task, model, sample, **given):
    generator = task.build_generator([model], Namespace(**given))
    found = task.inference_step(generator, [model], sample)
    return found, SequenceGenerator.generate(generator, [model], sample)


def assert_alike(found, expected):
    """All hypotheses in order, but where two score the same within rounding."""
    assert [len(beams) for beams in found] == [len(beams) for beams in expected]
    for ours, theirs in zip(found, expected, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.keys() == other.keys()
            assert abs(mine["score"] - other["score"]) < 2e-5
            ties = [t for t in theirs if abs(t["score"] - mine["score"]) < 4e-5]
            (alike, *_) = [t for t in ties if t["tokens"].tolist() == mine["tokens"].tolist()]
            torch.testing.assert_close(
                mine["positional_scores"], alike["positional_scores"], rtol=1e-4, atol=1e-4
            )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"beam": 1},
        {"beam": 3, "lenpen": 1.4},
        {"beam": 4, "unnormalized": True, "max_len_a": 0.5, "max_len_b": 2},
        {"beam": 9, "max_len_b": 3},
        {"unkpen": float("inf")},
    ],
    ids=str,
)
@pytest.mark.parametrize("preset", UNLIKE)
def test_hypotheses_are_those_of_fairseq(preset, given, build_model, a_task, finds):
    model = freeze(build_model(preset, **UNLIKE[preset]).float())
    found, expected = search_both_ways(a_task, model, make_sample(a_task), **given)
    assert len(finds) == 1
    assert_alike(found, expected)


def test_unknown_words_come_where_fairseq_has_them(build_model, a_task, finds):
    model = freeze(build_model().float())
    with torch.no_grad():
        model.decoder.output.weight[a_task.target_dictionary.unk()] *= 4
    found, expected = search_both_ways(a_task, model, make_sample(a_task), beam=3)
    assert_alike(found, expected)
    unk = a_task.target_dictionary.unk()
    assert finds and any(unk in h["tokens"].tolist() for beams in found for h in beams)


@pytest.mark.parametrize(
    "given",
    [
        {"sampling": True},
        {"beam": 30},
        {"min_len": 3},
        {"temperature": 1.5},
        {"unkpen": 0.5},
        {"no_repeat_ngram_size": 2},
        {"match_source_len": True},
        {"diverse_beam_groups": 2, "beam": 4},
        {"print_alignment": "hard"},
    ],
    ids=str,
)
def test_all_else_is_left_to_fairseq(given, build_model, a_task, finds):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3).float()
    model.make_generation_fast_(need_attn=bool(given.get("print_alignment")))
    sample = make_sample(a_task)
    generator = a_task.build_generator([model], Namespace(**given))
    assert a_task.inference_step(generator, [model], sample)
    assert not finds
    model.decoder.make_generation_fast_()
    a_task.inference_step(a_task.build_generator([model], Namespace()), [model], sample)
    assert len(finds) == 1


def test_prefixes_other_types_and_ensembles_are_left_to_fairseq(build_model, a_task, finds):
    sample, double = make_sample(a_task), freeze(build_model())
    single, prefix = freeze(build_model().float()), torch.full((len(LENGTHS), 1), 5)
    for models, led in (
        ([single], dict(prefix_tokens=prefix)), ([double], {}), ([single, single], {}),
    ):  # fmt: skip
        generator = a_task.build_generator(models, Namespace(beam=2))
        found = a_task.inference_step(generator, models, sample, **led)
        if led:
            assert {beam["tokens"][0].item() for beams in found for beam in beams} == {5}
    assert not finds


def test_weights_that_were_loaded_since_are_searched(build_model, a_task, finds):
    model, other = freeze(build_model().float()), build_model().float()
    generator = a_task.build_generator([model], Namespace(beam=3))
    sample = make_sample(a_task)
    a_task.inference_step(generator, [model], sample)
    model.load_state_dict(other.state_dict())
    found = a_task.inference_step(generator, [model], sample)
    assert len(finds) == 2
    assert_alike(found, SequenceGenerator.generate(generator, [other], sample))


class Adapter(torch.nn.Linear):
    """Not what its weight and bias say."""

    def forward(self, x):
        return 2 * super().forward(x)


def exchange_layer(model):
    mlp = model.encoder.blocks[0].mix_channels
    adapter = Adapter(mlp.fc1.in_features, mlp.fc1.out_features)
    adapter.load_state_dict(mlp.fc1.state_dict())
    mlp.fc1 = adapter


CHANGES = {
    "hook": lambda m: m.decoder.norm.register_forward_hook(lambda _, __, y: 2 * y),
    "activation": lambda m: setattr(m.encoder.blocks[0].mix_channels, "activate", torch.nn.ReLU()),
    "bias": lambda m: setattr(m.decoder.output, "bias", torch.nn.Parameter(torch.randn(19))),
    "layer": exchange_layer,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_model_that_was_changed_is_left_to_fairseq(change, build_model, a_task, finds):
    model = build_model().float()
    change(model)
    found, expected = search_both_ways(a_task, freeze(model), make_sample(a_task), beam=2)
    assert_alike(found, expected)
    assert not finds


def test_generators_share_what_was_made_of_a_model(build_model, a_task, monkeypatch):
    made, make = [], FoldedSearch.__init__

    def watch(self, *given, **others):
        made.append(others)
        make(self, *given, **others)

    monkeypatch.setattr(FoldedSearch, "__init__", watch)
    model, sample = freeze(build_model().float()), make_sample(a_task)
    for _ in range(2):  # nobody else holds the generator
        a_task.build_generator([model], Namespace(beam=2)).generate([model], sample)
    assert made == [{"unknown": True}]
    a_task.build_generator([model], Namespace(unkpen=float("inf"))).generate([model], sample)
    model.decoder.output.weight.data = torch.zeros_like(model.decoder.output.weight)
    a_task.build_generator([model], Namespace(beam=2)).generate([model], sample)
    assert len(made) == 3


def test_a_model_of_inference_mode_is_searched(build_model, a_task, finds):
    with torch.inference_mode():
        model = freeze(build_model().float())
    found, expected = search_both_ways(a_task, model, make_sample(a_task), beam=2)
    assert_alike(found, expected)
    assert finds


def test_a_model_in_training_is_searched_as_it_is_by_then(build_model, a_task, finds):
    # --eval-bleu builds the generator before the first update.
    model = build_model().float()
    generator = a_task.build_generator([model], Namespace(beam=3))
    sample = make_sample(a_task)
    for factor in (1, 1, 0.9):
        for parameter in model.parameters():
            parameter.data.mul_(factor)  # as optimizers do
        found = a_task.inference_step(generator, [model], sample)
        assert_alike(found, SequenceGenerator.generate(generator, [model], sample))
    assert len(finds) == 3
    model.train()
    a_task.inference_step(generator, [model], sample)
    assert len(finds) == 3  # dropout is left to fairseq


def test_threads_share_a_batch_and_change_nothing(build_model, a_task, finds):
    model, sample = freeze(build_model().float()), make_sample(a_task)
    found = []
    for threads in (1, 3, 20):
        torch.set_num_threads(threads)
        generator = a_task.build_generator([model], Namespace(beam=3, max_len_a=0.5, max_len_b=2))
        found.append(generator.generate([model], sample))
    assert_alike(found[0], found[1])
    assert_alike(found[0], found[2])
    assert len(finds) == 1 + 3 + len(LENGTHS)
