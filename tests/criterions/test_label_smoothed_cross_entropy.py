"""The loss without the logits, against fairseq's own criterion."""

from types import SimpleNamespace

import pytest
import torch
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.distributed import ModuleProxyWrapper
from fairseq.models.lstm import LSTMModel, base_architecture
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import tiny_architecture
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from resmlp_mt.criterions.chunked_loss import FEW, chunked_cross_entropy
from resmlp_mt.criterions.label_smoothed_cross_entropy import ChunkedCrossEntropyCriterion
from resmlp_mt.errors import UserError

SHARED = {"share_decoder_input_output_embed": True}
ACROSS = {"share_all_embeddings": True}


def build_transformer(task, **flags):
    args = SimpleNamespace(encoder_layers=1, decoder_layers=1, dropout=0.0, **flags)
    tiny_architecture(args)
    args.dropout = 0.0
    return TransformerModel.build_model(args, task)


def make_batch(symbols):
    """Four sentences of 2 to 7 words, and padding."""
    target = torch.randint(symbols.nspecial, len(symbols), (4, 7))
    for row, length in enumerate((7, 2, 5, 3)):
        target[row, length - 1], target[row, length:] = symbols.eos(), symbols.pad()
    source = torch.randint(symbols.nspecial, 17, (4, 6))
    given = {"src_tokens": source, "src_lengths": torch.full((4,), 6)}
    words = target.ne(symbols.pad()).sum().item()
    shifted = target.roll(1, 1).masked_fill(target.eq(symbols.pad()), symbols.pad())
    shifted[:, 0] = symbols.eos()
    return {
        "target": target,
        "ntokens": words,
        "net_input": {**given, "prev_output_tokens": shifted},
    }


@pytest.fixture
def in_float64(monkeypatch):
    """fairseq's criterion takes logarithms in fp32, whatever the model computes in."""
    monkeypatch.setattr(utils, "log_softmax", lambda x, dim, onnx_trace=False: x.log_softmax(dim))


@pytest.mark.parametrize(
    ("family", "sharing", "chunk", "flags"),
    [
        ("resmlp", ACROSS, 4, (False, 0.1)),  # 17 words: four chunks and a word
        ("resmlp", SHARED, 17, (True, 0.0)),
        ("resmlp", {}, 3, (False, 0.3, 1)),
        ("resmlp", {}, 1000, (False, 0.1, 2)),
        ("resmlp", {}, 4, (False, 0.1, 7)),  # nothing is left
        ("transformer", SHARED, 5, (False, 0.1)),
        ("transformer", {}, 0, (True, 0.2, 1)),
    ],
)
def test_it_is_the_criterion_of_fairseq_in_values_gradients_and_logs(
    family, sharing, chunk, flags, task, build_model, randomised, in_float64
):
    given = task(joined=sharing is ACROSS)
    sizes = {"decoder_embed_dim": 16} if sharing is ACROSS else {}
    if family == "resmlp":
        model = build_model("resmlp_plus_tiny", given, mixing_heads=2, **sizes, **sharing)
    else:
        model = randomised(build_transformer(given, **sharing))
    batch = make_batch(given.target_dictionary)
    found = {}
    for kind, more in (
        (LabelSmoothedCrossEntropyCriterion, {}),
        (
            ChunkedCrossEntropyCriterion,
            {"chunk_tokens": chunk},
        ),
    ):
        criterion = kind(given, *flags, report_accuracy=True, **more)
        loss, size, log = criterion(model, batch)
        model.zero_grad()
        (3 * loss).backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        with torch.no_grad():
            scored = criterion(model, batch)[0]
        each = criterion(model, batch, reduce=False)[0].detach()
        found[kind] = [loss.detach(), size, log, gradients, scored, each]
    expected, ours = found.values()
    assert "decoder.output.weight" in gradients or sharing or family == "transformer"
    assert_close(ours, expected, rtol=1e-10, atol=1e-12)


