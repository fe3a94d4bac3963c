"""A model works with the text, or the classes, that it was trained on, and with no other."""

import shutil
from functools import partial

import pytest
import torch
from cli import commands
from cli.commands import IMAGE_RECIPE, IMAGE_SIZES, PLUGIN, RECIPE, assert_refused, run

TURNED = ["--source-lang", "de", "--target-lang", "en"]


train = partial(commands.train, check=False)


def edit(path, change, out=None):
    state = torch.load(path, weights_only=False)
    change(state)
    torch.save(state, out or path)
    return out or path


def forget(state):
    state["task_state"] = {}


def exchange(path):
    """Let two symbols of a dictionary change places; it is as large as before."""
    first, second, *rest = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([second, first, *rest]), "utf-8")


def make_other(prepared, out):
    """The same text with another dictionary, as if learnt from other text."""
    shutil.copytree(prepared, out)
    (out / "report.json").unlink()
    for path in out.glob("dict.*.txt"):
        exchange(path)
    return out


@pytest.fixture(scope="module")
def turned(prepared, tmp_path_factory):
    """A checkpoint of the other way."""
    out = tmp_path_factory.mktemp("turned")
    result = train(prepared, out, *TURNED, "--max-update", 1)
    assert result.returncode == 0, result.stderr
    return out / "checkpoint_last.pt"


def test_a_training_does_not_go_on_with_other_text(prepared, folder, tmp_path):
    last = folder / "checkpoint_last.pt"
    before, more = last.read_bytes(), ["--max-epoch", 4]
    refusal = train(prepared, folder, *TURNED, *more)
    assert_refused(refusal, f"{prepared}: not the text that {last} was trained on: source and ta")
    other = make_other(prepared, tmp_path / "other")
    refusal = train(other, folder, *more)
    assert_refused(refusal, "dict.en.txt has other symbols, dict.de.txt has other symbols;")
    (other / "spm.model").write_bytes((other / "spm.model").read_bytes() + b"\0")
    for path in prepared.glob("dict.*.txt"):
        shutil.copy(path, other)
    assert_refused(train(other, folder, *more), "trained on: spm.model is another one; train on")
    assert last.read_bytes() == before
    assert not list(folder.glob("crash*")) and not (folder / "checkpoint4.pt").exists()


def test_the_same_text_elsewhere_and_an_older_checkpoint_are_gone_on_with(
    prepared, folder, tmp_path
):
    moved = shutil.copytree(prepared, tmp_path / "moved")
    for path in moved.glob("dict.*.txt"):  # counts are no part of a model
        lines = path.read_text("utf-8").splitlines()
        path.write_text("".join(f"{line.split()[0]} 1\n" for line in lines), "utf-8")
    (moved / "report.json").unlink()
    result = train(moved, folder, "--max-epoch", 4)
    assert result.returncode == 0 and "does not say" not in result.stdout + result.stderr
    edit(folder / "checkpoint_last.pt", forget)
    result = train(prepared, folder, "--max-epoch", 5)
    said = result.stdout + result.stderr
    assert result.returncode == 0 and said.count("checkpoint_last.pt does not say which dict") == 1


def test_fine_tuning_is_for_the_same_subwords_and_says_that_languages_are_others(
    prepared, trained, packed, tmp_path
):
    begin = ["--finetune-from-model", trained / "checkpoint_best.pt", "--max-update", 1]
    refusal = train(make_other(prepared, tmp_path / "other"), tmp_path / "a", *begin)
    assert_refused(refusal, "dict.de.txt has other symbols", "prepare --like")
    old = shutil.copytree(packed, tmp_path / "old")  # its dictionaries lie beside it
    edit(old / "model.pt", forget)
    refusal = train(tmp_path / "other", tmp_path / "a", "--finetune-from-model", old)
    assert_refused(refusal, "dict.de.txt has other symbols", f"prepare --like {old}/model.pt'")
    assert not list((tmp_path / "a").glob("*.pt"))
    french = tmp_path / "french"
    french.mkdir()
    for path in (*prepared.glob("*.bin"), *prepared.glob("*.idx"), *prepared.glob("dict.*")):
        name = path.name.replace("en-de", "en-fr").replace(".de.", ".fr.")
        shutil.copy(path, french / name)
    result = train(prepared, tmp_path / "c", *begin, *TURNED)
    said = f"{prepared}: not the languages of {begin[1]}: source and target are swapped"
    assert result.returncode == 0 and said in result.stdout + result.stderr
    result = train(french, tmp_path / "b", *begin)
    assert result.returncode == 0, result.stderr
    assert "its languages are en to fr, not en to de" in result.stdout + result.stderr
    assert train(french, tmp_path / "b", *begin[:2], "--max-update", 2).returncode == 0


