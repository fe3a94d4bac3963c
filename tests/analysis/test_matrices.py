import pytest
import torch

from resmlp_mt.analysis.matrices import (
    Part,
    acting_weights,
    arrange_heads,
    central_rows,
    expand,
    measure_sparsity,
    mosaic,
    read_matrices,
    share_of_small,
)
from resmlp_mt.errors import UserError
from resmlp_mt.models.image_classification import ResMLPImageConfig, ResMLPImageModel
from resmlp_mt.models.parts import GRID_MIXERS, SEQUENCE_MIXERS, build_mixer


def save(path, weights, **model):
    """A checkpoint as fairseq keeps it."""
    history = [{"optimizer_name": "Adam", "lr_scheduler_state": {}, "num_updates": 1}]
    cfg = {
        "model": model,
        "task": {},
        "common": {},
        "checkpoint": {},
        "generation": {"print_alignment": None},
    }
    state = {"cfg": cfg, "args": None, "model": weights}
    torch.save(state | {"optimizer_history": history, "extra_state": {}}, path)
    return path


def naive_share(matrices, threshold):
    small = total = 0
    for matrix in matrices:
        entries = [float(entry) for entry in matrix.flatten()]
        largest = max(abs(entry) for entry in entries)
        small += sum(1 for entry in entries if abs(entry) < threshold * largest)
        total += len(entries)
    return small / total


@pytest.mark.parametrize("threshold", [0.05, 0.3, 1])
def test_the_share_of_small_weights_is_that_of_a_loop(threshold):
    weights = torch.randn(3, 7, 5) ** 3 * torch.tensor([1.0, 10, 0.1]).view(3, 1, 1)
    share = share_of_small(weights.flatten(1), threshold)
    assert share == pytest.approx(naive_share(weights, threshold), abs=1e-12)


def test_the_shares_of_a_checkpoint_made_by_hand(tmp_path):
    a = torch.tensor([[1, 0.04, -0.04, 0.06], [0.01] * 4, [-0.5] * 4, [0] * 4])
    weights = {
        "embed.proj.weight": torch.ones(3, 3),
        # Half precision, and an order in which 10 comes before 2.
        **{f"blocks.{i}.mix_tokens.matrix.weight": a[None].half() * (i + 1) for i in (0, 1, 10)},
        **{f"blocks.{i}.mix_tokens.matrix.weight": a[None] * (i + 1) for i in range(2, 10)},
        "blocks.1.mix_channels.0.weight": torch.tensor([[2, 0.09], [-0.09, -0.11]]),
        "blocks.1.mix_channels.3.weight": torch.tensor([[-4.0], [0.1]]),
    }
    path = save(tmp_path / "model.pt", weights, _name="resmlp_image", token_mixer="linear")
    mixer, parts = read_matrices(path)
    rows = {(r.layer, r.matrix): r for r in measure_sparsity(parts, 0.05)}
    assert mixer == "linear" and [part.name for part in parts] == ["image"]
    assert [layer["A"][0, 0, 0].item() for layer in parts[0].layers] == list(range(1, 12))
    assert all(layer["A"].dtype == torch.float32 for layer in parts[0].layers)
    assert rows[0, "A"].share == 10 / 16 and rows[0, "A"].weights == 16
    assert rows[1, "B"].share == 2 / 4 and rows[1, "C"].share == 1 / 2
    assert len(rows) == 11 + 2
    assert {row.share for row in measure_sparsity(parts, 0.02) if row.matrix == "A"} == {8 / 16}


@pytest.mark.parametrize("shape", [(8,), (8, 7, 5), (1, 8, 7, 7)])
def test_matrices_of_other_plugins_are_no_matrices_of_ours(shape, tmp_path):
    weights = {"encoder.blocks.0.mix_tokens.mix.matrix.weight": torch.ones(shape)}
    with pytest.raises(UserError, match="matrix.weight, .*, is no weight for each pair"):
        read_matrices(save(tmp_path / "model.pt", weights, _name="resmlp_tiny_decay"))


@pytest.mark.parametrize("mixer", sorted(SEQUENCE_MIXERS))
def test_a_translator_s_matrices_are_those_of_its_blocks(build_model, tmp_path, mixer):
    model = build_model(token_mixer=mixer, mixing_heads=4).float()
    path = save(tmp_path / "model.pt", model.state_dict(), token_mixer=mixer)
    parts = read_matrices(path)[1]
    assert [len(part.layers) for part in parts] == [2, 3]
    for part, side in zip(parts, (model.encoder, model.decoder), strict=True):
        for layer, block in zip(part.layers, side.blocks, strict=True):
            matrix = getattr(block.mix_tokens, "mix", block.mix_tokens).matrix
            assert torch.equal(layer["A"], matrix.weight)
            assert torch.equal(layer["B"], block.mix_channels.fc1.weight)
            assert torch.equal(layer["C"], block.mix_channels.fc2.weight)


