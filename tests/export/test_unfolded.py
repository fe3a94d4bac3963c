"""Parts without a folded form are refused; a matrix of any layout is exported as it computes."""

import pytest
import torch
from torch import nn

from resmlp_mt import Translator
from resmlp_mt.checkpoints.loading import load_translator, read_checkpoint
from resmlp_mt.engines.compiled import can_compile
from resmlp_mt.engines.fairseq_search import FairseqSearch
from resmlp_mt.errors import UserError
from resmlp_mt.export import writer
from resmlp_mt.export.writer import export_model
from resmlp_mt.models.translation.folded import describe_mixing, find_unfolded
from resmlp_mt.nn.mixers import FreeMatrix, GatedMixer, ToeplitzMatrix


class Hidden(GatedMixer):
    """Computes something else than its class, of which it has the fold."""

    def forward(self, x, padding_mask=None, state=None):
        return 2 * super().forward(x, padding_mask, state)


class Named(GatedMixer):
    """Computes what its class does."""


class Narrow(ToeplitzMatrix):
    """Sees few distances, whatever the longest sentence is."""

    def __init__(self, positions, heads, causal, init_std):
        super().__init__(min(positions, 5), heads, causal, init_std)


class LowRank(nn.Module):
    """A matrix whose weights have other names and shapes."""

    def __init__(self, positions, heads, causal, init_std):
        super().__init__()
        self.causal = causal
        self.left = nn.Parameter(init_std * torch.randn(heads, positions, 2))
        self.right = nn.Parameter(init_std * torch.randn(heads, 2, positions))

    def forward(self, start, stop):
        rows = self.left[:, :stop] @ self.right[:, :, :stop]
        return (rows.tril() if self.causal else rows)[:, start:], None


@pytest.fixture
def trained():
    return load_translator(*read_checkpoint("multi30k-en-de"))


EXCHANGES = {
    "ReLU": lambda block: setattr(block.mix_channels, "activate", nn.ReLU()),
    "Identity": lambda block: setattr(block, "norm_2", nn.Identity()),
    "Hidden": lambda block: setattr(block.mix_tokens, "__class__", Hidden),
}


@pytest.mark.parametrize("part", EXCHANGES)
def test_a_part_that_computes_something_else_is_refused(part, trained, monkeypatch, tmp_path):
    trained.model.decoder.blocks[0].mix_tokens.__class__ = Named  # which is another by name alone
    assert find_unfolded(trained.model) is None
    EXCHANGES[part](trained.model.decoder.blocks[-1])
    monkeypatch.setattr(writer, "load_translator", lambda *_: trained)
    with pytest.raises(UserError, match=f"no export of a translator with a {part}"):
        export_model("multi30k-en-de", tmp_path / "out", int8=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [Narrow, LowRank])
def test_a_matrix_is_written_as_its_rows_say(kind, trained):
    sides = {"encoder": trained.model.encoder, "decoder": trained.model.decoder}
    for name, side in sides.items():
        for block in side.blocks:
            heads = block.mix_tokens.mix.matrix.weight.size(0)
            block.mix_tokens.mix.matrix = kind(side.longest, heads, name == "decoder", 0.1)
    found = describe_mixing(trained.model)
    for name, side in sides.items():
        at = torch.arange(side.longest)
        for layer, block in zip(found[f"{name}.matrix"], side.blocks, strict=True):
            layer = torch.from_numpy(layer)
            if layer.dim() == 2:  # a weight for a distance, from 1 - N on
                layer = layer[:, at[:, None] - at + side.longest - 1]
            assert torch.equal(layer, block.mix_tokens.mix.matrix(0, side.longest)[0].detach())


class Shifted(ToeplitzMatrix):
    """Has a bias under a name of its own."""

    def __init__(self, positions, heads, causal, init_std):
        super().__init__(positions, heads, causal, init_std)
        self.shift = nn.Parameter(torch.randn(heads, positions))

    def forward(self, start, stop):
        rows, _ = super().forward(start, stop)
        return rows, self.shift[:, start:stop]


def test_what_a_layer_adds_at_each_position_is_exported(trained, monkeypatch, tmp_path):
    lines = ["A man rides a bike.", "Two dogs play in the snow.", "A girl in a red dress sings."]
    codec = Translator.from_pretrained("multi30k-en-de").codec
    plain = Translator(FairseqSearch(trained.model, trained.task, "cpu"), codec)
    before = list(plain.translate_nbest(lines))
    torch.manual_seed(1)
    for side in (trained.model.encoder, trained.model.decoder):
        mixer = side.blocks[2].mix_tokens.mix
        weight = mixer.matrix.weight
        mixer.matrix = Shifted(side.longest, len(weight), mixer.matrix.nearest == 0, 0.1)
        mixer.matrix.weight = weight
    expected = list(plain.translate_nbest(lines, nbest=2))
    assert all(abs(a[0].score - b[0].score) > 1e-3 for a, b in zip(before, expected, strict=True))
    monkeypatch.setattr(writer, "load_translator", lambda *_: trained)
    export_model("multi30k-en-de", tmp_path / "out", int8=False)
    fast = Translator.from_pretrained(tmp_path / "out", threads=1)
    for one, other in zip(fast.translate_nbest(lines, nbest=2), expected, strict=True):
        assert [h.text for h in one] == [h.text for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)


def test_layers_whose_matrices_cannot_be_stacked_have_no_export(trained, monkeypatch, tmp_path):
    decoder = trained.model.decoder
    mixer = decoder.blocks[1].mix_tokens.mix
    mixer.matrix = FreeMatrix(decoder.longest, len(mixer.matrix.weight), True, 0.1)
    assert not can_compile(trained.model.float())
    monkeypatch.setattr(writer, "load_translator", lambda *_: trained)
    with pytest.raises(UserError, match="no export of .*matrices of several kinds"):
        export_model("multi30k-en-de", tmp_path / "out", int8=False)
