"""The messages where a package is missing."""

import importlib.metadata

import pytest

from resmlp_mt import extras


def test_without_a_checkout_the_packages_of_an_extra_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    asked = ["torch>=2.6", 'ray[data]; extra == "x"', "b; extra == 'x'"]
    asked += ["a; extra == 'x' and python_version < '3'", "c; sys_platform == 'z'"]  # not here
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: asked)
    assert extras.list_requirements("x") == ["ray[data]", "b"]
    assert extras.advise("x") == "pip install 'ray[data]' b"
    assert extras.advise() == "pip install 'torch>=2.6'"


def test_where_nothing_is_installed_setup_py_is_named(monkeypatch, tmp_path):
    def refuse(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    for name in ("requires", "metadata"):
        monkeypatch.setattr(importlib.metadata, name, refuse)
    assert "setup.py" in extras.advise("x") and extras.list_extras() == []
    assert "setup.py" in extras.explain_missing("torch")
    assert extras.explain_missing("resmlp_mt.nowhere") is extras.explain_missing(None) is None


def test_in_a_checkout_the_command_can_be_copied(monkeypatch, tmp_path):
    (tmp_path / "my files").mkdir()
    (tmp_path / "my files" / "constraints.txt").touch()
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path / "my files")
    begun = f"cd '{tmp_path}/my files' && pip install -e "
    assert extras.advise("x") == f"{begun}'.[x]' -c constraints.txt"
    assert extras.advise() == f"{begun}. -c constraints.txt"


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("PIL", ""),
        ("fairseq.models", "train"),
        ("onnxruntime", "onnx"),
        ("prometheus_client", "serve"),
    ],
)
def test_what_is_missing_is_named_with_the_smallest_extra_that_has_it(module, extra):
    advice = extras.advise(extra) if extra else "pip install pillow"
    assert advice in extras.explain_missing(module)
    assert extras.explain_missing("resmlp_mt.nowhere") is extras.explain_missing(None) is None


@pytest.mark.parametrize(
    ("python", "machine", "has"),
    [((3, 12), "x86_64", True), ((3, 13), "x86_64", False), ((3, 11), "aarch64", False)],
)
def test_where_fairseq_has_no_wheel_the_advice_makes_one(monkeypatch, python, machine, has):
    monkeypatch.setattr(extras.sys, "version_info", python)
    monkeypatch.setattr(extras.platform, "machine", lambda: machine)
    monkeypatch.setattr(extras.sys, "platform", "linux")
    assert ("resmlp_mt.compat.fairseq_wheel" in extras.advise("train")) == (not has)
    assert "fairseq_wheel" not in extras.advise("serve")
