"""Files that are broken, or made to do harm: an error that says so, or an ordinary result."""

import faulthandler
import gzip
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cli.commands import IMAGE_RECIPE, IMAGE_SIZES, ROOT
from cli.pictures import draw_pictures

pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")

import fuzz
import onnx
from fairseq.data import Dictionary
from hostile import seeds
from hostile.checkpoints import Payload
from hostile.contain import attempt
from safetensors.numpy import load_file, save_file

from resmlp_mt.checkpoints.pack import pack_model
from resmlp_mt.data.tars import index_tar
from resmlp_mt.engines.classifier import Classifier
from resmlp_mt.engines.exported import sum_files
from resmlp_mt.errors import UserError
from resmlp_mt.export.writer import export_model
from resmlp_mt.translating.translator import Translator


def test_what_is_mutated_at_random_is_refused_or_does_no_harm(tmp_path):
    command = [sys.executable, ROOT / "scripts/fuzz.py", "all", "--count", 6, "--seed", 3]
    done = subprocess.run(
        [*map(str, command), "--findings", tmp_path / "findings"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    found = [path.read_text() for path in tmp_path.glob("findings/*/finding.txt")]
    assert done.returncode == 0 and not found, "\n".join([done.stderr[-2000:], *found])[-8000:]
    head, *rows = (line.split("\t") for line in done.stdout.splitlines())
    assert [row[0] for row in rows] == list(fuzz.kinds.NAMES)
    accepted, refused = ([int(row[head.index(name)]) for row in rows] for name in head[3:5])
    assert [sum(pair) for pair in zip(accepted, refused, strict=True)] == [6] * len(rows)
    # Neither is everything refused, nor anything taken.
    assert sum(accepted) > len(rows) and min(refused) > 0


# What the fuzzer must notice, lest it finds nothing because it sees nothing.


def fill_memory_and_say_so():
    try:
        bytearray(2**40)
    except MemoryError as error:
        raise UserError("too large") from error


DEFECTS = {
    "a crash": (faulthandler._sigsegv, "crash"),
    "a sleep": (lambda: time.sleep(30), "hang"),
    "a loop in C": (lambda: re.match(r"(a+)+$", "a" * 40 + "b"), "hang"),
    "a program": (lambda: os.system("true"), "code"),
    "a payload": (lambda: pickle.loads(pickle.dumps(Payload(os.getcwd))), "code"),
    "a file elsewhere": (lambda: Path("../elsewhere").write_text("pwned"), "code"),
    "much memory": (fill_memory_and_say_so, "memory"),
    "a bug": (lambda: {}["matrix"], "exception"),
}


@pytest.mark.parametrize(("defect", "verdict"), DEFECTS.values(), ids=DEFECTS)
def test_the_fuzzer_sees_a_planted_defect(defect, verdict, tmp_path):
    folder = tmp_path / "attempt"
    folder.mkdir()
    assert attempt(defect, folder, seconds=1).verdict == verdict


# One file for each way that something else than an answer came, when the fuzzer was new.


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, Path]:
    """Models of each kind."""
    root = tmp_path_factory.mktemp("whole")
    translator = seeds.make_translators(root / "translators")[1]
    classifier, _, traced = seeds.make_classifiers(root / "classifiers")
    folders = {"translator": translator, "classifier": classifier, "traced classifier": traced}
    for name in list(folders):
        folders[f"exported {name}"] = root / f"exported-{name}"
        export_model(folders[name], folders[f"exported {name}"], int8=False)
    return folders


@pytest.fixture
def copy(whole, tmp_path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(whole[name], tmp_path / "model"))


def translate(model: Path) -> None:
    Translator.from_pretrained(model, "cpu").translate(["The dog sleeps."], beam=2)


def classify(model: Path) -> None:
    from PIL import Image

    list(Classifier.from_pretrained(model, "cpu").classify([Image.new("RGB", (9, 9))]))


def edit_state(model: Path, edit: Callable[[dict], None]) -> None:
    state = torch.load(model / "model.pt", weights_only=True)
    edit(state)
    torch.save(state, model / "model.pt")


def flag(state: dict, **flags) -> None:
    state["cfg"]["model"].update(flags)


def weigh(state: dict, value) -> None:
    state["model"][NAME] = value


MORE = "of a model with more weights than it holds"
LAST = "decoder.norm.alpha"
NAME = "encoder.blocks.0.scale_1.gamma"
STATES = {
    "a configuration of text": (lambda s: s.update(cfg="x"), "not a checkpoint of fairseq"),
    "a task that is a number": (lambda s: s["cfg"].update(task=3), "not a checkpoint of fairseq"),
    "a mixer of no name": (lambda s: flag(s, token_mixer="x"), "model.pt: "),
    "weights without memory": (lambda s: weigh(s, torch.ones(8).to("meta")), "not a checkpoint"),
    "weights beyond the file": (lambda s: weigh(s, torch.ones(1).expand(10**12)), "not a check"),
    "weights that are no numbers": (lambda s: s["model"][NAME].fill_(float("nan")), "no numbers"),
    "weights that overflow": (lambda s: s["model"][LAST].fill_(3e38), "no translation"),
    "no weights": (lambda s: s["model"].clear(), "model.pt: "),
    "many layers": (lambda s: flag(s, encoder_layers=20_000), MORE),
    "a language model": (lambda s: flag(s, _name="transformer_lm"), "model.pt: "),
}


@pytest.mark.parametrize(("edit", "said"), STATES.values(), ids=STATES)
def test_checkpoints_with_values_out_of_place_are_refused(copy, edit, said):
    model = copy("translator")
    edit_state(model, edit)
    with pytest.raises(UserError, match=said):
        translate(model)


def test_classes_and_weights_of_a_classifier_are_checked(copy):
    model = copy("classifier")
    edit_state(model, lambda s: s["task_state"]["classes"].__setitem__(3, None))
    with pytest.raises(UserError, match="no names"):
        classify(model)
    edit_state(model, lambda s: s["model"].update({"head.bias": torch.ones(3)}))
    with pytest.raises(UserError, match="of another shape: head.bias"):
        classify(model)
    edit_state(model, lambda s: s.update(task_state=torch.ones(3)))
    with pytest.raises(UserError, match="not a checkpoint"):
        pack_model(model, model.with_name("packed"), half=True)


def test_what_is_named_in_an_export_is_there(copy):
    model = copy("exported translator")
    path = model / "export.json"
    config = json.loads(path.read_text())
    for name in ("missing", "../model/spm.model", "x" * 5000):
        path.write_text(json.dumps(config | {"sha256": config["sha256"] | {name: ""}}))
        with pytest.raises(UserError, match="missing; export the model again"):
            translate(model)


def test_json_without_end_is_not_read(copy):
    model = copy("exported translator")
    path = model / "mixing.safetensors"
    data, padding = path.read_bytes(), 2**22
    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size] + b" " * padding
    path.write_bytes((size + padding).to_bytes(8, "little") + header + data[8 + size :])
    load_file(path)
    seal(model)
    with pytest.raises(UserError, match="mixing.safetensors has 4,.* bytes of JSON"):
        translate(model)
    with open(model / "export.json", "ab") as stream:
        stream.truncate(2**40)  # which nobody could read
    with pytest.raises(UserError, match="export.json has 1,0.* bytes of JSON"):
        translate(model)


