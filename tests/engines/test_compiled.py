"""fairseq's generators in compiled code against themselves without it."""

from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from resmlp_mt.engines.compiled import CompiledSearch
from resmlp_mt.engines.folded_search import FoldedSearch
from resmlp_mt.engines.kernels.library import find_kind
from resmlp_mt.engines.search.stopping import Stopped, stop_when
from resmlp_mt.plugin import TranslationTask

pytestmark = pytest.mark.skipif(find_kind() is None, reason="no compiled code on this processor")

LENGTHS = [4, 11, 2, 7, 7, 1, 9, 3]  # with the end, which may stand alone
UNLIKE = {"resmlp_wmt_en_de": {}, "resmlp_plus_tiny": {"decoder_attention_heads": 3}}


@pytest.fixture
def finds(monkeypatch):
    """The arguments of each call of the compiled search."""
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


@pytest.fixture
def sample(a_task):
    tokens = torch.full((len(LENGTHS), max(LENGTHS)), a_task.source_dictionary.pad())
    for row, length in zip(tokens, LENGTHS, strict=True):  # fairseq pads sources on the left
        row[-length:] = torch.randint(4, 17, (length,))
    tokens[:, -1] = a_task.source_dictionary.eos()
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor(LENGTHS)}}


def freeze(model):
    model.make_generation_fast_()
    return model


@pytest.fixture
def agree(a_task, sample):
    """Search both ways, and compare all hypotheses, in order but where two score the same."""

    def search(model, reference=None, **given):
        generator = a_task.build_generator([model], Namespace(**given))
        found = a_task.inference_step(generator, [model], sample)
        expected = SequenceGenerator.generate(generator, [reference or model], sample)
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
        return found

    return search


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"beam": 3, "lenpen": 1.4},
        {"beam": 4, "unnormalized": True, "max_len_a": 0.5, "max_len_b": 2},
        {"beam": 9, "max_len_b": 3},
        {"beam": 1, "unkpen": float("inf")},
    ],
    ids=str,
)
@pytest.mark.parametrize("preset", UNLIKE)
def test_hypotheses_are_those_of_fairseq(preset, given, build_model, agree, finds):
    agree(freeze(build_model(preset, **UNLIKE[preset]).float()), **given)
    assert len(finds) == 1


def test_unknown_words_come_where_fairseq_has_them(build_model, a_task, agree, finds):
    with torch.inference_mode():  # whose weights have no versions
        model, unk = freeze(build_model().float()), a_task.target_dictionary.unk()
        model.decoder.output.weight[unk] *= 4
    found = agree(model, beam=3)
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
def test_all_else_is_left_to_fairseq(given, build_model, a_task, sample, finds):
    model = build_model("resmlp_plus_tiny", decoder_attention_heads=3).float()
    model.make_generation_fast_(need_attn=bool(given.get("print_alignment")))
    generator = a_task.build_generator([model], Namespace(**given))
    assert a_task.inference_step(generator, [model], sample)
    assert not finds
    model.decoder.make_generation_fast_()
    a_task.inference_step(a_task.build_generator([model], Namespace()), [model], sample)
    assert len(finds) == 1


def test_prefixes_other_types_and_ensembles_are_left_to_fairseq(build_model, a_task, sample, finds):
    double, single = freeze(build_model()), freeze(build_model().float())
    led = dict(prefix_tokens=torch.full((len(LENGTHS), 1), 5))
    for models, given in (([single], led), ([double], {}), ([single, single], {})):
        generator = a_task.build_generator(models, Namespace(beam=2))
        assert a_task.inference_step(generator, models, sample, **given)
    assert not finds


class Adapter(torch.nn.Linear):
    """Not what its weight and bias say."""

    def forward(self, x):
        return 2 * super().forward(x)


CHANGES = {
    "hook": lambda m: m.decoder.norm.register_forward_hook(lambda _, __, y: 2 * y),
    "activation": lambda m: setattr(m.encoder.blocks[0].mix_channels, "activate", torch.nn.ReLU()),
    "bias": lambda m: setattr(m.decoder.output, "bias", torch.nn.Parameter(torch.randn(19))),
    "layer": lambda m: setattr(m.encoder.blocks[0].mix_channels.fc1, "__class__", Adapter),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_model_that_was_changed_is_left_to_fairseq(change, build_model, agree, finds):
    change(model := build_model().float())
    agree(freeze(model), beam=2)
    assert not finds


def test_generators_share_what_was_made_of_a_model(build_model, a_task, sample, monkeypatch):
    made, make = [], FoldedSearch.__init__

    def watch(self, *given, **others):
        made.append(others)
        make(self, *given, **others)

    monkeypatch.setattr(FoldedSearch, "__init__", watch)
    model = freeze(build_model().float())
    for _ in range(2):  # nobody else holds the generator
        a_task.build_generator([model], Namespace(beam=2)).generate([model], sample)
    assert made == [{"unknown": True}]
    a_task.build_generator([model], Namespace(unkpen=float("inf"))).generate([model], sample)
    model.decoder.output.weight.data = torch.zeros_like(model.decoder.output.weight)
    a_task.build_generator([model], Namespace(beam=2)).generate([model], sample)
    assert len(made) == 3


def test_weights_that_were_loaded_or_trained_since_are_searched(
    build_model, a_task, sample, agree, finds
):
    model, other = freeze(build_model().float()), build_model().float()
    agree(model, beam=3)
    model.load_state_dict(other.state_dict())
    agree(model, other, beam=3)
    for _ in range(2):
        for parameter in other.parameters():
            parameter.data.mul_(0.9)  # as optimizers do
        agree(other, beam=3)
    assert len(finds) == 4
    # --eval-bleu builds the generator before the first update; dropout is left to fairseq.
    generator = a_task.build_generator([other], Namespace(beam=3))
    a_task.inference_step(generator, [other.train()], sample)
    assert len(finds) == 4


def test_threads_share_a_batch_and_change_nothing(build_model, a_task, agree, finds):
    model = freeze(build_model().float())
    search = CompiledSearch(model, a_task.source_dictionary, a_task.target_dictionary)
    pairs = [np.array([5 + i, 2]) for i in range(8)], [np.array([4 + i]) for i in range(8)]
    scores = search.score(*pairs)
    for threads in (3, 20):
        torch.set_num_threads(threads)
        agree(model, beam=3, max_len_a=0.5, max_len_b=2)
        np.testing.assert_allclose(search.score(*pairs), scores, rtol=1e-5)
    assert len(finds) == 3 + len(LENGTHS)
    with pytest.raises(Stopped), stop_when(lambda: True):
        agree(model)
