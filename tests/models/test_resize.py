import pytest
import torch
import torch.nn.functional as F
from parts import encoder_block
from torch import nn

from resmlp_mt.models.image_classification import ResMLPImageConfig, ResMLPImageModel
from resmlp_mt.models.images import ImageModel
from resmlp_mt.models.resize import resize_weights
from resmlp_mt.nn.grid_mixers import PatchMLP
from resmlp_mt.nn.norm import Affine
from resmlp_mt.nn.patches import PatchEmbedding
from resmlp_mt.nn.pooling import AveragePooling
from resmlp_mt.nn.stages import Stage

every_change = pytest.mark.parametrize("old, new", [(4, 8), (5, 7), (7, 5), (8, 4), (4, 1), (1, 3)])


def build(side: int, **flags) -> ResMLPImageModel:
    """A model for a grid of side x side patches."""
    cfg = ResMLPImageConfig(patch_size=3, embed_dim=12, layers=2, drop_path=0.0)
    for name, value in flags.items():
        setattr(cfg, name, value)
    return ResMLPImageModel(cfg, 2, side * cfg.patch_size, nn.Linear(12, 5)).eval()


def resize(matrix: torch.Tensor, new: int) -> torch.Tensor:
    """One mixing matrix, (N, N) -> (N', N')."""
    name = "stages.0.blocks.0.mix_tokens.matrix.weight"
    return resize_weights({name: matrix[None]}, build(new))[name][0]


def interpolate(image: torch.Tensor, new: int) -> torch.Tensor:
    """(H, W) -> (new, new), by torch."""
    antialias = new < image.size(0)
    options = dict(mode="bicubic", align_corners=False, antialias=antialias)
    return F.interpolate(image[None, None], size=(new, new), **options)[0, 0]


def random_matrix(side: int) -> torch.Tensor:
    return torch.randn(side**2, side**2, dtype=torch.float64)


def places(side: int) -> torch.Tensor:
    """Row and column of each patch. (N, 2)."""
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return torch.stack([rows, columns], -1).flatten(0, 1).double()


@every_change
def test_what_a_constant_image_gives_is_interpolated_and_no_more(old, new):
    matrix = random_matrix(old)
    expected = interpolate(matrix.sum(1).view(old, old), new)
    torch.testing.assert_close(resize(matrix, new).sum(1).view(new, new), expected)


@pytest.mark.parametrize("new", [8, 7, 3])
def test_rows_of_the_same_sum_keep_it(new):
    matrix = random_matrix(4)
    matrix += (0.7 - matrix.sum(1, keepdim=True)) / 16
    torch.testing.assert_close(resize(matrix, new).sum(1), torch.full((new**2,), 0.7).double())


def test_twice_the_side_gives_each_weight_a_quarter():
    # Away from the borders, where the sum over four patches is that of the one they came from.
    matrix = torch.zeros(64, 64, dtype=torch.float64)
    matrix[:, 8 * 3 + 4] = 1
    columns = resize(matrix, 16)[0].view(16, 16)
    torch.testing.assert_close(columns, interpolate(matrix[0].view(8, 8), 16) / 4)


def row_and_column(matrix: torch.Tensor, new: int) -> torch.Tensor:
    """U M D for a matrix over one dimension, by torch on images that are constant in the other."""
    old = matrix.size(0)
    up = torch.stack(
        [interpolate(line.expand(old, old), new)[0] for line in torch.eye(old).double()], 1
    )
    return up @ matrix @ (up / up.sum(0)).t()


@every_change
def test_rows_and_columns_of_the_grid_are_interpolated_each_on_its_own(old, new):
    over_rows = torch.randn(old, old, dtype=torch.float64)
    over_columns = torch.randn(old, old, dtype=torch.float64)
    expected = torch.kron(row_and_column(over_rows, new), row_and_column(over_columns, new))
    torch.testing.assert_close(resize(torch.kron(over_rows, over_columns), new), expected)


