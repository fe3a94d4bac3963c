import torch
from torch.testing import assert_close

from resmlp_mt.nn.patches import PatchEmbedding

B, H, W, C, P = 2, 3, 4, 6, 5


def test_a_patch_is_embedded_alone_and_in_rows(randomised):
    embed = randomised(PatchEmbedding(3, C, P))
    images = torch.randn(B, 3, H * P, W * P, dtype=torch.float64)
    y = embed(images)
    assert y.shape == (B, H * W, C)
    weight = embed.proj.weight.flatten(1)
    for row in range(H):
        for column in range(W):
            patch = images[:, :, row * P : (row + 1) * P, column * P : (column + 1) * P]
            assert_close(y[:, row * W + column], patch.flatten(1) @ weight.t() + embed.proj.bias)