@pytest.mark.parametrize("mixer", sorted(GRID_MIXERS))
def test_a_classifier_s_matrices_are_those_of_its_blocks(tmp_path, mixer):
    cfg = ResMLPImageConfig(patch_size=2, embed_dim=6, layers=3, token_mixer=mixer)
    model = ResMLPImageModel(cfg, 3, 10, torch.nn.Linear(6, 4))
    name, (part,) = read_matrices(
        save(tmp_path / "model.pt", model.state_dict(), token_mixer=mixer)
    )
    assert name == mixer and part.name == "image"
    for layer, block in zip(part.layers, model.stages[0].blocks, strict=True):
        assert torch.equal(layer["B"], block.mix_channels.fc1.weight)
        assert torch.equal(layer["C"], block.mix_channels.fc2.weight)
        assert ("A" in layer) == (mixer == "linear")
        if mixer == "linear":
            assert torch.equal(layer["A"], block.mix_tokens.matrix.weight)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", sorted(SEQUENCE_MIXERS))
def test_the_expanded_matrix_is_the_one_that_the_mixer_applies(name, causal):
    mixer = build_mixer(name, 6, 7, heads=3, causal=causal, init_std=1)
    matrix = getattr(mixer, "mix", mixer).matrix
    for positions in (1, 4, 7):
        expected = matrix(0, positions)[0]
        assert torch.equal(expand(matrix.weight.detach(), causal, positions), expected)
    assert expand(matrix.weight.detach(), causal, 99).shape == (3, 7, 7)
    assert not expand(matrix.weight, causal, 7).requires_grad


@pytest.mark.parametrize("causal", [True, False])
def test_a_toeplitz_matrix_has_a_weight_for_each_distance(causal):
    heads, positions = 2, 5
    nearest = 0 if causal else 1 - positions
    weight = torch.randn(heads, positions - nearest)
    expanded = expand(weight, causal, positions)
    for h in range(heads):
        for i in range(positions):
            for j in range(positions):
                seen = i - j >= nearest
                assert expanded[h, i, j] == (weight[h, i - j - nearest] if seen else 0)


def test_only_weights_that_act_count():
    weight = torch.randn(2, 4, 4)
    weight += torch.full((4, 4), 1000.0).triu(1)  # would make all others small
    acting = acting_weights("A", weight, causal=True)
    expected = [[weight[h, i, j] for i in range(4) for j in range(i + 1)] for h in range(2)]
    assert acting.tolist() == [[w.item() for w in head] for head in expected]
    decoder, encoder = (
        measure_sparsity([Part(name, [{"A": weight}])], 0.05)[0] for name in ("decoder", "encoder")
    )
    assert decoder.weights == 20 and decoder.share == naive_share(acting, 0.05)
    assert encoder.weights == 32 and encoder.share == 20 / 32
    toeplitz = torch.randn(2, 4)
    assert torch.equal(acting_weights("A", toeplitz, causal=True), toeplitz)
    assert acting_weights("B", weight[0], causal=True).shape == (1, 16)


@pytest.mark.parametrize(("grid", "most", "count"), [(6, 4, 4), (7, 3, 3), (3, 6, 3), (5, 1, 1)])
def test_a_shift_shows_its_spike_in_each_tile_at_the_shifted_place(grid, most, count):
    # Patch (r, c) reads patch (r, c - 1), round the edge.
    matrix = torch.zeros(grid * grid, grid * grid)
    for r in range(grid):
        for c in range(grid):
            matrix[grid * r + c, grid * r + (c - 1) % grid] = 1 + grid * r + c
    tiles = central_rows(matrix, most)
    picture = mosaic(tiles)
    first = (grid - count) // 2
    expected = torch.zeros(count * grid, count * grid)
    for i in range(count):
        for j in range(count):
            r, c = first + i, first + j
            expected[grid * i + r, grid * j + (c - 1) % grid] = 1 + grid * r + c
    assert tiles.shape == (count, count, grid, grid)
    assert torch.equal(picture, expected)


@pytest.mark.parametrize(("heads", "rows"), [(1, 1), (2, 1), (4, 2), (6, 2), (7, 1), (8, 2)])
def test_heads_stand_in_reading_order(heads, rows):
    tiles = arrange_heads(torch.arange(heads).view(-1, 1, 1).expand(-1, 3, 3))
    assert tiles.shape == (rows, heads // rows, 3, 3)
    assert mosaic(tiles)[::3, ::3].flatten().tolist() == list(range(heads))


def test_a_diverged_model_and_one_of_another_kind_are_refused(tmp_path):
    other = save(tmp_path / "o.pt", {"encoder.fc1.weight": torch.ones(2)}, _name="transformer")
    with pytest.raises(UserError, match="its model is 'transformer'"):
        read_matrices(other)
    weights = {"stages.0.blocks.0.mix_channels.fc2.weight": torch.tensor([[1, float("nan")]])}
    with pytest.raises(UserError, match="mix_channels.fc2.weight holds values that are no numbers"):
        read_matrices(save(tmp_path / "model.pt", weights, token_mixer="none"))