@pytest.mark.parametrize("new", [24, 17, 8])
@pytest.mark.parametrize("shift", [(0, 0), (0, 1), (1, 0), (2, -1)])
def test_a_shift_by_patches_remains_a_shift_by_the_same_part_of_the_image(new, shift):
    old = 12
    place, step = places(old), torch.tensor(shift)
    matrix = (place[:, None] + step == place[None]).all(-1).double()
    # The new patches, in units of the old; those far enough from the borders.
    place = (places(new) + 0.5) * old / new - 0.5
    inner = ((place + step - 5.5).abs() <= 2.5).all(1)
    weights, target = resize(matrix, new)[inner], place[inner] + step
    torch.testing.assert_close(weights @ place, target, atol=0.1, rtol=0)
    distance = (place[None] - target[:, None]).abs().amax(-1)
    far = distance > 2.5 * max(1, old / new)
    assert ((weights.abs() * far).sum(1) < 0.1 * weights.abs().sum(1)).all()


@pytest.mark.parametrize("new", [16, 11])
def test_growth_then_shrinking_gives_a_smooth_matrix_back(new):
    place = places(8)
    matrix = torch.exp(-(place[:, None] - place[None] - 1).square().sum(-1) / 12)
    back = resize(resize(matrix, new), 8)
    assert (back - matrix).norm() < 0.05 * matrix.norm()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_type_stays(dtype):
    matrix = random_matrix(4)
    resized = resize(matrix.to(dtype), 6)
    assert resized.dtype == dtype
    torch.testing.assert_close(resized.double(), resize(matrix, 6), atol=0.02, rtol=0.02)