def test_a_mean_is_of_one_text_and_of_the_same_classes(trained, turned, classifier, tmp_path):
    best, out = trained / "checkpoint_best.pt", tmp_path / "mean.pt"
    refusal = run("resmlp-mt", "average", best, turned, "--out", out, check=False)
    assert_refused(refusal, f"{turned}: not trained on what {best} was: source and target are sw")
    first = classifier / "checkpoint1.pt"
    other = edit(first, lambda s: s["task_state"]["classes"].reverse(), tmp_path / "other.pt")
    refusal = run("resmlp-mt", "average", first, other, "--out", out, check=False)
    assert_refused(refusal, f"{other}: not trained on what {first} was: its classes have another")
    assert not out.exists()
    old = edit(best, forget, tmp_path / "old.pt")
    result = run("resmlp-mt", "average", old, best, "--out", out)
    assert result.stderr.count(f"{old}: not said what it was trained on") == 1
    assert "text" in torch.load(out, weights_only=True)["task_state"]


def test_models_of_an_ensemble_are_of_one_text(prepared, trained, turned, tmp_path):
    best = trained / "checkpoint_best.pt"
    generate = ["fairseq-generate", prepared, *PLUGIN, "--source-lang", "en", "--target-lang", "de"]
    refusal = run(*generate, "--path", f"{best}:{turned}", check=False)
    assert_refused(refusal, f"{turned}: not trained on the text of the models before it: source")
    other = make_other(prepared, tmp_path / "other")
    refusal = run("fairseq-generate", other, *PLUGIN, "--path", best, check=False)
    assert_refused(refusal, f"{best}: not trained on text as in {other}: there dict.en.txt has")
    old = edit(best, forget, tmp_path / "old.pt")
    result = run(*generate, "--path", f"{best}:{old}", "--beam", 1)
    assert (result.stdout + result.stderr).count("the checkpoint does not say which") == 1
    both = ["--model", best, "--model", turned]
    assert_refused(run("resmlp-mt", "translate", *both, stdin="A dog.\n", check=False), str(turned))


@pytest.mark.parametrize("command", ["export", "pack", "translate"])
def test_a_model_beside_other_companions_is_refused(command, prepared, trained, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out"
    make_other(prepared, model)
    shutil.copy(trained / "checkpoint_best.pt", model)
    line = ["resmlp-mt", command, *(["--model"] if command == "translate" else []), model]
    line += [] if command == "translate" else ["--out", out]
    refusal = run(*line, stdin="A dog.\n", check=False)
    said = f"{model}/checkpoint_best.pt: trained with other companions than those in {model}: dict"
    assert_refused(refusal, said)
    assert not out.exists()


PLAIN = """
import sys
from fairseq import checkpoint_utils, tasks
assert not any(name.startswith("resmlp_mt") for name in sys.modules)
import torch
load = torch.load
torch.load = lambda *args, **kwargs: load(*args, **kwargs | {"weights_only": False})
models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([sys.argv[1]])
assert type(task).__module__.startswith("fairseq."), type(task)
print(type(models[0]).__name__)
"""


def test_fairseq_without_the_plugin_loads_what_it_trained_with_it(prepared, tmp_path):
    sizes = """--arch transformer --encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-layers 1
        --decoder-layers 1 --encoder-ffn-embed-dim 8 --decoder-ffn-embed-dim 8""".split()
    line = ["fairseq-train", prepared, *PLUGIN, *sizes, *RECIPE, "--max-update", 1]
    run(*line, "--save-dir", tmp_path)
    (tmp_path / "plain.py").write_text(PLAIN)
    found = run("python", tmp_path / "plain.py", tmp_path / "checkpoint_last.pt", own=True)
    assert found.stdout.split()[-1] == "TransformerModel"


def test_a_classifier_goes_on_with_its_classes_in_their_order(classifier, pictures, tmp_path):
    folder = shutil.copytree(classifier, tmp_path / "run")
    edit(folder / "checkpoint_last.pt", lambda s: s["task_state"]["classes"].reverse())
    before = (folder / "checkpoint_last.pt").read_bytes()
    line = ["fairseq-train", pictures, *PLUGIN, *IMAGE_SIZES, *IMAGE_RECIPE, "--max-epoch", 7]
    refusal = run(*line, "--save-dir", folder, check=False)
    assert_refused(refusal, "checkpoint_last.pt was trained on: they have another order")
    assert (folder / "checkpoint_last.pt").read_bytes() == before
