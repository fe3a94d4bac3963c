"""Imports point down, as in the table below."""

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "resmlp_mt"

# What each room may import of the package besides itself; "" is the package's own __init__.
BELOW = {
    "errors": set(),
    "extras": {"errors"},
    "nn": {"errors"},
    "optim": {"compat", "errors", "nn"},
    "files": {"errors"},
    "text": set(),
    "data": {"errors", "extras", "files", "text"},
    "criterions": {"errors"},
    "compat": {"errors", "files", "nn", "data"},
    "models": {"errors", "files", "nn", "data", "compat"},
    "tasks": {"errors", "extras", "files", "nn", "data", "models", "criterions", "compat"},
    "plugin": {"compat", "criterions", "engines", "models", "optim", "tasks"},
}
BELOW["checkpoints"] = BELOW["tasks"] | {"tasks"}
for room in ("engines", "analysis"):
    BELOW[room] = BELOW["checkpoints"] | {"checkpoints"}
BELOW["engines"] |= {"text"}
BELOW["export"] = BELOW["engines"] | {"engines"}  # a shortlist is learned with the export's codec
BELOW["translating"] = BELOW["engines"] | {"engines", ""}
BELOW["serving"] = BELOW["translating"] | {"translating"}
BELOW["cli"] = BELOW["export"] | BELOW["serving"] | {"analysis", "export", "serving"}
BELOW[""] = {"engines", "errors", "translating"}
# Of `engines`, each may import the ones before it.
IN_ENGINES = ["search", "onnx", "compiled_code"]

MODULES = sorted(PACKAGE.rglob("*.py"))
every_module = pytest.mark.parametrize(
    "module", MODULES, ids=[str(path.relative_to(PACKAGE)) for path in MODULES]
)


def room_of(module: Path) -> str:
    first = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imports_of(module: Path) -> set[str]:
    """Full names, those within functions too; relative imports made absolute."""
    names, parts = set(), (PACKAGE.name, *module.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) - node.level] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def rooms_imported_by(module: Path) -> set[str]:
    within = [
        name.split(".")[1:] for name in imports_of(module) if name.split(".")[0] == PACKAGE.name
    ]
    return {name[0] if name and name[0] in BELOW else "" for name in within}


@every_module
def test_imports_point_down(module):
    room = room_of(module)
    assert room in BELOW, f"a new room: say in BELOW what {room} may import"
    assert rooms_imported_by(module) <= BELOW[room] | {room}


@pytest.mark.parametrize("room", IN_ENGINES)
def test_imports_point_down_in_engines(room):
    """Where the modules beside these rooms stand above and below them."""
    below = IN_ENGINES[: IN_ENGINES.index(room) + 1]
    for module in PACKAGE.glob(f"engines/{room}/*.py"):
        names = [name.split(".")[1:] for name in imports_of(module)]
        rooms = {name[1] for name in names if len(name) > 2 and name[0] == "engines"}
        assert rooms & set(IN_ENGINES) <= set(below), module.name


@pytest.mark.parametrize("module", sorted(PACKAGE.glob("nn/*.py")), ids=lambda path: path.name)
def test_nn_imports_torch_and_the_standard_library_alone(module):
    roots = {name.split(".")[0] for name in imports_of(module)}
    assert roots - sys.stdlib_module_names <= {"torch", PACKAGE.name}


@pytest.mark.parametrize("module", sorted(PACKAGE.glob("data/*.py")), ids=lambda path: path.name)
def test_data_imports_no_fairseq(module):
    """Which registers the plugin, and that imports what has not yet been executed."""
    assert not {name for name in imports_of(module) if name.split(".")[0] == "fairseq"}


def test_errors_imports_nothing():
    assert not imports_of(PACKAGE / "errors.py")


@pytest.mark.parametrize("module", ["nn.blocks", "data.views"])
def test_nn_and_data_can_be_imported_without_fairseq(module):
    code = f"import sys; sys.modules['fairseq'] = None; import resmlp_mt.{module}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# A fork for each module, as if the module were imported first. In each fairseq is imported when the
# package asks for it, and registers the plugin then; but its modules are there already.
FIRST = """
import gc, importlib, os, sys
from importlib.machinery import ModuleSpec
import fairseq

loaded = {name: sys.modules.pop(name) for name in [*sys.modules] if name.split(".")[0] == "fairseq"}

class Loaded:
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "fairseq" else None

    def create_module(self, spec):
        return loaded[spec.name]

    def exec_module(self, module):
        sys.modules.update(loaded)

sys.meta_path.insert(0, Loaded())
assert not any(name.startswith("resmlp_mt") for name in sys.modules)
gc.freeze()
for name in sys.argv[1:]:
    if os.fork() == 0:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name.startswith("resmlp_mt"):  # else of an extra that is not installed
                print(name, error, flush=True)
        except Exception as error:
            print(name, error, flush=True)
        os._exit(0)
    os.wait()
print("done")
"""


def test_each_module_can_be_imported_first():
    """Whose import of fairseq registers the plugin, which must not need that module complete.

    Only modules that the plugin takes can fail so. Those of `compat` do; it alone imports them.
    Those of the other rooms but engines begin with their room, which imports them all.
    """
    rooms = sorted(BELOW["plugin"] - {"compat", "engines"})
    paths = [PACKAGE / room for room in rooms] + sorted(PACKAGE.glob("engines/**/*.py"))
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    assert "resmlp_mt.engines.compiled" in names
    done = subprocess.run(
        [sys.executable, "-c", FIRST, *names], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["done"], done.stdout + done.stderr


def test_scripts_and_examples_import_what_is_there():
    """Many of them run for hours, and no test runs those to their end."""
    root = PACKAGE.parent
    for path in [*root.glob("scripts/**/*.py"), *root.glob("examples/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGE.name):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    there = hasattr(module, alias.name) or find_spec(f"{node.module}.{alias.name}")
                    assert there, f"{path.relative_to(root)}: {alias.name}"