def with_equal_sums(model: ResMLPImageModel) -> ResMLPImageModel:
    """Let each matrix treat all patches of a constant image alike."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("matrix.weight"):
                parameter += 0.3 - parameter.mean(-1, keepdim=True)
            if name.endswith("matrix.bias"):
                parameter.fill_(0.4)
    return model


@pytest.mark.parametrize("pooling", ["average", "class-mlp"])
@pytest.mark.parametrize("new", [6, 3])
def test_a_model_of_another_image_size_loads_and_sees_constant_images_alike(
    pooling, new, randomised, caplog
):
    old_model = with_equal_sums(randomised(build(4, pooling=pooling)))
    new_model = randomised(build(new, pooling=pooling))
    new_model.load_state_dict(old_model.state_dict())
    colour = torch.randn(7, 2, 1, 1, dtype=torch.float64)
    old_logits = old_model(colour.expand(-1, -1, 12, 12))
    torch.testing.assert_close(new_model(colour.expand(-1, -1, 3 * new, 3 * new)), old_logits)
    said = f"mixing matrices interpolated from 4 x 4 to {new} x {new} patches"
    assert caplog.messages == [said]


class Halve(nn.Module):
    """The mean of each two by two positions. (B, N, C) -> (B, N / 4, C)."""

    def forward(self, x):
        side = int(x.size(1) ** 0.5)
        x = x.transpose(1, 2).unflatten(2, (side, side))
        return F.avg_pool2d(x, 2).flatten(2).transpose(1, 2)


def build_pyramid(side: int) -> ImageModel:
    """Two stages, the second on half of side x side positions."""

    def stage(side, downsample):
        block = encoder_block("linear", "affine", 12, side**2, heads=1)
        return Stage((side, side), downsample, [block])

    stages = [stage(side, nn.Identity()), stage(side // 2, Halve())]
    pool = AveragePooling(Affine(12))
    return ImageModel(3 * side, PatchEmbedding(2, 12, 3), stages, pool, nn.Linear(12, 5)).eval()


def test_each_stage_of_a_pyramid_is_interpolated_to_its_own_grid(randomised):
    old_model, new_model = with_equal_sums(randomised(build_pyramid(4))), build_pyramid(8).double()
    new_model.load_state_dict(old_model.state_dict())
    sizes = [stage.blocks[0].mix_tokens.matrix.weight.shape for stage in new_model.stages]
    assert sizes == [(1, 64, 64), (1, 16, 16)]
    colour = torch.randn(7, 2, 1, 1, dtype=torch.float64)
    expected = old_model(colour.expand(-1, -1, 12, 12))
    torch.testing.assert_close(new_model(colour.expand(-1, -1, 24, 24)), expected)


def test_the_bias_is_interpolated_over_the_grid():
    bias = torch.randn(5, 5, dtype=torch.float64)
    name = "stages.0.blocks.1.mix_tokens.matrix.bias"
    resized = resize_weights({name: bias.view(1, 25)}, build(8))[name]
    torch.testing.assert_close(resized, interpolate(bias, 8).view(1, 64))


@pytest.mark.parametrize("mixer", ["linear", "none", "mlp", "depthwise3x3"])
def test_weights_of_the_same_size_stay_as_they_are(mixer, caplog):
    weights = build(4, token_mixer=mixer).state_dict()
    assert resize_weights(weights, build(4, token_mixer=mixer)) is weights
    assert not caplog.messages


@pytest.mark.parametrize("mixer", ["none", "conv3x3", "depthwise3x3", "separable3x3"])
def test_mixers_that_know_no_size_need_no_change(mixer, caplog):
    weights = build(4, token_mixer=mixer).state_dict()
    build(6, token_mixer=mixer).load_state_dict(weights)
    assert not caplog.messages


def test_weights_that_are_given_stay_as_they_were():
    weights = build(4).state_dict()
    before = {name: tensor.clone() for name, tensor in weights.items()}
    resize_weights(weights, build(6))
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights.items())


@every_change
def test_an_mlp_over_patches_gives_for_a_constant_image_what_it_gave_interpolated(old, new):
    mlps = [PatchMLP(side**2, hidden_positions=7).double() for side in (old, new)]
    grids = (old, old), (new, new)
    mlps[1].load_state_dict(mlps[1].resize(mlps[0].state_dict(), *grids))
    before, after = (
        mlp(torch.full((1, side**2, 1), 0.7).double())
        for mlp, side in zip(mlps, (old, new), strict=True)
    )
    expected = interpolate(before.view(old, old), new)
    torch.testing.assert_close(after.view(new, new), expected)


def test_the_patch_mlp_of_four_times_the_patches_is_refused():
    weights = build(4, token_mixer="mlp").state_dict()
    with pytest.raises(ValueError, match="'mlp' cannot be interpolated: the size of its hidden"):
        build(6, token_mixer="mlp").load_state_dict(weights)


def test_patches_of_another_size_are_refused():
    weights = build(4, patch_size=4).state_dict()
    with pytest.raises(ValueError, match="patches of 4 x 4 pixels.*--patch-size 4"):
        build(4).load_state_dict(weights)


def test_a_matrix_over_no_square_is_refused():
    with pytest.raises(ValueError, match="12 patches, which are no square grid"):
        resize(torch.zeros(12, 12), 4)


def test_what_is_missing_or_of_another_width_is_reported_by_load_state_dict():
    weights = build(4).state_dict()
    del weights["stages.0.blocks.1.mix_tokens.matrix.weight"], weights["stem.proj.weight"]
    weights["stages.0.blocks.0.mix_tokens.matrix.weight"] = torch.zeros(1, 16, 9)
    weights["stages.0.blocks.0.mix_tokens.matrix.bias"] = torch.zeros(())
    with pytest.raises(ValueError) as error:
        build(6).load_state_dict(weights)
    missing, shapes = str(error.value).splitlines()[1:]
    for name in ("stages.0.blocks.1.mix_tokens.matrix.weight", "stem.proj.weight"):
        assert name in missing
    assert "stages.0.blocks.0.mix_tokens.matrix.weight (1, 16, 9) instead of (1, 36, 36)" in shapes
