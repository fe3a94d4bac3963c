"""Every file that a model is read from counts: none is written over, and a change is noticed."""

import shutil
from pathlib import Path

import pytest

from resmlp_mt.checkpoints.checksum import checksum_model, list_files
from resmlp_mt.export.writer import export_model
from resmlp_mt.files.finding import find_checkpoint

# Of a shipped model, what is no part of its checkpoint.
LEFT_OUT = ("*.md", "*.onnx", "*.safetensors", "export.json")


@pytest.fixture(scope="module", params=["checkpoint", "export", "export in 6 bits"])
def model(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    if request.param == "checkpoint":
        shipped = find_checkpoint("multi30k-en-de").parent
        return shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    bits = 6 if "6" in request.param else None
    export_model("multi30k-en-de", folder, int8=True, weight_bits=bits)
    return folder


def test_all_files_of_a_model_are_listed(model):
    assert sorted(list_files(model)) == sorted(model.iterdir())


def test_another_note_of_the_text_is_another_model(model):
    note, before = model / "text.json", checksum_model(model)
    held = note.read_text("utf-8")
    note.write_text(held.replace("true", "false"), "utf-8")
    if (model / "model.pt").exists():
        assert checksum_model(model) != before
    else:  # the checksums of all files are in its configuration, and loading it looks at them
        assert "text.json" in (model / "export.json").read_text("utf-8")
    note.write_text(held, "utf-8")
    assert checksum_model(model) == before
