"""--optimizer muon against singular values, torch's AdamW, and fairseq's own bookkeeping."""

import importlib
from types import SimpleNamespace

import pytest
import torch
from torch import multiprocessing

from resmlp_mt.errors import UserError
from resmlp_mt.nn.marks import mark_maps, mark_undecayed
from resmlp_mt.optim import muon
from resmlp_mt.optim.muon import FairseqMuon, Muon, orthogonalize, orthogonalize_all

CFG = SimpleNamespace(
    lr=[3e-2], adam_betas="(0.9, 0.98)", adam_eps=1e-8, weight_decay=0.1, muon_momentum=0.9
)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.embed = torch.nn.Embedding(9, 6)
        self.wide, self.tall = torch.nn.Linear(6, 12), torch.nn.Linear(12, 6, bias=False)
        self.output_projection = torch.nn.Linear(6, 9, bias=False)
        mark_maps(self)
        mark_undecayed(self)


def step(optimizer, model, number):
    torch.manual_seed(number)
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)
    optimizer.step()


def test_a_map_moves_along_the_singular_vectors_of_its_momentum_and_decays(monkeypatch):
    monkeypatch.setattr(muon, "multiplies_bf16", lambda: False)
    model = Model()
    optimizer = FairseqMuon(CFG, model.parameters())
    mean = torch.zeros(12, 6)
    for number in range(3):
        before = model.wide.weight.detach().clone()
        step(optimizer, model, number)
        gradient = model.wide.weight.grad
        mean = 0.9 * mean + 0.1 * gradient
        u, _, v = torch.linalg.svd(0.9 * mean + 0.1 * gradient, full_matrices=False)
        moved = before * (1 - 3e-2 * 0.1) - model.wide.weight.detach()
        lengths = u.T @ moved @ v.T / (3e-2 * 0.2 * 12**0.5)
        assert ((lengths.diagonal() > 0.6) & (lengths.diagonal() < 1.3)).all()
        assert (lengths - lengths.diagonal().diag()).abs().max() < 1e-4


@pytest.mark.parametrize("shape", [(6, 12), (12, 6), (7, 7)])
def test_it_is_torchs_muon_but_for_the_rounding(shape):
    torch.manual_seed(3)
    weight = torch.nn.Parameter(torch.randn(shape))
    twin, still = torch.nn.Parameter(weight.detach().clone()), torch.nn.Parameter(torch.ones(2, 2))
    settings = {"lr": 3e-2, "weight_decay": 0.1, "momentum": 0.9}
    ours = Muon([weight, still], **settings)
    torchs = torch.optim.Muon([twin], **settings, adjust_lr_fn="match_rms_adamw")
    for _ in range(4):
        weight.grad = twin.grad = torch.randn(shape)
        before = weight.detach().clone()
        ours.step(), torchs.step()
        # torch's is in bf16, of which a value has 8 bits.
        largest = (weight - before).abs().max().item()
        torch.testing.assert_close(weight, twin, rtol=0, atol=0.06 * largest)
        twin.data.copy_(weight)
    assert still.equal(torch.ones(2, 2))  # it had no gradient


@pytest.mark.parametrize("shape", [(16, 64), (16, 24), (16, 16)])
def test_it_is_the_iteration_as_it_is_written_whatever_the_shape(shape):
    torch.manual_seed(4)
    matrices = torch.randn(3, *shape) @ torch.diag(torch.logspace(0, -6, shape[1]))
    for matrix, found in zip(matrices, orthogonalize(matrices), strict=True):
        x = matrix.double() / matrix.double().norm()
        for _ in range(5):
            x = 3.4445 * x - 4.7750 * x @ x.T @ x + 2.0315 * x @ x.T @ x @ x.T @ x
        torch.testing.assert_close(found.double(), x, rtol=0, atol=1e-3)


@pytest.mark.parametrize("multiplies", [False, True])
def test_each_of_many_matrices_has_singular_values_near_one_and_its_own_vectors(
    multiplies, monkeypatch
):
    monkeypatch.setattr(muon, "multiplies_bf16", lambda: multiplies)
    torch.manual_seed(6)
    shapes = [(16, 64), (7, 7), (64, 16), (16, 64), (7, 7), (16, 24)]
    matrices = [torch.randn(shape) for shape in shapes]
    for matrix, found in zip(matrices, orthogonalize_all(matrices), strict=True):
        assert found.shape == matrix.shape
        assert found.dtype == (torch.bfloat16 if multiplies else torch.float32)
        u, _, v = torch.linalg.svd(matrix, full_matrices=False)
        lengths = u.T @ found.float() @ v.T
        assert ((lengths.diagonal() > 0.6) & (lengths.diagonal() < 1.3)).all()
        # A value in bf16 has 8 bits.
        others = (lengths - lengths.diagonal().diag()).abs().max()
        assert others < (0.06 if multiplies else 1e-4)


