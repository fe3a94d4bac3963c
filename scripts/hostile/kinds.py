"""The kinds of hostile files: for each how they are made from whole ones, and how they are used."""

import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import onnx
import torch
from hostile import seeds
from hostile.mutate import mutate_bytes, mutate_text, mutate_tree
from omegaconf import OmegaConf

from resmlp_mt.data.image_files import ImageFolder, decode
from resmlp_mt.data.images import resize_and_crop
from resmlp_mt.inference.classifier import Classifier
from resmlp_mt.inference.export import export_model
from resmlp_mt.inference.matrices import read_matrices
from resmlp_mt.inference.pack import pack_model
from resmlp_mt.inference.translator import Translator

_SENTENCES = ("The dog sleeps.", "", "Über \u2028 \x01 <s> </s> 😀 \ufffe " * 4, "x" * 300)
# Where a payload writes if it is run: beside the attempt's folder.
_MARKER = "../pwned"


class Payload:
    """Runs something when a loader that runs code unpickles it."""

    def __init__(self, call: Callable, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


_PAYLOADS = (
    Payload(os.mkdir, _MARKER),
    Payload(os.system, f"touch {_MARKER}"),
    Payload(exec, f"import os; os.mkdir({_MARKER!r})"),
    Payload(eval, f"__import__('os').mkdir({_MARKER!r})"),
    Payload(subprocess.check_call, ["touch", _MARKER]),
    Payload(open, _MARKER, "w"),
    Payload(getattr, os, "mkdir"),
)


class Models:
    """Folders with a checkpoint in which one file is hostile.

    Args:
        seeds: The whole folders.
        mutate: (generator, file) -> bytes.
        use: What is done with a folder.
        names: The files to mutate.
    """

    def __init__(
        self,
        seeds: list[Path],
        names: tuple[str, ...],
        mutate: Callable[[Random, Path], bytes],
        uses: tuple[Callable[[Path], None], ...],
    ):
        self.seeds, self.names, self.mutate, self.uses = seeds, names, mutate, uses

    def whole(self) -> list[Callable[[], None]]:
        """What uses the whole folders, and must find nothing wrong."""
        return [partial(self.uses[0], seed) for seed in self.seeds]

    def make(self, rng: Random, folder: Path) -> Callable[[], None]:
        """Fill a folder with a hostile model; returns what uses it."""
        model = Path(shutil.copytree(rng.choice(self.seeds), folder / "model"))
        target = model / rng.choice([name for name in self.names if (model / name).is_file()])
        if rng.random() < 0.04:  # another file in its place
            other = rng.choice([p for seed in self.seeds for p in seed.iterdir()])
            shutil.copy(other, target)
        else:
            target.write_bytes(self.mutate(rng, target))
        if rng.random() < 0.8:
            _seal(model)
        return partial(rng.choice(self.uses), model)


def _seal(model: Path) -> None:
    """Let the checksums of an exported folder be those of its files, as a forger would."""
    try:
        config = json.loads((model / "export.json").read_text())
        sums = config["sha256"]
        for name in sums:
            sums[name] = hashlib.sha256((model / name).read_bytes()).hexdigest()
        (model / "export.json").write_text(json.dumps(config))
    except (OSError, ValueError, KeyError, TypeError):
        pass


class Pictures:
    """Single pictures."""

    def __init__(self, pictures: list[Path]):
        self.pictures = pictures

    def whole(self) -> list[Callable[[], None]]:
        """What decodes those that are no bomb, and must find nothing wrong."""
        small = [path for path in self.pictures if path.stem != "bomb"]
        return [partial(_decode, path, 3) for path in small]

    def make(self, rng: Random, folder: Path) -> Callable[[], None]:
        """Write a hostile picture; returns what decodes it."""
        seed = rng.choice(self.pictures)
        mutate = rng.choice((mutate_bytes, _mutate_chunks))
        path = folder / seed.name
        path.write_bytes(mutate(rng, seed.read_bytes()))
        return partial(_decode, path, rng.choice((1, 3)))


class Archives:
    """Tars of pictures."""

    def __init__(self, archives: list[Path]):
        self.archives = archives

    def whole(self) -> list[Callable[[], None]]:
        """What reads the whole archives, and must find nothing wrong."""
        return [partial(_read, path) for path in self.archives]

    def make(self, rng: Random, folder: Path) -> Callable[[], None]:
        """Write a hostile archive; returns what reads all of its pictures."""
        seed = rng.choice(self.archives)
        mutate = rng.choice((mutate_bytes, _mutate_headers)) if seed.suffix == ".tar" else None
        path = folder / seed.name
        path.write_bytes((mutate or mutate_bytes)(rng, seed.read_bytes()))
        return partial(_read, path)


def _decode(path: Path, channels: int) -> None:
    resize_and_crop(decode(path, channels, path.name), 8, 0.9)


def _read(archive: Path) -> None:
    images = ImageFolder(archive, "train")
    for i in range(len(images)):
        resize_and_crop(images.open(i), 8, 0.9)


def _translate(model: Path) -> None:
    Translator.from_pretrained(model, "cpu", threads=1).translate(_SENTENCES, beam=2)


def _classify(model: Path) -> None:
    from PIL import Image

    picture = Image.linear_gradient("L").convert("RGB")
    list(Classifier.from_pretrained(model, "cpu").classify([picture]))


def _export(model: Path) -> None:
    export_model(model, model.with_name("exported"), int8=False)


def _pack(model: Path) -> None:
    pack_model(model, model.with_name("packed"), half=True)


def _read_matrices(model: Path) -> None:
    read_matrices(model)


# Checkpoints


def _mutate_checkpoint(rng: Random, path: Path) -> bytes:
    data = path.read_bytes()
    how = rng.random()
    if how < 0.35:
        return mutate_bytes(rng, data)
    if how < 0.5:
        return _mutate_member(rng, data)
    state = torch.load(path, weights_only=True)
    state["cfg"] = OmegaConf.to_container(OmegaConf.create(state["cfg"]))
    if how < 0.6:
        part = rng.choice(("model", "task"))
        state["cfg"][part] = mutate_tree(rng, state["cfg"][part])
    elif how < 0.75:
        state["model"] = mutate_tree(rng, state["model"], _mutate_tensor)
    elif how < 0.92:
        state = mutate_tree(rng, state, _mutate_tensor)
    else:
        state = mutate_tree(rng, state, lambda rng, _: rng.choice(_PAYLOADS))
    buffer = io.BytesIO()
    if rng.random() < 0.1:
        pickle.dump(state, buffer)
    else:
        torch.save(state, buffer, _use_new_zipfile_serialization=rng.random() < 0.8)
    return buffer.getvalue()


def _mutate_member(rng: Random, data: bytes) -> bytes:
    """Change a file in the zip, mostly the pickle, and write it with checksums that are right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        names = old.namelist()
        pickled = next(name for name in names if name.endswith("data.pkl"))
        chosen = rng.choice((pickled, pickled, rng.choice(names)))
        for name in names:
            content = old.read(name)
            new.writestr(name, mutate_bytes(rng, content) if name == chosen else content)
    return buffer.getvalue()


def _mutate_tensor(rng: Random, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return rng.choice((torch.ones(2), [value], str(value)))
    how = rng.randrange(10)
    if how == 0:
        return value.flatten()
    if how == 1:
        return value.T.contiguous()
    if how == 2:
        return value[: max(len(value) - 1, 0)]
    if how == 3:
        return value.flatten()[:1].expand(rng.choice((10**6, 10**12)), 2)
    if how == 4:
        kinds = (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool)
        return value.to(rng.choice((*kinds, torch.complex64)))
    if how == 5:
        return torch.full_like(value, rng.choice((float("nan"), float("inf"), 1e38, 0.0)))
    if how == 6:
        return value[:0]
    if how == 7:
        return value.to_sparse()
    if how == 8:
        return value.to("meta")
    return torch.nn.Parameter(value)


# Exported folders


def _mutate_export(rng: Random, path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.8:
        return json.dumps(mutate_tree(rng, json.loads(data))).encode()
    if path.suffix == ".safetensors" and rng.random() < 0.7:
        return _mutate_safetensors(rng, data)
    if path.suffix == ".onnx" and rng.random() < 0.7:
        return _mutate_graph(rng, data)
    return mutate_bytes(rng, data)


def _mutate_safetensors(rng: Random, data: bytes) -> bytes:
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    values = data[8 + length :]
    name = rng.choice([name for name in header if name != "__metadata__"])
    entry = header[name]
    how = rng.randrange(6)
    if how == 0:  # the same bytes in another shape
        shape = entry["shape"]
        rng.shuffle(shape)
    elif how == 1:
        size = entry["data_offsets"][1] - entry["data_offsets"][0]
        entry["shape"] = rng.choice(([size // 4], [size // 4, 1], [1, 1, 1, size // 4], [1, size // 4, 1]))
    elif how == 2:
        entry["dtype"] = rng.choice(("I32", "U32"))
    elif how == 3:
        start, end = entry["data_offsets"]
        bad = struct.pack("<f", rng.choice((float("nan"), float("inf"), 1e38)))
        values = values[:start] + bad * ((end - start) // 4) + values[end:]
    elif how == 4:
        other = rng.choice(list(header))
        header[name], header[other] = header[other], header[name]
    else:
        header = mutate_tree(rng, header)
    text = json.dumps(header).encode()
    length = rng.choice((len(text),) * 9 + (2**63,))
    return struct.pack("<Q", length) + text + values


def _mutate_graph(rng: Random, data: bytes) -> bytes:
    model = onnx.load_from_string(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        rng.choice(_OF_GRAPHS)(rng, model.graph)
    return model.SerializeToString()


def _change_constant(rng: Random, graph: onnx.GraphProto) -> None:
    constant = rng.choice(graph.initializer)
    how = rng.randrange(7)
    if how == 0 and constant.dims:
        place = rng.randrange(len(constant.dims))
        constant.dims[place] = rng.choice((0, -1, 1, 2**31, 2**62, constant.dims[place] + 1))
    elif how == 1:
        constant.dims[:] = rng.sample(list(constant.dims), len(constant.dims))
    elif how == 2:
        constant.data_type = rng.randrange(24)
    elif how == 3:
        constant.raw_data = mutate_bytes(rng, constant.raw_data)
    elif how == 4:
        values = [rng.choice((-1, 0, 1, 7, 2**40, -(2**62)))] * (len(constant.raw_data) // 8)
        constant.raw_data = struct.pack(f"<{len(values)}q", *values)
    elif how == 5:
        constant.data_location = onnx.TensorProto.EXTERNAL
        place = constant.external_data.add()
        place.key, place.value = "location", rng.choice(("model/dict.en.txt", "/etc/passwd"))
    else:
        other = rng.choice(graph.initializer)
        constant.dims[:], constant.raw_data = list(other.dims), other.raw_data


def _change_node(rng: Random, graph: onnx.GraphProto) -> None:
    node = rng.choice(graph.node)
    how = rng.randrange(6)
    if how == 0:
        node.op_type = rng.choice([other.op_type for other in graph.node] + ["Loop", "If", "Scan"])
    elif how == 1 and node.input:
        names = [name for other in graph.node for name in (*other.input, *other.output)]
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif how == 2 and node.input:
        rng.choice((node.input.pop, lambda: node.input.append(node.input[0])))()
    elif how == 3 and node.attribute:
        attribute = rng.choice(node.attribute)
        attribute.i = rng.choice((-1, 0, 2, 3, 10**6, 2**62))
        attribute.f = rng.choice((0.0, -1.0, float("nan")))
        attribute.ints[:] = [rng.choice((-5, 0, 1, 2, 9)) for _ in attribute.ints]
    elif how == 4:
        node.domain = rng.choice(("", "com.microsoft", "ai.onnx.ml", "x"))
    else:
        graph.node.remove(node)


def _change_ends(rng: Random, graph: onnx.GraphProto) -> None:
    ends = rng.choice((graph.input, graph.output))
    if not ends:
        return
    end = rng.choice(ends)
    how = rng.randrange(4)
    if how == 0:
        ends.remove(end)
    elif how == 1:
        end.name += "x"
    elif how == 2:
        end.type.tensor_type.elem_type = rng.randrange(20)
    else:
        shape = end.type.tensor_type.shape
        shape.dim.add().dim_value = rng.choice((0, 1, 9))


def _insert_node(rng: Random, graph: onnx.GraphProto) -> None:
    """Put something after a node that makes much of little, or something else of another shape."""
    node = rng.choice([node for node in graph.node if node.output])
    name, new = node.output[0], f"before_{node.output[0]}"
    node.output[0] = new
    size = rng.choice((1, 2, 10**3, 10**6, 10**12))
    shape = onnx.helper.make_tensor(f"shape_{new}", 7, [3], [size, 1, 1])
    kind = rng.choice(("Expand", "Tile", "Reshape"))
    graph.initializer.append(shape)
    place = list(graph.node).index(node) + 1
    graph.node.insert(place, onnx.helper.make_node(kind, [new, shape.name], [name]))


_OF_GRAPHS = (_change_constant, _change_constant, _change_node, _change_ends, _insert_node)


# Pictures and archives


def _mutate_chunks(rng: Random, data: bytes) -> bytes:
    """Change a chunk of a PNG and set its checksum right; bytes of anything else."""
    if not data.startswith(b"\x89PNG"):
        return mutate_bytes(rng, data)
    chunks, place = [], 8
    while place + 12 <= len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        chunks.append([data[place + 4 : place + 8], data[place + 8 : place + 8 + size]])
        place += 12 + size
    for _ in range(rng.choice((1, 1, 2, 4))):
        chunk = rng.choice(chunks)
        how = rng.randrange(4)
        if how == 0:
            chunks.insert(rng.randrange(len(chunks) + 1), list(rng.choice(chunks)))
        elif how == 1:
            names = (b"zTXt", b"iCCP", b"iTXt", b"tEXt", b"eXIf", b"tRNS", b"PLTE", b"acTL", b"fcTL")
            chunk[0] = rng.choice((*names, b"fdAT", b"IDAT", b"IEND"))
        elif how == 2:
            chunk[1] = mutate_bytes(rng, chunk[1])
        else:  # text of a kilobyte that unpacks to a thousand
            chunks.insert(1, [rng.choice((b"zTXt", b"iCCP")), b"x\0\0" + _BOMB])
    packed = b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
    return data[:8] + packed


_BOMB = zlib.compress(bytes(50_000_000))


def _mutate_headers(rng: Random, data: bytes) -> bytes:
    """Change headers of a tar, and set their checksums right."""
    data = bytearray(data)
    headers = [place for place in range(0, len(data), 512) if data[place + 257 : place + 262] == b"ustar"]
    for place in rng.sample(headers, min(len(headers), rng.choice((1, 1, 3)))):
        header = data[place : place + 512]
        start, size = rng.choice(((0, 100), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 155)))
        how = rng.randrange(4)
        if how == 0:
            header[start : start + size] = rng.randbytes(size)
        elif how == 1:
            names = (b"../../etc/passwd", b"/etc/passwd", b"train", b"train/class0/link.png", b"\xff\xfe")
            header[start : start + size] = rng.choice(names)[:size].ljust(size, b"\0")
        elif how == 2:
            header[124:136] = rng.choice((b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"-1".ljust(12)))
        else:
            header[156:157] = rng.choice((b"0", b"1", b"2", b"5", b"L", b"K", b"x", b"g", b"S", b"3", b"\0"))
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        data[place : place + 512] = header
    return bytes(data)


def build(name: str, root: Path):
    """A kind by its name; its whole files are made in `root`."""
    if name in ("image", "archive"):
        pictures = seeds.make_pictures(root / "pictures")
        return Pictures(pictures) if name == "image" else Archives(seeds.make_archives(root / "tars", pictures))
    for_images = name.startswith("image-")
    make, use = (seeds.make_classifiers, _classify) if for_images else (seeds.make_translators, _translate)
    models = make(root / "models")
    if name.endswith("checkpoint"):
        return Models(models, ("model.pt",), _mutate_checkpoint, (use, use, use, _export, _pack, _read_matrices))
    exports = seeds.make_exports(root / "exports", models)
    if name == "dictionary":
        names = tuple(f"dict.{lang}.txt" for lang in seeds.LANGUAGES)
        return Models(models + exports, names, lambda rng, path: mutate_text(rng, path.read_bytes()), (use,))
    if name == "subwords":
        return Models(models + exports, ("spm.model",), lambda rng, path: mutate_bytes(rng, path.read_bytes()), (use,))
    files = ("export.json", "encoder.onnx", "step.onnx", "mixing.safetensors", "classifier.onnx")
    return Models(exports, files, _mutate_export, (use,))


NAMES = (
    "checkpoint", "image-checkpoint", "dictionary", "subwords", "export", "image-export", "image",
    "archive",
)  # fmt: skip
