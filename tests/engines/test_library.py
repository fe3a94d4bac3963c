"""The compiled code as a file: built, of an older build, or none that can be loaded."""

import re
import shutil
import subprocess

import pytest

from resmlp_mt import Translator
from resmlp_mt.engines.kernels import library
from resmlp_mt.engines.kernels.library import KINDS, find_kind, find_library, load_function
from resmlp_mt.errors import UserError

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the compiled code is looked for: an empty folder."""
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    monkeypatch.setattr(library, "find_library", find_library.__wrapped__)
    monkeypatch.delenv("RESMLP_CPU_ISA", raising=False)
    return tmp_path


@needs_compiler
def test_it_is_there():
    assert find_library() is not None


@pytest.mark.skipif(find_library() is None, reason="the compiled code was not built")
def test_a_build_for_other_structures_is_refused():
    with pytest.raises(UserError, match="build it again"):
        load_function("search", "Step")


@needs_compiler
@pytest.mark.parametrize(
    "source",
    [
        None,
        "int x;",
        "int count_room, count_encoder_room, count_classifier_room, search_plain;"
        + "".join(f"int has_{kind}() {{return {kind == 'plain':d};}}" for kind in KINDS),
    ],
    ids=["no library", "of nothing", "of no encoder"],
)
def test_a_build_that_lacks_what_is_called_is_refused(source, folder, monkeypatch):
    built = folder / "kernels.abi3.so"
    built.write_text("no library")
    if source:
        command = ["cc", "-shared", "-fPIC", "-o", built, "-x", "c", "-"]
        subprocess.run(command, input=source, text=True, check=True)
    with pytest.raises(UserError, match="kernels.abi3.so.*build it again"):
        find_kind()
    monkeypatch.setenv("RESMLP_CPU_ISA", "none")
    assert find_kind() is None


def test_where_nothing_was_built_exports_say_what_to_install(folder, monkeypatch):
    found = f"not built in {re.escape(str(folder))}: install a wheel.* C compiler.* install -e"
    with pytest.raises(UserError, match=found):
        Translator.from_pretrained("multi30k-en-de", device="cpu")
    monkeypatch.setenv("RESMLP_CPU_ISA", "none")
    with pytest.raises(UserError, match="RESMLP_CPU_ISA=none"):
        Translator.from_pretrained("multi30k-en-de", device="cpu")
