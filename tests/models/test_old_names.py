"""Checkpoints from before layers had names, when they were numbered.

fairseq-train wrote both with the code of that time: a translator of three updates, and a classifier
that was pre-trained for two. Under "said" is what that code answered to the inputs below.
"""

from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from torch.testing import assert_close

from resmlp_mt.analysis.matrices import read_matrices
from resmlp_mt.checkpoints.average import average_checkpoints
from resmlp_mt.files.finding import PRETRAINED

OLD = {kind: Path(__file__).parent / f"numbered/{kind}.pt" for kind in ("text", "image")}
INPUTS = {
    "text": tuple(
        rows and torch.tensor(rows)
        for rows in ([[4, 5, 6, 2], [1, 7, 8, 2]], None, [[2, 4, 5], [2, 6, 7]])
    ),
    "image": (torch.linspace(-1, 1, 3 * 16 * 16, dtype=torch.float64).view(1, 3, 16, 16),),
}
every_kind = pytest.mark.parametrize("kind", OLD)


@pytest.fixture
def load(tmp_path):
    """load(path): the model in float64, as fairseq loads it."""
    for lang in "ab":
        (tmp_path / f"dict.{lang}.txt").write_text("".join(f"word{i} 1\n" for i in range(12)))

    def load(path: Path) -> torch.nn.Module:
        where = {"data": str(tmp_path), "source_lang": "a", "target_lang": "b"}
        (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(path)], where)
        return model.double().eval()

    return load


def numbers(names) -> list[str]:
    """Names that end in the number of a layer, and weight or bias."""
    return [name for name in names if name.split(".")[-2].isdigit()]


@every_kind
def test_an_old_checkpoint_answers_as_it_did(kind, load):
    written = torch.load(OLD[kind], weights_only=True)
    model = load(OLD[kind])
    assert_close(model(*INPUTS[kind])[0], written["said"] if kind == "text" else written["said"][0])
    # The optimizer's state has no names: it goes by the order of the weights.
    shapes = [tensor.shape for tensor in written["model"].values()]
    assert [tensor.shape for tensor in model.state_dict().values()] == shapes
    assert numbers(written["model"]) and not numbers(model.state_dict())


@every_kind
def test_old_weights_load_into_a_model_by_hand(kind, load):
    model = load(OLD[kind])
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.data.zero_()
    model.load_state_dict(torch.load(OLD[kind], weights_only=True)["model"])
    assert_close(dict(model.state_dict()), expected)


@every_kind
def test_old_and_new_checkpoints_are_averaged_with_their_moving_averages(kind, load, tmp_path):
    new = torch.load(OLD[kind], weights_only=True)
    new["model"] = load(OLD[kind]).float().state_dict()
    state = checkpoint_utils.load_checkpoint_to_cpu(str(OLD[kind]))
    assert state["extra_state"]["ema"].keys() == new["model"].keys()
    torch.save(new, tmp_path / "new.pt")
    average_checkpoints([OLD[kind], tmp_path / "new.pt"], tmp_path / "mean.pt")
    assert_close(dict(load(tmp_path / "mean.pt").float().state_dict()), dict(new["model"]))


@pytest.mark.parametrize(
    "path", [*OLD.values(), *PRETRAINED.glob("*/model.pt")], ids=lambda path: str(path.parent.name)
)
def test_the_matrices_of_old_and_of_shipped_models_are_found(path):
    weights = torch.load(path, weights_only=True)["model"]
    for part in read_matrices(path)[1]:
        side = "" if part.name == "image" else f"{part.name}."
        for i, layer in enumerate(part.layers):
            for letter, names in {"B": ("0", "fc1"), "C": ("3", "fc2")}.items():
                paths = (f"{side}blocks.{i}.mix_channels.{name}.weight" for name in names)
                (found,) = weights.keys() & paths
                assert torch.equal(layer[letter], weights[found].float())
