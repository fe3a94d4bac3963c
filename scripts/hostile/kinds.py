"""The kinds of hostile files: for each how they are made from whole ones, and how they are used."""

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from PIL import Image

from hostile import seeds
from hostile.checkpoints import mutate_checkpoint
from hostile.exports import mutate_export
from hostile.images import mutate_chunks, mutate_headers, mutate_scans
from hostile.mutate import mutate_bytes, mutate_text
from hostile.subwords import mutate_subwords
from resmlp_mt.analysis.matrices import read_matrices
from resmlp_mt.checkpoints.pack import pack_model
from resmlp_mt.data.crops import Cut
from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.data.pixels import decode
from resmlp_mt.engines.classifier import Classifier
from resmlp_mt.export.writer import export_model
from resmlp_mt.translating.translator import Translator

_SENTENCES = ("The dog sleeps.", "", "Über \u2028 \x01 <s> </s> 😀 \ufffe " * 4, "x" * 300)


class Models:
    """Folders with a checkpoint in which one file is hostile.

    Args:
        seeds: The whole folders.
        mutate: (generator, bytes of a file) -> bytes.
        uses: Functions to call with a folder.
        names: The files to mutate.
    """

    def __init__(
        self,
        seeds: list[Path],
        names: tuple[str, ...],
        mutate: Callable[[Random, bytes], bytes],
        uses: tuple[Callable[[Path], None], ...],
    ):
        self.seeds, self.names, self.mutate, self.uses = seeds, names, mutate, uses

    def whole(self) -> list[Callable[[], None]]:
        """Calls that use the whole folders, and must raise nothing."""
        return [partial(self.uses[0], seed) for seed in self.seeds]

    def make(self, rng: Random, folder: Path) -> Callable[[], None]:
        """Fill a folder with a hostile model; returns a call that uses it."""
        model = Path(shutil.copytree(rng.choice(self.seeds), folder / "model"))
        target = model / rng.choice([name for name in self.names if (model / name).is_file()])
        if rng.random() < 0.04:  # another file in its place
            other = rng.choice([p for seed in self.seeds for p in seed.iterdir()])
            shutil.copy(other, target)
        else:
            target.write_bytes(self.mutate(rng, target.read_bytes()))
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
        """Calls that decode the pictures but the bombs, and must raise nothing."""
        small = [path for path in self.pictures if path.stem != "bomb"]
        return [partial(_decode, path, 3) for path in small]

    def make(self, rng: Random, folder: Path) -> Callable[[], None]:
        """Write a hostile picture; returns a call that decodes it."""
        seed = rng.choice(self.pictures)
        mutate = rng.choice((mutate_bytes, mutate_chunks, mutate_scans))
        path = folder / seed.name
        path.write_bytes(mutate(rng, seed.read_bytes()))
        return partial(_decode, path, rng.choice((1, 3)))


class Archives:
    """Tars of pictures."""

    def __init__(self, archives: list[Path]):
        self.archives = archives

    def whole(self) -> list[Callable[[], None]]:
        """Calls that read the whole archives, and must raise nothing."""
        return [partial(_read, path) for path in self.archives]

    def make(self, rng: Random, folder: Path) -> Callable[[], None]:
        """Write a hostile archive; returns a call that reads all of its pictures."""
        seed = rng.choice(self.archives)
        mutate = mutate_bytes
        if seed.suffix == ".tar":
            mutate = rng.choice((mutate_bytes, mutate_headers))
        path = folder / seed.name
        path.write_bytes(mutate(rng, seed.read_bytes()))
        return partial(_read, path)


def _decode(path: Path, channels: int) -> None:
    Cut(channels, 8, 0.9)(decode(path, channels, path.name))


def _read(archive: Path) -> None:
    images = ImageFolder(archive, "train")
    for i in range(len(images)):
        Cut(3, 8, 0.9)(images.open(i))


def _translate(model: Path) -> None:
    Translator.from_pretrained(model, "cpu", threads=1).translate(_SENTENCES, beam=2)


def _classify(model: Path) -> None:
    picture = Image.linear_gradient("L").convert("RGB")
    list(Classifier.from_pretrained(model, "cpu").classify([picture]))


def _export(model: Path) -> None:
    export_model(model, model.with_name("exported"), int8=False)


def _pack(model: Path) -> None:
    pack_model(model, model.with_name("packed"), half=True)


def _read_matrices(model: Path) -> None:
    read_matrices(model)


def build(name: str, root: Path):
    """A kind by its name; its whole files are made in `root`."""
    if name in ("image", "archive"):
        pictures = seeds.make_pictures(root / "pictures")
        if name == "image":
            return Pictures(pictures)
        return Archives(seeds.make_archives(root / "archives", pictures))
    if name.startswith("image-"):
        models, use = seeds.make_classifiers(root / "models"), _classify
    else:
        models, use = seeds.make_translators(root / "models"), _translate
    if name.endswith("checkpoint"):
        uses = (use, use, use, _export, _pack, _read_matrices)
        return Models(models, ("model.pt",), mutate_checkpoint, uses)
    exports = seeds.make_exports(root / "exports", models)
    if use is _translate:
        exports.append(seeds.make_learned_export(root / "exports" / "learned", models[0]))
    if name == "dictionary":
        return Models(models + exports, ("dict.en.txt", "dict.de.txt"), mutate_text, (use,))
    if name == "subwords":
        return Models(models + exports, ("spm.model",), mutate_subwords, (use,))
    files = (
        "export.json",
        "classifier.onnx",
        "mixing.safetensors",
        "weights.safetensors",
        "weights.safetensors.gz",
    )
    files += ("shortlist.safetensors", "preview.safetensors")
    return Models(exports, files, mutate_export, (use,))


NAMES = (
    "checkpoint", "image-checkpoint", "dictionary", "subwords", "export", "image-export", "image",
    "archive",
)  # fmt: skip
