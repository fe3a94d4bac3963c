import pytest
import torch
from torch.testing import assert_close

from resmlp_mt.nn.dropout import Dropout

SHAPE = (33, 41, 59)  # not a multiple of four


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_of_p_is_dropped_and_the_rest_is_scaled_with_its_gradients(p, dtype):
    x = torch.ones(SHAPE, dtype=dtype, requires_grad=True)
    y = Dropout(p)(x)
    share = (y == 0).double().mean().item()
    # 80,000 draws: their share is within 6 standard deviations.
    assert share == pytest.approx(p, abs=6 * (p * (1 - p) / x.numel()) ** 0.5)
    assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / (1 - p)), rtol=1e-3, atol=0)
    noise = torch.randn_like(x)
    y.backward(noise)
    assert_close(x.grad, noise * y.detach())


def test_neighbours_are_dropped_independently():
    kept = (Dropout(0.3)(torch.ones(1_000_000)) != 0).double() - 0.7
    for distance in (1, 2, 3, 4, 8, 128):  # four features share a random number
        correlation = (kept[distance:] * kept[:-distance]).mean() / 0.21
        assert abs(correlation) < 6e-3


def test_a_seed_decides_the_masks_and_each_call_has_its_own():
    x, dropout = torch.ones(SHAPE), Dropout(0.5)
    torch.manual_seed(1)
    first, second = dropout(x), dropout(x)
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(first, dropout(x)) and torch.equal(second, dropout(x))


def test_the_backward_pass_needs_a_byte_for_each_feature():
    saved = []

    def keep(x):
        saved.append(x.nbytes)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        Dropout(0.1)(torch.ones(SHAPE, requires_grad=True))
    assert sum(saved) == torch.Size(SHAPE).numel()


@pytest.mark.parametrize("p, factor", [(0.0, 1), (1.0, 0), (1e-9, 1)])
def test_the_ends_of_its_range(p, factor):
    assert torch.equal(Dropout(p)(torch.ones(SHAPE)), factor * torch.ones(SHAPE))


def test_there_is_none_outside_of_training_and_none_of_nothing():
    x = torch.randn(SHAPE)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.5)(x[:0]).shape == (0, 41, 59)


def test_it_can_be_differentiated_twice():
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)

    def drop(x):
        torch.manual_seed(1)
        return Dropout(0.5)(x) ** 2

    assert torch.autograd.gradgradcheck(drop, x)


def test_parts_that_are_named_drop_in_every_mode():
    def drops(**flags):
        model = torch.nn.ModuleDict({"encoder": Dropout(0.5), "encoder2": Dropout(0.5)})
        for name, part in model.items():
            part.make_generation_fast_(name=name, **flags)
        model.eval()
        return [bool((part(torch.ones(99)) == 0).any()) for part in model.values()]

    assert drops() == [False, False] == drops(retain_dropout_modules="encoder")
    assert drops(retain_dropout=True) == [True, True]
    assert drops(retain_dropout=True, retain_dropout_modules="encoder") == [True, False]
    assert drops(retain_dropout=True, retain_dropout_modules=["encoder", "encoder2"]) == [True] * 2
