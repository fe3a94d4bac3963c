"""What an exported model does where torch and fairseq are not imported, or not installed."""

import importlib.util
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from cli.commands import ENVIRONMENT, ROOT, assert_refused, run, start

from resmlp_mt.cli import COMMANDS, passthrough

pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")

TEXT = "A man rides a bike. Two dogs play in the snow."
# All that README names for a small container, by the folders of their packages.
PACKAGES = ("numpy", "onnxruntime", "sentencepiece", "PIL")
# sitecustomize.py, which Python imports before all else.
GUARD = """
import sys
class Guard:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "fairseq"):
            raise AssertionError(f"{name} is imported")
sys.meta_path.insert(0, Guard())
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The environment of a process where importing torch or fairseq is an error."""
    folder = tmp_path_factory.mktemp("guard")
    (folder / "sitecustomize.py").write_text(GUARD)
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """A translator and a classifier, exported from those that come with the package."""
    folder = tmp_path_factory.mktemp("exports")
    run("resmlp-mt", "export", "multi30k-en-de", "--int8", "--out", folder / "translator")
    run("resmlp-mt", "export", "cifar10", "--out", folder / "classifier")
    return folder


@pytest.fixture(scope="module")
def picture(pictures):
    return next((pictures / "val").rglob("*.png"))


def test_the_guard_sees_torch(guarded):
    done = run(
        "resmlp-mt", "translate", "--model", "cifar10", "a", check=False, env=guarded, own=True
    )
    assert "AssertionError: torch is imported" in done.stderr


def test_no_help_imports_torch(guarded):
    code = """if True:
        import sys
        from resmlp_mt.cli import main
        for command in sys.argv[1:]:
            sys.argv = ["resmlp-mt", *command.split(), "--help"]
            try:
                main()
            except SystemExit as end:
                assert end.code == 0
    """
    done = run("python", "-c", code, "", *COMMANDS, env=guarded, own=True)
    assert done.stdout.count("usage: ") == 1 + len(COMMANDS)
    assert all(name in done.stdout for name in passthrough.PROGRAMS)


def test_what_needs_no_model_imports_no_torch(guarded, trained, raw, tmp_path):
    score = ["resmlp-mt", "score", raw / "test.de", "--ref", raw / "test.de"]
    assert "100.0" in run(*score, env=guarded, own=True).stdout
    run(
        "resmlp-mt",
        "curves",
        trained / "train.log",
        "--out",
        tmp_path / "x.png",
        env=guarded,
        own=True,
    )
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_an_exported_model_translates_and_classifies(guarded, exports, picture):
    command = ["resmlp-mt", "translate", "--model", exports / "translator", "--nbest", 3, TEXT]
    assert run(*command, env=guarded, own=True).stdout == run(*command).stdout != ""
    command = ["resmlp-mt", "classify", exports / "classifier", picture]
    assert run(*command, env=guarded, own=True).stdout == run(*command).stdout != ""


def test_an_exported_model_is_served(guarded, exports):
    command = ["resmlp-mt", "serve", exports / "translator", "--port", 0]
    server = start(*command, env=guarded)
    try:
        line = next(line for line in server.stdout if "translating at " in line)
        request = urllib.request.Request(
            f"{line.split()[-1]}/translate",
            b'{"text": "A man rides a bike."}',
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert b"Mann" in answer.read()
    finally:
        server.terminate()
        server.communicate()
    assert server.returncode == 0


def test_what_needs_fairseq_says_so(exports, small):
    sample = ["translate", "--model", exports / "translator", "--sampling", "a"]
    assert_refused(small(*sample), "more than a plain beam search", "torch", "not installed")
    assert_refused(small("translate", "--model", "multi30k-en-de", "a"), "torch", "not installed")
    assert_refused(small("train", "data-bin/x"), "fairseq is not installed")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """small(*words): `resmlp-mt` in an environment that has the wheel and few packages."""
    folder = tmp_path_factory.mktemp("small")
    # Else the project of that path would count as installed.
    apart = {"env": {k: v for k, v in ENVIRONMENT.items() if k != "PYTHONPATH"}, "cwd": folder}
    python = [sys.executable, "-m"]
    built = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT]
    subprocess.run([*python, "pip", *built], check=True, capture_output=True)
    subprocess.run([*python, "venv", "--without-pip", folder / "venv"], check=True)
    (site,) = folder.glob("venv/lib/python3*/site-packages")
    for package in PACKAGES:
        installed = Path(importlib.util.find_spec(package).origin).parent
        libraries = installed.parent.glob(f"{'pillow' if package == 'PIL' else package}.libs")
        for path in (installed, *libraries):
            (site / path.name).symlink_to(path)
    interpreter = folder / "venv" / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    install = ["pip", "--python", interpreter, "install", "--no-deps", "--no-index", wheel]
    subprocess.run([*python, *install], check=True, capture_output=True, **apart)

    def resmlp_mt(*words):
        command = [folder / "venv" / "bin" / "resmlp-mt", *words]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, **apart)

    return resmlp_mt


def test_the_wheel_and_few_packages_are_enough(small, exports, picture):
    for command in (
        ["translate", "--model", exports / "translator", "--prefix", "Der alte Mann", TEXT],
        ["classify", exports / "classifier", picture],
    ):
        assert small(*command).stdout == run("resmlp-mt", *command).stdout != ""


ORDERS = {
    "ours first": "import resmlp_mt, fairseq",
    "fairseq first": "import fairseq, resmlp_mt",
    "a part of fairseq": "import resmlp_mt; from fairseq import checkpoint_utils",
    "by user dir": f"""
import resmlp_mt
from argparse import Namespace
from fairseq import utils
utils.import_user_module(Namespace(user_dir={str(ROOT / "resmlp_mt")!r}))
""",
}


@pytest.mark.parametrize("imports", ORDERS.values(), ids=ORDERS)
def test_the_plugin_is_registered_in_either_order(imports):
    code = f"""{imports}
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
assert "resmlp_wmt_en_de" in ARCH_MODEL_REGISTRY and "image_classification" in TASK_REGISTRY
"""
    run("python", "-c", code, own=True)


def test_the_package_itself_imports_neither():
    run(
        "python",
        "-c",
        "import sys, resmlp_mt; assert not {'torch', 'fairseq'} & {*sys.modules}",
        own=True,
    )
