"""Whole files to begin with: tiny models with random weights, pictures, and archives of them."""

import shutil
import tarfile
from pathlib import Path

import numpy as np
import torch
from fairseq import checkpoint_utils, tasks
from omegaconf import OmegaConf
from PIL import Image

from examples.lesson.sentences import sentence_pairs
from resmlp_mt.checkpoints.pack import save_weights
from resmlp_mt.data.subwords import load_subwords, train_subwords
from resmlp_mt.export.parallel_text import ParallelText
from resmlp_mt.export.shortlist import ShortlistText
from resmlp_mt.export.writer import export_model
from resmlp_mt.files.finding import PRETRAINED

LANGUAGES = "en", "de"
# Two translators that share nothing but the dictionary, and two classifiers.
_TRANSLATORS = {
    "toeplitz": dict(token_mixer="projected-toeplitz", norm="layer", share_all_embeddings=True),
    "linear": dict(
        token_mixer="linear",
        norm="affine",
        share_all_embeddings=False,
        no_token_positional_embeddings=False,
        encoder_learned_pos=True,
    ),
}
_CLASSIFIERS = {
    "average": dict(norm="affine", pooling="average"),
    "class-mlp": dict(norm="layer", pooling="class-mlp"),
    "traced": dict(norm="affine", pooling="average", token_mixer="mlp"),  # a graph
}
_POSITIONS, _SIDE = 12, 8


def make_translators(root: Path) -> list[Path]:
    """Folders with a checkpoint, dictionaries and subwords."""
    torch.manual_seed(1)
    lines = [line for pair in sentence_pairs(300) for line in pair]
    root.mkdir()
    (root / "spm.model").write_bytes(train_subwords(lines, 120, "bpe"))
    pieces = load_subwords(root / "spm.model")
    names = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    text = "".join(f"{name} 7\n" for name in names if name not in ("<s>", "</s>", "<unk>"))
    folders = []
    for name, flags in _TRANSLATORS.items():
        folder = root / name
        folder.mkdir()
        shutil.copy(root / "spm.model", folder)
        for lang in LANGUAGES:
            (folder / f"dict.{lang}.txt").write_text(text, encoding="utf-8")
        state = _shipped("multi30k-en-de")
        sizes = dict.fromkeys(("max_source_positions", "max_target_positions"), _POSITIONS)
        sides = [f"{side}_{size}" for side in ("encoder", "decoder") for size in ("", "ffn_")]
        sizes |= {f"{side}embed_dim": 8 for side in sides}
        sizes |= dict(encoder_layers=1, decoder_layers=2, decoder_attention_heads=2, mixing_heads=2)
        state["cfg"].model.update(sizes | flags)
        state["cfg"].task.update(max_source_positions=_POSITIONS, max_target_positions=_POSITIONS)
        state["cfg"].task.data = str(folder)
        _randomise(state, folder / "model.pt")
        folders.append(folder)
    return folders


def make_classifiers(root: Path) -> list[Path]:
    """Folders with a checkpoint."""
    torch.manual_seed(1)
    folders = []
    for name, flags in _CLASSIFIERS.items():
        state = _shipped("cifar10")
        state["cfg"].model.update(dict(embed_dim=8, layers=1, patch_size=4) | flags)
        state["cfg"].task.image_size = _SIDE
        folder = root / name
        folder.mkdir(parents=True)
        _randomise(state, folder / "model.pt")
        folders.append(folder)
    return folders


def _shipped(name: str) -> dict:
    state = checkpoint_utils.load_checkpoint_to_cpu(str(PRETRAINED / name / "model.pt"))
    OmegaConf.set_struct(state["cfg"], False)
    return state


def _randomise(state: dict, path: Path) -> None:
    task = tasks.setup_task(state["cfg"].task, from_checkpoint=True)
    task.load_state_dict(state["task_state"])
    state["model"] = task.build_model(state["cfg"].model, from_checkpoint=True).state_dict()
    state["cfg"].task.data = "."
    save_weights(state, path)


def make_exports(root: Path, models: list[Path]) -> list[Path]:
    """Folders that `export_model` makes of these models, and of one in int8 and compressed."""
    folders = [root / model.name for model in models]
    for model, folder in zip(models, folders, strict=True):
        export_model(model, folder, int8=False)
    folders += [root / f"{models[0].name}-{kind}" for kind in ("int8", "compressed")]
    for folder, bits in zip(folders[-2:], (None, 6), strict=True):
        export_model(models[0], folder, int8=True, weight_bits=bits)
    return folders


def make_learned_export(folder: Path, model: Path) -> Path:
    """An export of a translator in int8 with what is learned from text: a shortlist, a preview."""
    words = [[side.split()[0] for side in pair] for pair in sentence_pairs(40)]
    paths = folder.with_name("words.en"), folder.with_name("words.de")
    for path, lines in zip(paths, zip(*words, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = ParallelText(*paths)
    export_model(model, folder, int8=True, shortlist=ShortlistText(text), preview=text)
    return folder


def make_pictures(folder: Path) -> list[Path]:
    """Pictures of all formats and of most modes, with metadata, and some that promise too much."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 255, (19, 23, 4), dtype=np.uint8)
    colour, clear = Image.fromarray(pixels[..., :3].copy()), Image.fromarray(pixels)
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a picture"
    palette = colour.convert("P")
    grey = Image.fromarray(rng.integers(0, 2**16, (9, 8)).astype(np.uint16))
    frames = [colour, colour.rotate(90), palette.convert("RGB")]
    more = dict(save_all=True, append_images=frames[1:])
    colour.save(folder / "colour.png", exif=exif)
    clear.save(folder / "clear.png")
    palette.save(folder / "palette.png", transparency=3)
    grey.save(folder / "grey.png")
    colour.convert("1").save(folder / "bits.png")
    colour.save(folder / "frames.png", **more)
    colour.save(folder / "colour.jpg", exif=exif, icc_profile=bytes(400))
    colour.save(folder / "progressive.jpg", progressive=True)
    colour.convert("CMYK").save(folder / "cmyk.jpg")
    colour.convert("L").save(folder / "grey.jpeg")
    palette.save(folder / "still.gif")
    colour.save(folder / "frames.gif", **more)
    colour.save(folder / "colour.webp", exif=exif)
    clear.save(folder / "clear.webp", lossless=True)
    colour.save(folder / "frames.webp", **more)
    # A few kilobytes that unpack to much: within the limit, and far beyond it.
    for name, side in (("large.png", 4000), ("bomb.png", 20_000)):
        Image.new("1", (side, side)).save(folder / name)
    Image.new("L", (4000, 4000)).save(folder / "large.jpg", progressive=True)
    return sorted(folder.iterdir())


def make_archives(root: Path, pictures: list[Path]) -> list[Path]:
    """Tars of train/CLASS/PICTURE, plain and compressed."""
    root.mkdir()
    small = [path for path in pictures if path.stat().st_size < 5000 and path.suffix == ".png"]
    archives = []
    for kind in ("", ".gz", ".xz"):
        archives.append(root / f"pictures.tar{kind}")
        with tarfile.open(archives[-1], f"w:{kind[1:]}") as tar:
            for i, path in enumerate(small):
                tar.add(path, f"train/class{i % 2}/{path.name}")
            link = tarfile.TarInfo("train/class0/link.png")
            link.type, link.linkname = tarfile.SYMTYPE, small[0].name
            tar.addfile(link)
    return archives
