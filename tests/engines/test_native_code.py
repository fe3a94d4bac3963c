"""The compiled code as a file: built, of an older build, or none that can be loaded."""

import shutil
import subprocess

import pytest

from resmlp_mt.engines.compiled_code import code as native_code
from resmlp_mt.engines.compiled_code import decoder
from resmlp_mt.engines.compiled_code.code import (
    KINDS,
    check_structures,
    find_compute,
    find_library,
)
from resmlp_mt.errors import UserError

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@needs_compiler
def test_it_is_there():
    assert find_library() is not None


@pytest.mark.skipif(find_library() is None, reason="the compiled code was not built")
def test_a_build_that_does_not_know_its_structures_is_refused():
    with pytest.raises(UserError, match="build it again"):
        check_structures("step_of_an_older_build", decoder.Step)


@needs_compiler
@pytest.mark.parametrize(
    "source",
    [
        None,
        "int x;",
        "int count_room, count_encoder_room, count_classifier_room, step_plain;"
        + "".join(f"int has_{kind}() {{return {kind == 'plain':d};}}" for kind in KINDS),
    ],
    ids=["no library", "of nothing", "of no encoder"],
)
def test_a_build_that_lacks_what_is_called_is_refused(source, tmp_path, monkeypatch):
    library = tmp_path / "kernels.abi3.so"
    library.write_text("no library")
    if source:
        command = ["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"]
        subprocess.run(command, input=source, text=True, check=True)
    monkeypatch.setattr(native_code, "_FOLDER", tmp_path)
    monkeypatch.setattr(native_code, "find_library", find_library.__wrapped__)
    monkeypatch.delenv("RESMLP_CPU_ISA", raising=False)
    with pytest.raises(UserError, match="kernels.abi3.so.*build it again"):
        find_compute("step")
    monkeypatch.setenv("RESMLP_CPU_ISA", "none")
    assert find_compute("step") is None
