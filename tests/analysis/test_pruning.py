"""Pruned weights, against what is counted of them."""

import pytest
import torch

from resmlp_mt.analysis.matrices import Part, measure_sparsity
from resmlp_mt.analysis.pruning import prune
from resmlp_mt.errors import UserError


@pytest.mark.parametrize("mixer", ["linear", "gated-toeplitz"])
def test_what_is_pruned_is_what_is_counted_and_comes_back(build_model, mixer):
    model = build_model(token_mixer=mixer, mixing_heads=2)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    weights = {"A": "mix_tokens.mix.matrix" if "gated" in mixer else "mix_tokens.matrix"}
    weights |= {"B": "mix_channels.fc1", "C": "mix_channels.fc2"}

    def read(block, letters):
        return {x: block.get_parameter(f"{weights[x]}.weight").detach() for x in letters}

    for letters in ("A", "AC"):
        sides = {side: getattr(model, side).blocks for side in ("encoder", "decoder")}
        parts = [Part(side, [read(b, letters) for b in blocks]) for side, blocks in sides.items()]
        rows = measure_sparsity(parts, 0.3)
        total = sum(row.weights for row in rows)
        with prune(model, letters, 0.3) as share:
            assert 0.05 < share < 0.95
            assert share == pytest.approx(sum(row.share * row.weights for row in rows) / total)
            for name, weight in model.state_dict().items():
                touched = any(f"{weights[letter]}.weight" in name for letter in letters)
                assert weight.equal(before[name]) != touched, name
                assert weight[weight != 0].equal(before[name][weight != 0])
        for name, weight in model.state_dict().items():
            assert weight.equal(before[name])
    with prune(model, "A", 0.0) as share:
        assert share == 0


def test_a_model_without_such_a_matrix_is_refused():
    with (
        pytest.raises(UserError, match="the model has no matrix A"),
        prune(torch.nn.Linear(2, 2), "A", 0.1),
    ):
        pass
