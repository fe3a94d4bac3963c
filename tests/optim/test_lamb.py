"""--optimizer lamb without apex, against its equations, and timm's where it can be imported."""

from argparse import ArgumentParser, Namespace

import pytest
import torch

from resmlp_mt.optim.lamb import FairseqLAMB

RATE, BETAS, EPS = 0.01, (0.9, 0.999), 1e-8
every_form = pytest.mark.parametrize(
    "decay, corrects", [(0.2, True), (0.2, False), (0.0, True), (0.0, False)]
)


def weights():
    torch.manual_seed(5)
    drawn = [torch.randn(3, 4), 50 * torch.randn(5), torch.zeros(2)]
    return [weight.requires_grad_() for weight in drawn]


def gradients(step):
    torch.manual_seed(step)
    # The norm of all of them is above 1, and in the last step below it.
    return [(3 if step < 3 else 0.01) * torch.randn_like(weight) for weight in weights()]


def build(params, decay, corrects):
    flags = dict(lr=[RATE], lamb_betas=str(BETAS), lamb_eps=EPS, weight_decay=decay)
    return FairseqLAMB(Namespace(**flags, lamb_no_bias_correction=not corrects), params)


def train(optimizer, params, steps=range(4)):
    for step in steps:
        for weight, gradient in zip(params, gradients(step), strict=True):
            weight.grad = gradient
        optimizer.step()
    return [weight.detach() for weight in params]


@every_form
def test_updates_follow_the_equations(decay, corrects):
    # arXiv 1904.00962, algorithm 2, with gradients of a norm of 1 at most.
    naive = [weight.detach().clone() for weight in weights()]
    means, squares = [torch.zeros_like(w) for w in naive], [torch.zeros_like(w) for w in naive]
    for step in range(4):
        given = gradients(step)
        norm = sum(g.square().sum() for g in given).sqrt()
        for i, gradient in enumerate(given):
            gradient = gradient / max(norm, 1)
            means[i] = 0.9 * means[i] + 0.1 * gradient
            squares[i] = 0.999 * squares[i] + 0.001 * gradient**2
            mean, square = means[i], squares[i]
            if corrects:
                mean, square = mean / (1 - 0.9 ** (step + 1)), square / (1 - 0.999 ** (step + 1))
            update = mean / (square.sqrt() + EPS) + decay * naive[i]
            adapts = decay > 0 and naive[i].norm() > 0
            ratio = naive[i].norm() / update.norm() if adapts else 1
            naive[i] = naive[i] - RATE * ratio * update
    params = weights()
    torch.testing.assert_close(train(build(params, decay, corrects), params), naive)


@every_form
def test_updates_are_those_of_timm(timm, decay, corrects):
    from timm.optim import Lamb

    ours, theirs = weights(), weights()
    flags = dict(lr=RATE, betas=BETAS, eps=EPS, weight_decay=decay, bias_correction=corrects)
    torch.testing.assert_close(
        train(build(ours, decay, corrects), ours), train(Lamb(theirs, **flags), theirs)
    )


def test_it_goes_on_where_it_was_saved_with_the_flags_of_today():
    at_once = weights()
    expected = train(build(at_once, 0.2, True), at_once)
    params = weights()
    first = build(params, 0.2, True)
    train(first, params, range(2))
    saved = first.state_dict()
    del saved["param_groups"][0]["bias_correction"]  # as before there was a choice
    later = build(params, 0.2, True)
    later.load_state_dict(saved, later.optimizer_config)
    torch.testing.assert_close(train(later, params, range(2, 4)), expected)
    other = build(params, 0.2, False)
    other.load_state_dict(first.state_dict(), other.optimizer_config)
    assert other.param_groups[0]["bias_correction"] is False


def test_bias_is_corrected_unless_told_otherwise():
    parser = ArgumentParser()
    FairseqLAMB.add_args(parser)
    for flags, corrects in ([], True), (["--lamb-no-bias-correction"], False):
        args = parser.parse_args(flags)
        args.lr = [RATE]
        assert FairseqLAMB(args, weights()).optimizer_config["bias_correction"] is corrects
