"""What the package offers to Python: its types, and the examples in its docstrings."""

import doctest
import importlib
import inspect
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


@pytest.mark.parametrize("name", resmlp_mt.__all__)
def test_all_that_is_public_says_its_types(name):
    assert (PACKAGE / "py.typed").is_file()
    members = inspect.getmembers(getattr(resmlp_mt, name), inspect.isroutine)
    public = [(key, value) for key, value in members if key[0] != "_" or key == "__init__"]
    assert len(public) > 2
    for key, method in public:
        signature = inspect.signature(method)
        assert key == "__init__" or signature.return_annotation is not signature.empty, key
        for parameter in list(signature.parameters.values())[inspect.isfunction(method) :]:
            assert parameter.annotation is not parameter.empty, f"{key}: {parameter}"