def test_a_checkpoint_that_unpacks_to_more_than_its_size_is_refused(copy):
    path = copy("translator") / "model.pt"
    data = path.read_bytes()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    torch.load(path, weights_only=True)  # as torch would have it
    with pytest.raises(UserError, match="it is compressed"):
        translate(path.parent)


@pytest.mark.parametrize("name", ["translator", "exported translator"])
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda lines: lines[:5] + [b"dog"] + lines[5:], "dict.de.txt, line 6: .*dog"),
        (lambda lines: lines[:5] + [b"dog x"] + lines[5:], "dict.de.txt, line 6: .*dog x"),
        (lambda lines: [*lines, lines[3]], r"dict.de.txt, line \d+: .*second time"),
        (lambda lines: lines[:5] + [b"\xff 1"] + lines[5:], "dict.de.txt.*not UTF-8"),
    ],
    ids=["no count", "no number", "twice", "latin"],
)
def test_a_broken_dictionary_is_named_with_its_line(copy, name, edit, said):
    model = copy(name)
    path = model / "dict.de.txt"
    path.write_bytes(b"\n".join(edit(path.read_bytes().splitlines())))
    seal(model)
    with pytest.raises(UserError, match=said):
        translate(model)


@pytest.mark.parametrize(
    ("name", "end"),
    [("translator", b"\n"), ("exported translator", b"\r"), ("translator", None)],
    ids=["lines", "returns", "one line"],
)
def test_a_dictionary_without_end_is_not_read(copy, name, end, monkeypatch):
    model = copy(name)
    path = model / "dict.de.txt"
    if end:
        path.write_bytes(end * 2**20 + end)
    else:
        os.truncate(path, 2**26 + 1)
    seal(model)
    monkeypatch.setattr(Dictionary, "load", None)
    with pytest.raises(UserError, match="dict.de.txt: more than 1,048,576 symbols"):
        translate(model)


