"""Imports point down, as in the table below."""

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

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
BELOW["export"] = BELOW["engines"] | {"engines"}
BELOW["translating"] = BELOW["engines"] | {"engines", "text", ""}
BELOW["serving"] = BELOW["translating"] | {"translating"}
BELOW["cli"] = BELOW["export"] | BELOW["serving"] | {"analysis", "export", "serving"}
BELOW[""] = {"engines", "errors", "translating"}
# Of `engines`, each may import the ones before it.
IN_ENGINES = ["search", "kernels"]

# Packages that a room may import besides the standard library and this package.
OUTSIDE = {"nn": {"torch"}, "errors": set()}
# fairseq registers the plugin, and that imports what has not yet been executed.
NOT_OUTSIDE = {"data": {"fairseq"}}


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


def faults_of(module: Path) -> set[str]:
    """The imports of a module that its room does not allow."""
    where = module.relative_to(PACKAGE)
    room = where.parts[0].removesuffix(".py").replace("__init__", "")
    if room not in BELOW:
        return {f"a new room: say in BELOW what {room} may import"}
    below, later = BELOW[room] | {room}, []
    if room == "engines" and where.parts[1] in IN_ENGINES:
        later = IN_ENGINES[IN_ENGINES.index(where.parts[1]) + 1 :]

    def is_allowed(name: str) -> bool:
        root, *within = name.split(".")
        if root == PACKAGE.name:
            at_top = within[0] if within and within[0] in BELOW else ""
            return at_top in below and not (at_top == "engines" and {*within[1:2]} & {*later})
        known = root in sys.stdlib_module_names | OUTSIDE.get(room, {root})
        return known and root not in NOT_OUTSIDE.get(room, ())

    return {name for name in imports_of(module) if not is_allowed(name)}


def test_imports_point_down():
    faults = {
        str(module.relative_to(PACKAGE)): sorted(found)
        for module in sorted(PACKAGE.rglob("*.py"))
        if (found := faults_of(module))
    }
    assert faults == {}


def test_nn_and_data_can_be_imported_without_fairseq():
    code = "import sys; sys.modules['fairseq'] = None"
    code += "; import resmlp_mt.nn.blocks, resmlp_mt.data.views"
    subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, check=True)


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
