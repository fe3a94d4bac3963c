"""A mixer that is not ours, with a state of its own, keeps its promise in fairseq's beam search."""

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import nn
from torch.testing import assert_close

from resmlp_mt.models.parts import MIXERS

B, S, K = 3, 7, 4
EOS = 2


class Recurrent(nn.Module):
    """torch's GRU as a causal mixer. Besides its hidden state it keeps the number of words seen."""

    def __init__(self, dim: int):
        super().__init__()
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def forward(self, x, padding_mask=None, state=None):
        if not state:
            y, hidden = self.gru(x)
            words = torch.zeros(len(x), dtype=torch.long)
        else:
            y, hidden = self.gru(x, state["hidden"].transpose(0, 1).contiguous())
            words = state["words"]
        if state is not None:
            state["hidden"] = hidden.transpose(0, 1)  # the batch comes first
            state["words"] = words + x.size(1)
        return y


@pytest.fixture
def model(build_model, monkeypatch):
    def build(dim, place, options):
        return Recurrent(dim) if options.causal else MIXERS["linear"](dim, place, options)

    monkeypatch.setitem(MIXERS, "recurrent", build)
    return build_model(token_mixer="recurrent")


@torch.no_grad()
def test_beam_search_with_a_stateful_stranger_scores_as_passes_without_steps(model, task):
    orders, reorder = [], model.decoder.reorder_incremental_state_scripting

    def note(state, order):
        before = [block["mix"]["hidden"] for block in state["blocks"]]
        reorder(state, order)
        for hidden, block in zip(before, state["blocks"], strict=True):
            assert torch.equal(block["mix"]["hidden"], hidden[order])
            assert set(block["mix"]["words"].tolist()) == {state["seen"]}
        orders.append(order.tolist())

    model.decoder.reorder_incremental_state_scripting = note
    sources = torch.randint(4, 17, (B, S))
    sources[:, -1] = EOS
    net_input = {"src_tokens": sources, "src_lengths": torch.full((B,), S)}
    symbols = task().target_dictionary
    search = SequenceGenerator([model], symbols, beam_size=K, max_len_b=8, normalize_scores=False)
    found = search.generate([model], {"net_input": net_input})

    # Beams changed places, and one went on as two.
    assert any(order != sorted(order) for order in orders)
    assert any(len(set(order)) < len(order) for order in orders)
    for source, hypotheses in zip(sources, found, strict=True):
        assert len(hypotheses) == K
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"]
            shifted = torch.cat([torch.tensor([EOS]), tokens[:-1]])
            logits = model(source[None], None, shifted[None])[0][0]
            log_p = logits.log_softmax(-1).gather(1, tokens[:, None]).squeeze(1)
            assert_close(hypothesis["positional_scores"].double(), log_p, rtol=1e-5, atol=1e-5)


def test_a_stranger_s_attention_can_be_shown_in_steps(model):
    model.make_generation_fast_(need_attn=True)
    source, target, state = torch.randint(4, 17, (1, S)), torch.randint(4, 17, (1, 5)), {}
    memory = model.encoder(source)
    full, shown = model.decoder(target, memory)
    for t in range(5):
        step, extra = model.decoder(target[:, : t + 1], memory, incremental_state=state)
        assert_close(step, full[:, t : t + 1])
        assert_close(extra["attn"][0], shown["attn"][0][:, t : t + 1])