def seal(model: Path, **changes) -> None:
    """Change values of export.json, and set its checksums right, as a forger would."""
    path = model / "export.json"
    if path.exists():
        config = json.loads(path.read_text()) | changes
        config["sha256"] = sum_files(model, config["sha256"])
        path.write_text(json.dumps(config))


def use_exported(model: Path) -> None:
    (translate if (model / "mixing.safetensors").exists() else classify)(model)


@pytest.mark.parametrize("name", ["exported translator", "exported classifier"])
def test_a_byte_of_damage_to_an_export_is_seen(copy, name):
    model = copy(name)
    files = [path for path in model.iterdir() if path.name != "export.json"]
    for path in files:
        data = path.read_bytes()
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 4]) + data[-8:])
        with pytest.raises(UserError, match=f"{path.name}: damaged"):
            use_exported(model)
        path.write_bytes(data)
    use_exported(model)


@pytest.mark.parametrize("number", [None, 7, "6"])
def test_exports_of_another_format_ask_to_be_made_anew(copy, number):
    model = copy("exported classifier")
    seal(model, format=number)
    with pytest.raises(UserError, match="another version of resmlp-mt .*; export the model again"):
        classify(model)


PICTURES = {"in_chans": 3, "image_size": 8, "crop_pct": 1.0, "interpolation": "bicubic"}
CONFIGS = {
    "exported translator": [
        {"target_lang": "../de"}, {"source_lang": "x" * 5000}, {"source_positions": "12"},
        {"target_positions": 10**9}, {"target_positions": True}, {"sha256": 3},
    ],
    "exported classifier": [
        {"classes": "abcdefghij"}, {"classes": ["x"]}, {"pictures": 3}, {"pictures": {}},
        {"pictures": PICTURES | {"image_size": 10**6}}, {"pictures": PICTURES | {"crop_pct": 0}},
        {"pictures": PICTURES | {"image_size": 8.0}}, {"pictures": PICTURES | {"in_chans": 1}},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes"),
    [(name, changes) for name, all_changes in CONFIGS.items() for changes in all_changes],
    ids=lambda x: str(x)[:40],
)
def test_what_an_export_says_of_itself_is_checked(copy, name, changes):
    model = copy(name)
    path = model / "export.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UserError, match="broken export"):
        use_exported(model)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("encoder.matrix", lambda a: a[..., 1:]),
        ("decoder.matrix", lambda a: a.astype("float64")),
        ("decoder.matrix", lambda a: a * float("nan")),
        ("decoder.matrix", lambda a: a[:, :0]),
        ("decoder.scale", lambda a: a[:-1]),
        ("decoder.scale", None),
    ],
)
def test_arrays_of_another_model_are_refused(copy, name, change):
    model = copy("exported translator")
    path = model / "mixing.safetensors"
    weights = load_file(path)
    if change is None:
        del weights[name]
    else:
        weights[name] = change(weights[name]).copy()
    save_file(weights, path)
    seal(model)
    with pytest.raises(UserError, match="broken export"):
        translate(model)


