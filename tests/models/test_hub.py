"""Models loaded by torch.hub, and by fairseq's own way."""

import os
import re
import shutil
from pathlib import Path

import pytest
import torch
from cli.commands import run

from resmlp_mt import Classifier, Translator
from resmlp_mt.data.subwords import train_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.models.translation import ResMLPModel

ROOT = Path(__file__).parents[2]
LINES = ["A man rides a bike.", "Two dogs play in the snow."]


class Payload:
    """Makes a folder when it is unpickled by a loader that runs code."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture(scope="module")
def expected():
    return Translator.from_pretrained("multi30k-en-de").translate(LINES)


def test_the_hub_offers_what_is_shipped(expected):
    model = torch.hub.load(str(ROOT), "multi30k-en-de", source="local")
    assert model.translate(LINES) == expected
    assert model.translate(LINES[0], beam=5) == expected[0]
    assert all(len(text.split()) == 1 for text in model.translate(LINES, max_len_b=1))
    assert isinstance(torch.hub.load(str(ROOT), "cifar10", source="local"), Classifier)


@pytest.mark.parametrize("subwords", [["spm.model"], ["spm.en.model", "spm.de.model"]], ids=len)
def test_a_folder_is_loaded_with_its_own_subwords(subwords, expected, tmp_path):
    shutil.copytree(PRETRAINED / "multi30k-en-de", tmp_path / "mine")
    model = (tmp_path / "mine" / "spm.model").rename(tmp_path / "any.model")
    for name in subwords:
        shutil.copy(model, tmp_path / "mine" / name)
    (tmp_path / "mine" / "model.pt").rename(tmp_path / "mine" / "checkpoint_best.pt")
    assert ResMLPModel.from_pretrained(str(tmp_path / "mine")).translate(LINES) == expected
    several = dict(checkpoint_file="checkpoint_best.pt:checkpoint_best.pt")
    twice = ResMLPModel.from_pretrained(str(tmp_path / "mine"), **several)
    assert len(twice.models) == 2 and twice.translate(LINES) == expected


@pytest.mark.parametrize("blank", "\u3000\xa0\u202f\x85")
def test_blanks_within_subwords_are_read_as_the_command_reads_them(blank, tmp_path):
    folder, text = tmp_path / "mine", f"A{blank}man rides{blank} a bike."
    shutil.copytree(PRETRAINED / "multi30k-en-de", folder)
    (folder / "export.json").unlink()  # which goes with its own subwords
    # Which keeps all blanks but the plain one.
    spm = train_subwords([text] * 9, 30, "bpe", normalization_rule_name="identity")
    (folder / "spm.model").write_bytes(spm)
    model = ResMLPModel.from_pretrained(str(folder))
    codec = Translator.from_pretrained(folder).codec
    pieces = codec.split(text)
    assert any(blank in piece for piece in pieces)
    assert model.encode(text).tolist() == codec.encode(pieces).tolist()
    spm = folder / "spm.model"
    flags = ["--path", folder / "model.pt", "--bpe", "sentencepiece", "--sentencepiece-model", spm]
    plugin = ["--user-dir", ROOT / "resmlp_mt", "--source-lang", "en", "--target-lang", "de"]
    said = run("fairseq-interactive", folder, *plugin, *flags, "--unkpen", 1000, stdin=f"{text}\n")
    own = run("resmlp-mt", "translate", "--model", folder, "--no-recase", stdin=f"{text}\n")
    # These subwords join no others than their own.
    found = re.findall(r"^D-0\t\S+\t(.*)", said.stdout, re.M)
    assert found == [own.stdout.replace("\u2581", " ").strip()]


def test_alignments_are_asked_for_with_a_sentence(capsys):
    model = ResMLPModel.from_pretrained("multi30k-en-de")
    tokens = model.encode(LINES[0])
    best = model.generate(tokens, verbose=True, print_alignment="hard")[0]
    assert [target for _, target in best["alignment"]] == list(range(len(best["tokens"]) - 1))
    assert all(0 <= source < len(tokens) for source, _ in best["alignment"])
    assert torch.equal(model.generate(tokens)[0]["tokens"], best["tokens"])
    assert not model.models[0].decoder.need_attn


def test_a_model_of_images_is_named():
    with pytest.raises(UserError, match="cifar10: a model of images; see Classifier"):
        ResMLPModel.from_pretrained("cifar10")


def test_loading_runs_no_code_and_names_what_is_missing(tmp_path):
    folder = shutil.copytree(PRETRAINED / "multi30k-en-de", tmp_path / "mine")
    state = torch.load(folder / "model.pt", weights_only=True)
    torch.save(state | {"extra_state": Payload(tmp_path / "pwned")}, folder / "model.pt")
    with pytest.raises(UserError, match="refused"):
        torch.hub.load(str(ROOT), "resmlp", source="local", model_name_or_path=str(folder))
    assert not (tmp_path / "pwned").exists()
    with pytest.raises(UserError, match="no such model"):
        ResMLPModel.from_pretrained("multi30k-en-xx")
