import importlib.metadata

import pytest

from resmlp_mt import extras


@pytest.mark.parametrize("quote", ['"', "'"])
def test_without_a_checkout_the_packages_of_an_extra_are_named(monkeypatch, tmp_path, quote):
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    asked = ["torch>=2.6", *(f"{name}; extra == {quote}x{quote}" for name in ("ray[data]", "b"))]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: asked)
    assert extras.advise("x") == "pip install 'ray[data]' b"
    assert extras.advise() == "pip install 'torch>=2.6'"


def test_where_nothing_is_installed_setup_py_is_named(monkeypatch, tmp_path):
    def refuse(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    for name in ("requires", "metadata"):
        monkeypatch.setattr(importlib.metadata, name, refuse)
    assert extras.advise("x") == "install what setup.py asks for with [x]"
    assert extras.list_extras() == []


def test_in_a_checkout_the_command_can_be_copied(monkeypatch, tmp_path):
    (tmp_path / "my files").mkdir()
    (tmp_path / "my files" / "constraints.txt").touch()
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path / "my files")
    begun = f"cd '{tmp_path}/my files' && pip install -e "
    assert extras.advise("x") == f"{begun}'.[x]' -c constraints.txt"
    assert extras.advise() == f"{begun}. -c constraints.txt"


def test_what_is_always_needed_is_told_from_what_is_not():
    assert "fairseq is not installed: pip install ve-fairseq" in extras.explain_missing("fairseq")
    assert extras.explain_missing("resmlp_mt.nowhere") is extras.explain_missing(None) is None