def test_arrays_that_overlap_are_refused(copy):
    model = copy("exported translator")
    path = model / "mixing.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    # Each stands for the same bytes once more.
    header |= {f"more{i}": header["decoder.matrix"] for i in range(99)}
    forged = json.dumps(header).encode()
    path.write_bytes(len(forged).to_bytes(8, "little") + forged + data[8 + size :])
    seal(model)
    with pytest.raises(UserError, match="broken export .*mixing.safetensors: arrays that overlap"):
        translate(model)


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        (gzip.compress(bytes(2**24)), "8 times its size"),
        (gzip.compress(b"x" * 99)[:-9], "breaks off"),
        (b"x" * 99, "incorrect header"),
    ],
    ids=["bomb", "torn", "no gzip"],
)
def test_weights_that_expand_wrongly_are_refused(forged, said, tmp_path):
    export_model("multi30k-en-de", tmp_path / "model", int8=True, weight_bits=6)
    (tmp_path / "model" / "weights.safetensors.gz").write_bytes(forged)
    seal(tmp_path / "model")
    with pytest.raises(UserError, match=f"broken export .*weights.safetensors.gz.*{said}"):
        translate(tmp_path / "model")


def forge(path: Path, edit: Callable[[onnx.GraphProto], None]) -> None:
    graph = onnx.load_from_string(path.read_bytes())
    edit(graph.graph)
    path.write_bytes(graph.SerializeToString())
    seal(path.parent)


def multiply(graph: onnx.GraphProto) -> None:
    """Let the graph answer for a million pictures instead of one."""
    last = next(node for node in graph.node if "logits" in node.output)
    last.output[0] = "few"
    graph.initializer.append(onnx.helper.make_tensor("times", 7, [2], [10**6, 1]))
    graph.node.append(onnx.helper.make_node("Tile", ["few", "times"], ["logits"]))


