"""The package from Python: its names, their types, and the examples in its docstrings."""

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import resmlp_mt

PACKAGE = Path(resmlp_mt.__file__).parent
EXAMPLES = [path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples_in_docstrings_say_what_happens(path):
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


def test_public_names_are_listed_for_people_and_for_type_checkers():
    names = ["Classifier", "Hypothesis", "Prediction", "SearchOptions", "Translator", "UserError"]
    assert resmlp_mt.__all__ == names
    assert {*names, "__version__"} <= {*dir(resmlp_mt)}
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    checked = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names}
    assert sorted(checked) == names
    for name, (module, original) in checked.items():
        assert getattr(resmlp_mt, name) is getattr(importlib.import_module(module), original)
    with pytest.raises(AttributeError, match="module 'resmlp_mt' has no attribute 'Translater'"):
        resmlp_mt.Translater  # noqa: B018


def test_names_bring_no_more_than_they_need():
    code = """
import sys
import resmlp_mt
from resmlp_mt import SearchOptions, UserError
dir(resmlp_mt)
assert not {"numpy", "PIL", "torch", "fairseq"} & {*sys.modules}
from resmlp_mt import *
assert Hypothesis("a", 0.0) and Prediction(0, "a", 1.0) and Classifier and Translator
assert not {"torch", "fairseq"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", resmlp_mt.__all__)
def test_all_that_is_public_says_its_types(name):
    assert (PACKAGE / "py.typed").is_file()
    # What is written in Python: an exception has no more than Python's own.
    members = inspect.getmembers(
        getattr(resmlp_mt, name),
        lambda member: inspect.isfunction(member) or inspect.ismethod(member),
    )
    public = [(key, value) for key, value in members if key[0] != "_" or key == "__init__"]
    assert public or name == "UserError"
    for key, method in public:
        signature = inspect.signature(method)
        assert key == "__init__" or signature.return_annotation is not signature.empty, key
        for parameter in list(signature.parameters.values())[inspect.isfunction(method) :]:
            assert parameter.annotation is not parameter.empty, f"{key}: {parameter}"
