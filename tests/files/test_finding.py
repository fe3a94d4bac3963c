import pytest

from resmlp_mt.errors import UserError
from resmlp_mt.files import finding
from resmlp_mt.files.finding import (
    PRETRAINED,
    find_checkpoint,
    find_export,
    locate_model,
)


def test_a_model_is_a_name_a_folder_or_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_checkpoint("cifar10") == PRETRAINED / "cifar10" / "model.pt"
    (tmp_path / "run").mkdir()
    for name in ("checkpoint_last.pt", "checkpoint_best.pt", "model.pt"):  # ever better
        (tmp_path / "run" / name).touch()
        assert find_checkpoint("run").name == name
    assert find_checkpoint(tmp_path / "run/checkpoint_last.pt").name == "checkpoint_last.pt"


def test_a_folder_of_data_does_not_hide_a_model_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cifar10/train").mkdir(parents=True)
    assert find_checkpoint("cifar10") == PRETRAINED / "cifar10" / "model.pt"
    assert locate_model("cifar10") == "cifar10"
    (tmp_path / "cifar10/checkpoint_best.pt").touch()
    assert find_checkpoint("cifar10").name == "checkpoint_best.pt"
    assert locate_model("cifar10") == str(tmp_path / "cifar10")


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(UserError, match="no checkpoint in this folder"):
        find_checkpoint(tmp_path)
    with pytest.raises(
        UserError, match="nix: no such model.*cifar10, de-en, en-de, multi30k-en-de"
    ):
        find_checkpoint("nix")
    for kind, name in {"text": "de-en, en-de, multi30k-en-de", "images": "cifar10"}.items():
        with pytest.raises(UserError, match=f"one of {name}$"):
            find_checkpoint("nix", kind)


def test_an_empty_name_is_not_the_working_folder(tmp_path, monkeypatch):
    for name in "model.pt", "export.json":
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for find in find_checkpoint, locate_model:
        with pytest.raises(UserError, match="name of the model is empty; name a folder"):
            find("")


def test_a_shipped_model_computes_as_an_export_on_cpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for device in ("auto", "cpu"):
        assert find_export("en-de", device) == PRETRAINED / "en-de"
    assert find_export("en-de", "cuda") is find_export("nix") is None
    assert find_export(PRETRAINED / "en-de" / "model.pt") is None
    (tmp_path / "en-de").mkdir()  # of data
    assert find_export("en-de") == PRETRAINED / "en-de"
    (tmp_path / "en-de/checkpoint_best.pt").touch()
    assert find_export("en-de") is None
    (tmp_path / "en-de/export.json").touch()
    assert find_export("en-de", "cuda").samefile(tmp_path / "en-de")


def test_without_its_checkpoint_a_shipped_model_says_where_that_is(tmp_path, monkeypatch):
    (tmp_path / "en-de").mkdir()
    (tmp_path / "en-de/export.json").touch()
    monkeypatch.setattr(finding, "PRETRAINED", tmp_path)
    assert locate_model("en-de") == "en-de"
    with pytest.raises(UserError, match="en-de: .*export alone.*pretrained/en-de/model.pt of"):
        find_checkpoint("en-de")