def rename_an_input(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        node.input[:] = [name + "x" * (name == "pixels") for name in node.input]
    graph.input[0].name += "x"


@pytest.mark.parametrize("edit", [multiply, rename_an_input])
def test_graphs_that_compute_something_else_are_refused(copy, edit):
    model = copy("exported traced classifier")
    forge(model / "classifier.onnx", edit)
    with pytest.raises(UserError, match="broken export"):
        classify(model)


def test_a_graph_reads_no_file_of_the_folder_that_it_is_used_in(copy, tmp_path, monkeypatch):
    model = copy("exported traced classifier")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_bytes(bytes(12))

    def edit(graph):
        weights = onnx.TensorProto(name="stolen", data_type=1, dims=[3])
        weights.data_location = onnx.TensorProto.EXTERNAL
        weights.external_data.add(key="location", value=".ssh/id_rsa")
        graph.initializer.append(weights)

    classify(model)
    forge(model / "classifier.onnx", edit)
    with pytest.raises(UserError, match="classifier.onnx has weights in another file"):
        classify(model)


NONE = {"weight": None, "scales": None, "bias": None}


@pytest.mark.parametrize(
    ("side", "name", "value"),
    [
        ("decoder", "heads", 0), ("decoder", "heads", 7), ("decoder", "heads", "4"),
        ("decoder", "alpha", "none"), ("decoder", "output", None), ("decoder", "output", NONE),
        ("encoder", "memory", None), ("encoder", "memory", NONE),
        *((side, *fault) for side in ("decoder", "encoder") for fault in (
            ("hidden", 10**9), ("hidden", None), ("layers", []), ("layers", 3),
            ("layers", [{}] * 2), ("norm", "x"), ("embedding_scale", 10**400),
            ("embedding", {"weight": 3}), ("embedding", NONE),
        )),
    ],
)  # fmt: skip
def test_what_is_described_wrongly_is_refused(copy, side, name, value):
    model = copy("exported translator")
    described = json.loads((model / "export.json").read_text())[side]
    seal(model, **{side: described | {name: value}})
    with pytest.raises(UserError, match="broken export"):
        translate(model)


def forge_header(path: Path, **fields: bytes) -> None:
    """Change fields of the header of the last member of a tar, and set its sum right."""
    data = bytearray(path.read_bytes())
    with tarfile.open(path) as tar:
        start = tar.getmembers()[-1].offset
    header = memoryview(data)[start : start + 512]
    for place, value in fields.items():
        at = int(place[1:])
        header[at : at + len(value)] = value
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"_124": b"\xff" * 12}, "nor a whole"),  # a negative size: the header before is the next
        ({"_124": b"\x80" + b"\xff" * 11}, "nor a whole"),
        ({"_124": b"77777777777\0"}, "nor a whole"),  # 8 GiB
        ({"_124": b"77777777777\0", "_156": b"x"}, "nor a whole"),  # of attributes
        ({"_124": b"77777777777\0", "_156": b"L"}, "nor a whole"),  # of a name
        ({"_156": b"S", "_483": b"\x80" + (10**15).to_bytes(11)}, "--sparse"),
    ],
    ids=["negative", "2^88", "8 GiB", "attributes", "name", "holes"],
)
def test_members_of_a_tar_larger_than_it_are_refused(tmp_path, fields, said):
    path = tmp_path / "images.tar"
    with tarfile.open(path, "w") as tar:
        for name in "ab":
            member = tarfile.TarInfo(f"train/{name}/1.png")
            member.size = 600
            tar.addfile(member, io.BytesIO(bytes(600)))
    forge_header(path, **fields)
    with pytest.raises(UserError, match=f"images.tar.*{said}"):
        index_tar(path)


# Checkpoints with a payload


def as_zip(state: dict, path: Path) -> None:
    torch.save(state, path)


def as_legacy(state: dict, path: Path) -> None:
    torch.save(state, path, _use_new_zipfile_serialization=False)


def as_pickle(state: dict, path: Path) -> None:
    path.write_bytes(pickle.dumps(state))


def as_tar(state: dict, path: Path) -> None:
    """As torch before 0.1.10 wrote it."""
    with tarfile.open(path, "w") as tar:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            data = pickle.dumps(state if name == "pickle" else 0)
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def as_script(state: dict, path: Path) -> None:
    """An archive of TorchScript, which is code."""
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))


FORMS = (as_zip, as_legacy, as_pickle, as_tar, as_script)
PLACES = {
    "value": lambda state, payload: state.update(extra_state=payload),
    "weight": lambda state, payload: state["model"].update(x=payload),
    "configuration": lambda state, payload: state["cfg"]["task"].update(data=payload),
    "optimizer": lambda state, payload: state.update(last_optimizer_state=[payload]),
    "variable": lambda state, _: state["cfg"]["task"].update(data="${oc.env:HOME}"),
}

# Runs each command in a process of its own, without importing everything anew.
RUN_ALL = """
import json, os, sys
import fairseq
from resmlp_mt.cli import main
for command in json.loads(sys.argv[1]):
    process = os.fork()
    if process == 0:
        sys.argv = ["resmlp-mt", *command]
        sys.stderr.flush()
        try:
            status = main()
        except SystemExit as error:
            status = error.code
        except BaseException as error:
            print("traceback", repr(error), file=sys.stderr, flush=True)
            status = 1
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)
    print("STATUS", os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), *command, flush=True)
"""