@pytest.fixture
def alone_together(tmp_path):
    """A group of workers with one in it."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("find_unused", [False, True])
@pytest.mark.parametrize("sharing", [{}, SHARED], ids=["apart", "shared"])
def test_workers_see_the_gradients_of_the_output_matrix(
    find_unused, sharing, task, build_model, alone_together
):
    given = task()
    model, batch = build_model(**sharing), make_batch(given.target_dictionary)
    workers = DistributedDataParallel(model, find_unused_parameters=find_unused)
    found = []
    for each in model, ModuleProxyWrapper(workers), ModuleProxyWrapper(workers):
        model.zero_grad()
        ChunkedCrossEntropyCriterion(given, False, 0.1, chunk_tokens=5)(each, batch)[0].backward()
        found.append(model.decoder.output.weight.grad.clone())
    for gradient in found[1:]:
        assert_close(gradient, found[0])


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that is computed meanwhile."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        sizes = [x.numel() for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        self.numbers = max(self.numbers, *sizes, 0)
        return result


def test_no_more_logits_than_those_of_a_chunk_are_held(task, build_model):
    given = task()
    model, batch = build_model(), make_batch(given.target_dictionary)
    # Wide beside the model: nothing but the matrix and its gradient has more numbers than a chunk.
    entries = 20_000
    model.decoder.output = torch.nn.Linear(24, entries, bias=False).double()
    for kind, rows in (ChunkedCrossEntropyCriterion, 24), (LabelSmoothedCrossEntropyCriterion, 28):
        with Largest() as largest:
            kind(given, False, 0.1)(model, batch)[0].backward()
        assert largest.numbers == rows * entries


@pytest.mark.parametrize("tokens", [FEW - 1, FEW, 2 * FEW + 3])
def test_chunks_of_many_tokens_have_the_loss_and_the_gradients_of_all_logits(tokens):
    entries, smoothing = 50, 0.1
    inputs = [torch.randn(n, 8, dtype=torch.float64, requires_grad=True) for n in (tokens, entries)]
    target = torch.randint(entries, (tokens,))
    logits = inputs[0] @ inputs[1].T
    shares = torch.full_like(logits, smoothing / (entries - 1))
    shares[range(tokens), target] = 1 - smoothing
    expected = -(shares * logits.log_softmax(1)).sum()
    gradients = torch.autograd.grad(expected, inputs)
    for chunk in (tokens, FEW + 1, FEW // 2):
        loss, nll, hits = chunked_cross_entropy(*inputs, target, smoothing, chunk, count_hits=True)
        assert_close(loss, expected)
        assert_close(nll, torch.nn.functional.cross_entropy(logits, target, reduction="sum"))
        assert hits == (logits.argmax(1) == target).sum()
        for ours, theirs in zip(torch.autograd.grad(loss, inputs), gradients, strict=True):
            assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [0.01, 1.0, 300.0])  # of the features
def test_16_bits_are_those_of_the_inputs_alone(dtype, size):
    """Products are in 16 bits. Neither sums nor small probabilities are."""
    entries, tokens = 4000, 600
    features = (size * torch.randn(tokens, 8)).to(dtype)
    weight = (torch.randn(entries, 8) / size).to(dtype)
    target = torch.full((tokens,), 7)  # the gradients of one row add up
    found = []
    for kind in (torch.float64, dtype):
        inputs = [t.detach().to(kind).requires_grad_() for t in (features, weight)]
        loss, nll, _ = chunked_cross_entropy(*inputs, target, 0.1, 256)
        loss.backward()
        assert all(t.grad.dtype == kind for t in inputs)
        found.append([loss.detach(), nll, inputs[0].grad, inputs[1].grad, inputs[1].grad[8:]])
    for expected, ours in zip(*found, strict=True):
        error = (ours.double() - expected).norm() / expected.norm()
        assert error < 4 * torch.finfo(dtype).eps


def test_under_autocast_it_computes_in_16_bits_and_gives_gradients_in_fp32():
    features, weight = (torch.randn(n, 8, requires_grad=True) for n in (20, 50))
    target = torch.randint(50, (20,))
    expected = chunked_cross_entropy(features, weight, target, 0.1, 6)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = chunked_cross_entropy(features, weight, target, 0.1, 6)[0]
    loss.backward()
    assert 0 < abs(loss - expected) < 0.02 * expected
    assert features.grad.dtype == weight.grad.dtype == torch.float32


def test_gradients_are_fetched_once():
    features, weight = (torch.randn(n, 8, requires_grad=True) for n in (2, 5))
    loss = chunked_cross_entropy(features, weight, torch.tensor([0, 4]))[0]
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="fetched before"):
        loss.backward()


def test_models_whose_logits_are_more_than_a_product_are_refused(task):
    given = task()
    adaptive = build_transformer(given, adaptive_softmax_cutoff="5,10")
    sizes = SimpleNamespace(criterion="", max_source_positions=9, max_target_positions=9)
    base_architecture(sizes)
    for model in adaptive, LSTMModel.build_model(sizes, given):
        with pytest.raises(UserError, match="take --criterion label_smoothed_cross_entropy"):
            ChunkedCrossEntropyCriterion(given, False, 0.1)(model, {"net_input": {}})
    with pytest.raises(UserError, match="--chunk-tokens .* -1"):
        ChunkedCrossEntropyCriterion(given, False, 0.1, chunk_tokens=-1)
