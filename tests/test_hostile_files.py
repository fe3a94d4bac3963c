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
from cli.commands import IMAGE_RECIPE, IMAGE_SIZES, ROOT, assert_refused, run
from cli.pictures import draw_pictures

pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")

import fuzz
import onnx
from hostile import seeds
from hostile.checkpoints import Payload
from hostile.contain import attempt
from PIL import Image
from safetensors.numpy import load, save

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
    seconds = 1 if verdict == "hang" else 120
    assert attempt(defect, folder, seconds).verdict == verdict


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
    export_model("multi30k-en-de", root / "packed", int8=True, weight_bits=6)
    return folders | {"compressed translator": root / "packed"}


def use(model: Path) -> None:
    """Translate or classify with a model, by what lies in its folder."""
    if any(model.glob("dict.*")):
        Translator.from_pretrained(model, "cpu").translate(["The dog sleeps."], beam=2)
    else:
        list(Classifier.from_pretrained(model, "cpu").classify([Image.new("RGB", (9, 9))]))


def seal(model: Path, **changes) -> None:
    """Change values of export.json, and set its checksums right, as a forger would."""
    path = model / "export.json"
    if path.exists():
        config = json.loads(path.read_text()) | changes
        config["sha256"] = sum_files(model, config["sha256"])
        path.write_text(json.dumps(config))


# What makes a file of its kind hostile: each takes the folder of a model.


def state(edit: Callable[[dict], object]):
    """Change what a checkpoint holds."""

    def spoil(model: Path) -> None:
        loaded = torch.load(model / "model.pt", weights_only=True)
        edit(loaded)
        torch.save(loaded, model / "model.pt")

    return spoil


def flag(**flags):
    return state(lambda s: s["cfg"]["model"].update(flags))


def weight(value):
    return state(lambda s: s["model"].update({NAME: value}))


def file(name: str, edit: Callable[[bytes], bytes]):
    """Change the bytes of a file, and forge its checksum."""

    def spoil(model: Path) -> None:
        (model / name).write_bytes(edit((model / name).read_bytes()))
        seal(model)

    return spoil


def lines(edit: Callable[[list[bytes]], list[bytes]]):
    return file("dict.de.txt", lambda data: b"\n".join(edit(data.splitlines())))


def grow(name: str, size: int):
    """Let a file have so many bytes, which nobody could read."""
    return lambda model: (os.truncate(model / name, size), name != CONFIG and seal(model))


def settings(**changes):
    return lambda model: seal(model, **changes)


def sums(value):
    """Change the checksums in export.json, and forge none."""

    def spoil(model: Path) -> None:
        config = json.loads((model / CONFIG).read_text())
        (model / CONFIG).write_text(json.dumps(config | {"sha256": value(config["sha256"])}))

    return spoil


def side(name: str, **changes):
    """Change what an export says of its encoder or decoder."""
    return lambda model: seal(
        model, **{name: json.loads((model / CONFIG).read_text())[name] | changes}
    )


def array(name: str, change: Callable | None):
    """Change an array of an export, or take it away."""

    def edit(data: bytes) -> bytes:
        weights = load(data)
        found = weights.pop(name)
        return save(weights | ({name: change(found).copy()} if change else {}))

    return file("mixing.safetensors", edit)


def header(edit: Callable[[bytes], bytes]):
    """Change the JSON before the arrays of an export."""

    def change(data: bytes) -> bytes:
        size = int.from_bytes(data[:8], "little")
        made = edit(data[8 : 8 + size])
        return len(made).to_bytes(8, "little") + made + data[8 + size :]

    return file("mixing.safetensors", change)


def overlap(data: bytes) -> bytes:
    """Let more arrays stand for the same bytes."""
    arrays = json.loads(data)
    return json.dumps(arrays | {f"more{i}": arrays["decoder.matrix"] for i in range(99)}).encode()