def run_all(commands: list[list], folder: Path) -> tuple[list[str], str]:
    """Statuses with their commands, and what was said on stderr."""
    commands = [list(map(str, command)) for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, json.dumps(commands)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    statuses = [line for line in done.stdout.splitlines() if line.startswith("STATUS")]
    assert len(statuses) == len(commands)
    return statuses, done.stderr


@pytest.fixture(scope="module")
def poisoned(whole, tmp_path_factory) -> Path:
    """A folder for each payload: FORM-PLACE of a translator, and "classifier"."""
    root = tmp_path_factory.mktemp("poisoned")

    def poison(name, folder, form, place):
        shutil.copytree(whole[name], root / folder)
        state = torch.load(root / folder / "model.pt", weights_only=True)
        PLACES[place](state, Payload(os.mkdir, str(root / f"pwned by {folder}")))
        form(state, root / folder / "model.pt")

    for form in FORMS:
        poison("translator", f"{form.__name__}-value", form, "value")
    for place in PLACES:
        shutil.rmtree(root / f"as_zip-{place}", ignore_errors=True)
        poison("translator", f"as_zip-{place}", as_zip, place)
    poison("classifier", "classifier", as_zip, "value")
    return root


def test_the_payloads_would_run_if_they_were_let(poisoned):
    names = [f"as_{form}-value" for form in ("zip", "legacy", "pickle")]
    code = "import pickle, sys, torch\nfor path in sys.argv[1:-1]: "
    code += "torch.load(path, weights_only=False)\npickle.load(open(sys.argv[-1], 'rb'))"
    paths = [poisoned / name / "model.pt" for name in names]
    subprocess.run([sys.executable, "-c", code, *paths], check=True)
    for name in names:
        (poisoned / f"pwned by {name}").rmdir()  # which is there


def test_no_command_runs_a_payload(poisoned, tmp_path):
    draw_pictures(tmp_path / "pictures", {"train": 1, "val": 1})
    folders = sorted(path for path in poisoned.iterdir() if path.name.startswith("as_"))
    text, classifier = folders[-1], poisoned / "classifier"
    asking = poisoned / "as_zip-variable"
    train = ["train", tmp_path / "pictures", *IMAGE_SIZES, *IMAGE_RECIPE, "--save-dir", "out"]
    languages = ["--source-lang", "en", "--target-lang", "de", "--path", text / "model.pt"]
    commands = [
        *(["translate", "--model", folder, "hello"] for folder in folders),
        ["classify", classifier, tmp_path / "pictures"],
        ["study", "confusion", classifier, tmp_path / "pictures"],
        *(["pack", model, "--out", "packed"] for model in (text, classifier, asking)),
        *(["export", model, "--out", "exported"] for model in (text, classifier)),
        *(["average", model / "model.pt", "--out", "average.pt"] for model in (text, asking)),
        ["study", "mixing", text, "--out", "mixing.png"],
        ["study", "sparsity", text],
        ["study", "probe", classifier, tmp_path / "pictures"],
        ["export-weights", classifier, "--format", "timm", "--out", "weights.pth"],
        ["import-weights", "--arch", "resmlp_cifar", classifier / "model.pt", "--out", "imported"],
        ["generate", text, *languages],
        ["interactive", text, *languages],
        ["validate", text, *languages],
        *(
            [*train, flag, classifier / "model.pt"]
            for flag in ("--finetune-from-model", "--restore-file", "--teacher-model")
        ),
    ]
    statuses, said = run_all(commands, tmp_path)
    assert [status for status in statuses if not status.startswith("STATUS 2 ")] == [], said
    assert "raceback" not in said
    assert said.count("model.pt: refused, since it") == len(commands) - 1  # all but the bare pickle
    assert not list(poisoned.glob("pwned*"))
