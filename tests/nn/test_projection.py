import copy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.testing import assert_close

from resmlp_mt.nn.projection import ProjectionHead

B, C, HIDDEN, BOTTLENECK, K = 5, 12, 20, 8, 17


@pytest.fixture
def head():
    """As if trained: biases too, and prototypes of all lengths."""
    head = ProjectionHead(C, HIDDEN, BOTTLENECK, K)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        head.prototypes.mul_(torch.rand(K, 1) + 0.1)
    return head


def test_the_bottleneck_and_the_prototypes_have_length_1(head):
    x = torch.randn(B, C)
    assert head.bottleneck(x).shape == (B, BOTTLENECK)
    assert_close(head.bottleneck(x).norm(dim=1), torch.ones(B))
    assert_close(head.directions().norm(dim=1), torch.ones(K))
    assert head(x).shape == (B, K)


def test_the_output_is_the_cosine_with_each_prototype(head):
    x = torch.randn(B, C)
    z, y = head.mlp(x), head(x)
    for b in range(B):
        for k in range(K):
            w = head.prototypes[k]
            assert_close(y[b, k], z[b] @ w / (z[b].norm() * w.norm()))


def test_the_prototypes_are_a_weight_normalised_layer_with_magnitude_1(head):
    x, noise = torch.randn(B, C), torch.randn(B, K)
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(BOTTLENECK, K, bias=False))
    magnitude, direction = layer.parametrizations.weight.parameters()
    with torch.no_grad():
        magnitude.fill_(1)
        direction.copy_(head.prototypes)
    y = layer(nn.functional.normalize(head.mlp(x), dim=1))
    assert_close(head(x), y)
    (y * noise).sum().backward()
    (head(x) * noise).sum().backward()
    assert_close(head.prototypes.grad, direction.grad)


def test_every_parameter_learns(head):
    (head(torch.randn(B, C)) * torch.randn(B, K)).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in head.parameters())


def test_the_centre_starts_at_0_and_moves_by_the_momentum():
    head, output = ProjectionHead(C, HIDDEN, BOTTLENECK, K), torch.randn(2, B, K)
    head.update_centre(output, 0.9)
    assert_close(head.centre, 0.1 * output.mean((0, 1)))
    before = head.centre.clone()
    head.update_centre(output[:1], 0.7)
    assert_close(head.centre, 0.7 * before + 0.3 * output[0].mean(0))
    before = head.centre.clone()
    head.update_centre(output[:, :0], 0.7)
    assert torch.equal(head.centre, before)


WORKER = """
import sys, torch, torch.distributed as dist
from resmlp_mt.nn.projection import ProjectionHead
dist.init_process_group("gloo", init_method=sys.argv[1], rank=1, world_size=2)
ProjectionHead(2, 2, 2, 3).update_centre(torch.full((3, 3), 2.0), 0.5)
dist.destroy_process_group()  # or a thread of it may abort the exit
"""


def test_the_centre_is_that_of_all_workers_though_their_batches_differ(tmp_path):
    store, root = f"file://{tmp_path}/store", Path(__file__).parents[2]
    worker = subprocess.Popen([sys.executable, "-c", WORKER, store], cwd=root)
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=2)
    try:
        head = ProjectionHead(2, 2, 2, 3)
        head.update_centre(torch.full((1, 3), 1.0), 0.5)
    finally:
        dist.destroy_process_group()
    # Half of the mean of 1, 2, 2, 2.
    assert_close(head.centre, torch.full((3,), 1.75 / 2))
    assert worker.wait(timeout=60) == 0


def test_half_precision_leaves_the_centre_and_the_cosines_fine(head):
    x = torch.randn(B, C)
    head.update_centre(torch.randn(B, K), 0.5)
    half = copy.deepcopy(head).to(torch.bfloat16)
    assert torch.equal(half.centre, head.centre) and half.centre.dtype == torch.float32
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    y = half(x.bfloat16())
    assert y.dtype == torch.float32
    # bfloat16 keeps 8 bits, and errors of the MLP's three layers add up.
    assert_close(y, head(x), atol=0.03, rtol=0)
    y.sum().backward()
    assert half.prototypes.grad.dtype == torch.bfloat16


def test_a_copy_is_a_head_of_its_own(head):
    twin = copy.deepcopy(head)
    x = torch.randn(B, C)
    before = twin(x)
    assert torch.equal(before, head(x))
    with torch.no_grad():
        head.prototypes.add_(torch.randn(K, BOTTLENECK))
    head.update_centre(torch.randn(B, K), 0.5)
    assert torch.equal(twin(x), before) and not twin.centre.any()


@pytest.mark.parametrize("sizes", [(0, 8, 17), (20, 0, 17), (20, 8, 0)])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match="must be at least 1, not 0"):
        ProjectionHead(C, *sizes)