def graph(edit: Callable[[onnx.GraphProto], object]):
    """Change the graph of a classifier."""

    def change(data: bytes) -> bytes:
        model = onnx.load_from_string(data)
        edit(model.graph)
        return model.SerializeToString()

    return file("classifier.onnx", change)


def multiply(found: onnx.GraphProto) -> None:
    """Let the graph answer for a million pictures instead of one."""
    last = next(node for node in found.node if "logits" in node.output)
    last.output[0] = "few"
    found.initializer.append(onnx.helper.make_tensor("times", 7, [2], [10**6, 1]))
    found.node.append(onnx.helper.make_node("Tile", ["few", "times"], ["logits"]))


def rename_an_input(found: onnx.GraphProto) -> None:
    for node in found.node:
        node.input[:] = [name + "x" * (name == "pixels") for name in node.input]
    found.input[0].name += "x"


def steal(found: onnx.GraphProto) -> None:
    """Let weights come from a file of the folder that the model is used in."""
    weights = onnx.TensorProto(name="stolen", data_type=1, dims=[3])
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=".ssh/id_rsa")
    found.initializer.append(weights)


def compress(data: bytes) -> bytes:
    """A zip that unpacks to more than its size, as torch would have it."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return packed.getvalue()


CONFIG, PACKED = "export.json", "weights.safetensors.gz"
NAME, LAST = "encoder.blocks.0.scale_1.gamma", "decoder.norm.alpha"
NONE = {"weight": None, "scales": None, "bias": None}
PICTURES = {"in_chans": 3, "image_size": 8, "crop_pct": 1.0, "interpolation": "bicubic"}
FORGED = dict.fromkeys(["missing", "../model/spm.model", "x" * 5000], "")
# By kind of model: what is done to it, and a word of the refusal, "" for that of its kind.
HOSTILE = {
    "translator": [
        (state(lambda s: s.update(cfg="x")), ""), (state(lambda s: s["cfg"].update(task=3)), ""),
        (flag(token_mixer="x"), "model.pt"), (flag(_name="transformer_lm"), "model.pt"),
        (flag(encoder_layers=20_000), "more weights than it holds"),
        (weight(torch.ones(8).to("meta")), ""), (weight(torch.ones(1).expand(10**12)), ""),
        (state(lambda s: s["model"][NAME].fill_(float("nan"))), "no numbers"),
        (state(lambda s: s["model"][LAST].fill_(3e38)), "no translation"),
        (state(lambda s: s["model"].clear()), "model.pt"),
        (file("model.pt", compress), "compressed"),
        (lines(lambda a: [*a[:5], b"dog", *a[5:]]), "dict.de.txt, line 6: .*dog"),
        (lines(lambda a: [*a[:5], b"\xff 1", *a[5:]]), "dict.de.txt.*not UTF-8"),
        (file("dict.de.txt", lambda _: b"\n" * (2**20 + 1)), "dict.de.txt: more than 1,048,576"),
        (grow("dict.de.txt", 2**26 + 1), "dict.de.txt: more than 1,048,576"),
    ],
    "classifier": [
        (state(lambda s: s["task_state"]["classes"].__setitem__(3, None)), "no names"),
        (state(lambda s: s["model"].update({"head.bias": torch.ones(3)})), "head.bias"),
        (state(lambda s: s.update(task_state=torch.ones(3))), ""),
    ],
    "exported translator": [
        *((sums(lambda a, name=name: a | {name: ""}), "missing") for name in FORGED),
        (sums(lambda _: 3), ""), (grow(CONFIG, 2**40), "export.json has .* bytes of JSON"),
        (header(lambda data: data + b" " * 2**22), "mixing.safetensors has .* bytes of JSON"),
        (header(overlap), "mixing.safetensors: arrays that overlap"),
        (lines(lambda a: [*a[:5], b"dog x", *a[5:]]), "dict.de.txt, line 6: .*dog x"),
        (lines(lambda a: [*a, a[3]]), r"dict.de.txt, line \d+: .*second time"),
        (file("dict.de.txt", lambda _: b"\r" * (2**20 + 1)), "dict.de.txt: more than 1,048,576"),
        *((settings(**changes), "") for changes in (
            {"target_lang": "../de"}, {"source_lang": "x" * 5000}, {"source_positions": "12"},
            {"target_positions": 10**9}, {"target_positions": True},
        )),
        (array("encoder.matrix", lambda a: a[..., 1:]), ""),
        (array("decoder.matrix", lambda a: a.astype("float64")), ""),
        (array("decoder.matrix", lambda a: a * float("nan")), ""),
        (array("decoder.matrix", lambda a: a[:, :0]), ""),
        (array("decoder.scale", lambda a: a[:-1]), ""), (array("decoder.scale", None), ""),
        *((side("decoder", **changes), "") for changes in (
            {"heads": 0}, {"heads": 7}, {"heads": "4"}, {"alpha": "none"}, {"output": None},
            {"output": NONE},
        )),
        (side("encoder", memory=None), ""), (side("encoder", memory=NONE), ""),
        *((side(name, **changes), "") for name in ("decoder", "encoder") for changes in (
            {"hidden": 10**9}, {"hidden": None}, {"layers": []}, {"layers": 3},
            {"layers": [{}] * 2}, {"norm": "x"}, {"embedding_scale": 10**400},
            {"embedding": {"weight": 3}}, {"embedding": NONE},
        )),
    ],
    "exported classifier": [
        *((settings(format=number), "another version of resmlp-mt") for number in (None, 7, "6")),
        *((settings(**changes), "") for changes in (
            {"classes": "abcdefghij"}, {"classes": ["x"]}, {"pictures": 3}, {"pictures": {}},
            *({"pictures": PICTURES | wrong} for wrong in (
                {"image_size": 10**6}, {"crop_pct": 0}, {"image_size": 8.0}, {"in_chans": 1},
            )),
        )),
    ],
    "exported traced classifier": [
        (graph(multiply), ""), (graph(rename_an_input), ""),
        (graph(steal), "classifier.onnx has weights in another file"),
    ],
    "compressed translator": [
        (file(PACKED, lambda _: gzip.compress(bytes(2**24))), f"{PACKED}.*8 times its size"),
        (file(PACKED, lambda _: gzip.compress(b"x" * 99)[:-9]), f"{PACKED}.*breaks off"),
        (file(PACKED, lambda _: b"x" * 99), f"{PACKED}.*incorrect header"),
    ],
}  # fmt: skip
FILES = [(kind, i) for kind, ways in HOSTILE.items() for i in range(len(ways))]


@pytest.mark.parametrize(("kind", "way"), FILES)
def test_a_hostile_file_is_refused(kind, way, whole, tmp_path, monkeypatch):
    spoil, said = HOSTILE[kind][way]
    model = Path(shutil.copytree(whole[kind], tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_bytes(bytes(12))
    spoil(model)
    said = said or ("broken export" if "export" in kind else "not a checkpoint")
    with pytest.raises(UserError, match=said):
        use(model)


@pytest.mark.parametrize("name", ["exported translator", "exported classifier"])
def test_a_byte_of_damage_to_an_export_is_seen(name, whole, tmp_path):
    model = Path(shutil.copytree(whole[name], tmp_path / "model"))
    for path in (path for path in model.iterdir() if path.name != CONFIG):
        data = path.read_bytes()
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 4]) + data[-8:])
        with pytest.raises(UserError, match=f"{path.name}: damaged"):
            use(model)
        path.write_bytes(data)
    use(model)


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
    for command in commands:
        done = run("resmlp-mt", *command, cwd=tmp_path, check=False)
        assert_refused(done)
        is_pickle = text.with_name("as_pickle-value") in command
        assert is_pickle or "model.pt: refused, since it" in done.stderr
    assert not list(poisoned.glob("pwned*"))