def test_a_matrix_of_zeros_stays_one():
    assert orthogonalize(torch.zeros(2, 3, 4)).equal(torch.zeros(2, 3, 4))


def test_all_other_weights_move_as_in_adamw():
    model, twin = Model(), Model()
    optimizer = FairseqMuon(CFG, model.parameters())
    decayed = [twin.embed.weight, twin.output_projection.weight]
    rates = {"lr": 3e-2, "betas": (0.9, 0.98)}
    adamw = [
        torch.optim.AdamW(decayed, weight_decay=0.1, **rates),
        torch.optim.AdamW([twin.wide.bias], weight_decay=0.0, **rates),
    ]
    for number in range(4):
        for group in [*optimizer.param_groups, *(g for part in adamw for g in part.param_groups)]:
            group["lr"] = 3e-2 / (1 + number)
        step(optimizer, model, number)
        for weight, other in zip(model.parameters(), twin.parameters(), strict=True):
            other.grad = weight.grad
        for part in adamw:
            part.step()
    for name in ("embed.weight", "output_projection.weight", "wide.bias"):
        torch.testing.assert_close(model.get_parameter(name), twin.get_parameter(name))


def test_it_goes_on_where_it_was_saved_with_the_rate_of_today():
    whole, parts = Model(), Model()
    optimizer = FairseqMuon(CFG, whole.parameters())
    before, after = (FairseqMuon(CFG, parts.parameters()) for _ in range(2))
    for number in range(4):
        step(optimizer, whole, number)
    for number in range(2):
        step(before, parts, number)
    after.load_state_dict(before.state_dict(), {"lr": 3e-2})
    for number in range(2, 4):
        step(after, parts, number)
    torch.testing.assert_close(list(parts.parameters()), list(whole.parameters()), rtol=0, atol=0)
    after.load_state_dict(before.state_dict(), {"lr": 0.0})
    kept = parts.tall.weight.detach().clone()
    step(after, parts, 0)
    assert after.get_lr() == 0 and parts.tall.weight.equal(kept)


def test_workers_share_the_work_and_come_to_the_same_weights(tmp_path):
    multiprocessing.spawn(train_as_worker, (tmp_path,), nprocs=2)
    alone = Model()
    optimizer = FairseqMuon(CFG, alone.parameters())
    for number in range(3):
        step(optimizer, alone, number)
    for rank in (0, 1):
        found = torch.load(tmp_path / f"{rank}.pt")
        torch.testing.assert_close(found, alone.state_dict())


def train_as_worker(rank, folder):
    # Imported later, as optimizers do, it would keep the group, and a thread of that could abort
    # the exit.
    importlib.import_module("torch.distributed.nn")
    torch.distributed.init_process_group(
        "gloo", f"file://{folder}/meeting", rank=rank, world_size=2
    )
    model = Model()
    optimizer = FairseqMuon(CFG, model.parameters())
    for number in range(3):
        step(optimizer, model, number)
    torch.save(model.state_dict(), folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()


def test_matrices_that_no_task_marked_are_refused():
    with pytest.raises(UserError, match="this task does not say which matrices it is for"):
        FairseqMuon(CFG, [torch.nn.Parameter(torch.ones(3, 4))])


def test_where_no_matrix_is_a_map_all_weights_are_adamws():
    table = torch.nn.Embedding(3, 4)
    mark_maps(table)
    (group,) = FairseqMuon(CFG, table.parameters()).param_groups
    assert "betas" in group and group["params"][0] is table.weight


def test_it_calls_nothing_twice():
    with pytest.raises(ValueError, match="closure"):
        FairseqMuon(CFG, Model().parameters()).optimizer.step(lambda: None)


@pytest.mark.parametrize("momentum", [-0.1, 1.0, 2.0, float("nan")])
def test_a_momentum_that_grows_or_turns_is_refused(momentum):
    cfg = SimpleNamespace(**vars(CFG) | {"muon_momentum": momentum})
    with pytest.raises(UserError, match="--muon-momentum is at least 0 and below 1, not"):
        FairseqMuon(cfg, Model().parameters())
