import io
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from resmlp_mt.data import crops
from resmlp_mt.data.augment import AugmentPicture
from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.data.pixels import BrokenImage, decode
from resmlp_mt.data.real_labels import read_real_labels
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.augmentation import RecipeConfig
from resmlp_mt.tasks.batches import AllInBatches
from resmlp_mt.tasks.image_dataset import ImageDataset

CLASSES = ("ant", "bee", "Cow")
SIZE = 8  # of what is cut out
RATIO = (3 / 4, 4 / 3)


def centre(image: Image.Image, *cut) -> torch.Tensor:
    return torch.from_numpy(crops.Cut(3, *cut)(image))


def random_part(image: Image.Image, *how) -> torch.Tensor:
    *how, draw = how
    return torch.from_numpy(crops.RandomPart(*how)(image, draw))


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def gradient(width: int, height: int) -> Image.Image:
    """Red is the column, green is the row."""
    down, across = np.mgrid[:height, :width].astype(np.uint8)
    return Image.fromarray(np.stack([across, down, 0 * down], 2))


def encode(image: Image.Image, form: str = "PNG", **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def decoded(image: Image.Image, form: str = "PNG", in_chans: int = 3, **options) -> np.ndarray:
    return np.asarray(decode(encode(image, form, **options), in_chans, "x")).astype(int)


def fill(root: Path, per_class: int = 4, valid: str = "val") -> Path:
    """Images of all suffixes, some in folders of their own, among what is no image."""
    for split in ("train", valid):
        for c, name in enumerate(CLASSES):
            folder = root / split / name
            (folder / "more").mkdir(parents=True)
            for i in range(per_class):
                place = ("a.png", "b.JPG", "more/c.jpeg", f"{i}.PNG")[min(i, 3)]
                image = noise(9 + c, 11 + i, seed=10 * c + i)
                (folder / place).write_bytes(
                    encode(image, "JPEG" if "j" in place.lower() else "PNG")
                )
            (folder / "._a.png").write_bytes(b"macOS")
            (folder / "notes.txt").write_text("no image")
        (root / split / ".ipynb_checkpoints").mkdir()
    return root


def pack(root: Path, path: Path, arcname: str = ".") -> Path:
    with tarfile.open(path, f"w:{path.suffix[1:].removeprefix('tar')}") as tar:
        tar.add(root, arcname)
    return path


@pytest.fixture
def root(tmp_path) -> Path:
    return fill(tmp_path / "pictures")


@pytest.fixture
def folder(root) -> ImageFolder:
    return ImageFolder(root, "train")


def pixels_of(folder: ImageFolder) -> list[bytes]:
    return [folder.open(i).tobytes() for i in range(len(folder))]


# Folders


@pytest.mark.parametrize(
    ("suffix", "top"),
    [(".tar", "."), (".tar.gz", ""), (".tar.xz", "pictures"), (".tar", "./pictures")],
)
def test_an_archive_is_as_good_as_its_folder(root, tmp_path, suffix, top):
    archive = pack(root, tmp_path / f"x{suffix}", top)
    for split in ("train", "valid"):
        plain, packed = ImageFolder(root, split), ImageFolder(archive, split)
        assert packed.classes == plain.classes == sorted(CLASSES)
        assert packed.targets.tolist() == plain.targets.tolist() == [0] * 4 + [1] * 4 + [2] * 4
        assert packed.targets.dtype == np.int64
        assert pixels_of(packed) == pixels_of(plain)
        below = os.path.normpath(top) + "/" if "pictures" in top else ""
        assert [name.removeprefix(f"{archive}:{below}") for name in packed.names] == [
            name.removeprefix(f"{root}/") for name in plain.names
        ]


@pytest.mark.parametrize("suffix", ["", ".tar"])
def test_pictures_of_kinds_that_are_not_read_are_counted(root, tmp_path, caplog, suffix):
    for place in ("ant/a.tif", "bee/b.TIF", "bee/c.bmp"):
        noise(9, 9).save(root / "train" / place)
    folder = ImageFolder(pack(root, tmp_path / "x.tar") if suffix else root, "train")
    assert len(folder) == 12
    assert "train/: left out 1 .bmp, 2 .tif; to use them, convert" in caplog.text
    caplog.clear()
    ImageFolder(root, "valid")
    assert not caplog.text


@pytest.mark.parametrize("form", ["GIF", "webp", "jfif"])
def test_what_is_classified_is_trained_on(root, tmp_path, form):
    for name in CLASSES:
        noise(9, 9).save(root / f"train/{name}/x.{form}", "JPEG" if form == "jfif" else form)
    for path in (root, pack(root, tmp_path / "x.tar")):
        folder = ImageFolder(path, "train")
        assert len(folder) == 15 and folder.names[-1].endswith(f"/bee/x.{form}")
        assert folder.open(14).size == (9, 9)


@pytest.mark.parametrize("suffix", [".tar", ".tar.xz"])
def test_an_open_archive_can_be_pickled(root, tmp_path, suffix):
    folder = ImageFolder(pack(root, tmp_path / f"x{suffix}"), "train")
    folder.open(0)
    assert pixels_of(pickle.loads(pickle.dumps(folder))) == pixels_of(folder)


def test_links_to_folders_are_followed_unless_they_lead_round(root):
    names = len(ImageFolder(root, "train"))
    (root / "train/Cow/again").symlink_to("../bee")
    assert len(ImageFolder(root, "train")) == 2 * names - 2 * names // 3
    (root / "train/Cow/more/round").symlink_to("..")
    with pytest.raises(UserError, match="Cow/more/round: a link to a folder that it lies in"):
        ImageFolder(root, "train")


@pytest.mark.parametrize("make_link", [os.symlink, os.link])
def test_links_within_an_archive_are_followed(root, tmp_path, make_link):
    target = root / "train/ant/a.png"
    source = "../ant/a.png" if make_link is os.symlink else target
    make_link(source, root / "train/bee/z.png")
    folder = ImageFolder(pack(root, tmp_path / "x.tar"), "train")
    linked = next(i for i, name in enumerate(folder.names) if name.endswith("z.png"))
    assert folder.open(linked).tobytes() == Image.open(target).tobytes()


@pytest.mark.parametrize("suffix", ["", ".tar"])
def test_what_is_no_picture_of_the_user_is_left_out(root, tmp_path, suffix, caplog):
    names = len(ImageFolder(root, "train"))
    for folder in (root, root / "train", root / "train/ant"):  # as a Synology makes them
        (folder / "@eaDir/a.png").mkdir(parents=True)
        shutil.copy(root / "train/ant/a.png", folder / "@eaDir/a.png/SYNOPHOTO_THUMB_M.png")
    os.mkfifo(root / "train/ant/pipe.png")
    if not suffix:
        (root / "train/ant/gone.png").symlink_to("nowhere.png")
        (root / "train/ant/round.png").symlink_to("round.png")
    path = pack(root, tmp_path / "x.tar") if suffix else root
    found = ImageFolder(path, "train")
    assert len(found) == len(pixels_of(found)) == names and sorted(found.classes) == sorted(CLASSES)
    (said,) = caplog.messages
    assert "left out" in said and "pipe.png" in said
    assert suffix or ("gone.png" in said and "round.png" in said)


def test_a_link_out_of_an_archive_is_refused(root, tmp_path):
    (root / "train/bee/z.png").symlink_to("/nowhere/z.png")
    with pytest.raises(UserError, match=r"bee/z.png: a link to nowhere/z.png.*--dereference"):
        ImageFolder(pack(root, tmp_path / "x.tar"), "train")


def test_what_is_unpacked_leaves_nothing_behind(root, tmp_path):
    archive, scratch = pack(root, tmp_path / "x.tar.xz"), tmp_path / "scratch"
    scratch.mkdir()
    code = (
        "import os, sys, signal; from multiprocessing import get_context\n"
        "from resmlp_mt.data.image_folder import ImageFolder\n"
        "if __name__ == '__main__':\n"
        "    splits = [ImageFolder(sys.argv[1], s) for s in ('train', 'valid')]\n"
        "    for kind in ('fork', 'spawn'):\n"
        "        pixels = get_context(kind).Pool(1).apply(splits[1].open, (1,)).tobytes()\n"
        "        assert pixels == splits[1].open(1).tobytes()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    (tmp_path / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", str(archive)],
        env=os.environ | {"TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.name for path in scratch.iterdir() if path.is_file()] == []


def cut_after(path: Path, beyond: int) -> None:
    """End a tar so many bytes after the header of its last picture begins."""
    with tarfile.open(path) as tar:
        last = [member for member in tar if member.size > 200][-1]
    os.truncate(path, last.offset + beyond)


BROKEN = {
    "missing": ("x.tar", Path.unlink),
    "empty": ("x.tar", lambda path: path.write_bytes(b"")),
    "text": ("x.tar", lambda path: path.write_bytes(b"text" * 500)),
    "cut in a picture": ("x.tar", lambda path: cut_after(path, 700)),
    "cut in a header": ("x.tar", lambda path: cut_after(path, 100)),
    "cut between": ("x.tar", lambda path: cut_after(path, 0)),
    "cut gzip": ("x.tar.gz", lambda path: os.truncate(path, path.stat().st_size // 2)),
    "cut xz": ("x.tar.xz", lambda path: os.truncate(path, path.stat().st_size // 2)),
}


@pytest.mark.parametrize(("name", "harm"), BROKEN.values(), ids=BROKEN)
def test_a_broken_archive_is_refused(root, tmp_path, name, harm):
    path = pack(root, tmp_path / name)
    harm(path)
    with pytest.raises(UserError, match=f"{name}: "):
        ImageFolder(path, "train")


WRONG = {
    "no such split": ("test", lambda train: None, "found train/, val/"),
    "an empty class": ("train", lambda train: (train / "empty").mkdir(), "empty/"),
    "no folder of a class": (
        "train",
        lambda train: [shutil.rmtree(train), train.mkdir(), noise(4, 4).save(train / "1.png")],
        "a folder per class",
    ),
}


@pytest.mark.parametrize("suffix", ["", ".tar"])
@pytest.mark.parametrize(("split", "change", "said"), WRONG.values(), ids=WRONG)
def test_folders_that_are_not_of_classes_are_refused(root, tmp_path, suffix, split, change, said):
    change(root / "train")
    path = pack(root, tmp_path / "x.tar", "top") if suffix else root
    with pytest.raises(UserError, match=said):
        ImageFolder(path, split)


def test_folders_that_are_numbers_are_the_classes_of_these_places(tmp_path, caplog):
    """As ImageNet-V2 has them: 0, 1, 2 ... without leading zeros."""
    for i in range(12):
        (tmp_path / "val" / str(i)).mkdir(parents=True)
        noise(4, 4).save(tmp_path / "val" / str(i) / f"{i}.png")
    names = [f"n{i:02}" for i in range(12)]
    for classes in (names, list(map(str, range(12)))):
        folder = ImageFolder(tmp_path, "valid")
        assert folder.classes == list(map(str, range(12)))
        folder.align(classes)
        assert folder.classes == classes
        for name, target in zip(folder.names, folder.targets, strict=True):
            assert name.endswith(f"/{target}/{target}.png")
    assert caplog.text.count("its folders are numbers; 0 is class n00") == 1
    with pytest.raises(UserError, match="it lacks n00"):
        ImageFolder(tmp_path, "valid").align([*names, "n12"])


@pytest.mark.parametrize(
    "text, said",
    [
        (None, "real.json"),
        ("[" * 100_000, "real.json"),
        ("[[true]]", "real.json"),
        ("[[0, 3]]", "image 1"),
        ("[]", "ILSVRC2012_val_00000001.JPEG"),
    ],
)
def test_labels_that_do_not_fit_the_images_are_refused(text, said, tmp_path):
    path = tmp_path / "real.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=re.escape(said)):
        read_real_labels(path, ["val/x/ILSVRC2012_val_00000001.JPEG"], 3)
    path.write_text("[[0], [], [2, 1]]")
    with pytest.raises(UserError, match="val/a.jpeg has no number"):
        read_real_labels(path, ["val/a.jpeg"], 3)
    names = [f"ILSVRC2012_val_{i:08}.JPEG" for i in (3, 1, 2)]
    assert read_real_labels(path, names, 3).int().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]


# Decoding


def test_16_bits_are_scaled_not_clipped():
    values = np.array([[0, 255, 256, 128 * 257, 65534, 65535]], dtype=np.uint16)
    for in_chans in (1, 3):
        shape = (1, 6) if in_chans == 1 else (1, 6, 3)
        pixels = decoded(Image.fromarray(values), in_chans=in_chans)
        assert pixels.shape == shape
        assert pixels.reshape(6, -1)[:, 0].tolist() == [0, 0, 1, 128, 255, 255]
    assert decoded(Image.fromarray(values), in_chans=1, transparency=256).tolist() == [
        [0, 0, 255, 128, 255, 255]
    ]


@pytest.mark.parametrize(("alpha", "white"), [(0, 1.0), (255, 0.0), (51, 0.8)])
@pytest.mark.parametrize("in_chans", [1, 3])
def test_transparency_shows_white(alpha, white, in_chans):
    grey = Image.new("LA", (2, 1), (100, alpha))
    colour = Image.new("RGBA", (2, 1), (100, 100, 100, alpha))
    palette = Image.new("P", (2, 1), 1)
    palette.putpalette([7, 7, 7, 100, 100, 100])
    expected = np.full((1, 2, 3)[: 3 if in_chans == 3 else 2], 100 + white * 155)
    for image, options in (
        (grey, {}),
        (colour, {}),
        (palette, {"transparency": bytes([9, alpha])}),
    ):
        assert np.abs(decoded(image, in_chans=in_chans, **options) - expected).max() <= 1


@pytest.mark.parametrize(
    ("orientation", "turn"),
    [
        (1, lambda x: x),
        (2, np.fliplr),
        (3, lambda x: np.rot90(x, 2)),
        (6, lambda x: np.rot90(x, -1)),
    ],
)
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_exif_turns_images_upright(orientation, turn, form):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = gradient(48, 32)
    pixels = decoded(image, form, exif=exif.tobytes())
    assert pixels.shape == turn(np.asarray(image)).shape
    assert np.abs(pixels - turn(np.asarray(image).astype(int))).max() <= (
        8 if form == "JPEG" else 0
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", r"broken image \(empty file\); copy the file again"),
        (b"hello", "not PNG, JPEG, GIF or WebP; convert"),
        (encode(noise(40, 40), "BMP"), "not PNG, JPEG, GIF or WebP; convert"),
        (encode(noise(40, 40))[:900], r"broken image \(.*\); copy the file again"),
        (encode(noise(40, 40), "JPEG")[:900], r"broken image \(.*truncated.*\); copy the file"),
    ],
    ids=["empty", "text", "bmp", "cut png", "cut jpeg"],
)
def test_no_image_is_named_with_the_reason(data, reason):
    with pytest.raises(BrokenImage, match=rf"^a/x.png: {reason}[^\n]* or remove it$"):
        decode(data, 3, "a/x.png")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BrokenImage, match="^gone.png: No such file or directory$"):
        decode(tmp_path / "gone.png", 3, "gone.png")
    with pytest.raises(BrokenImage, match="^folder: Is a directory$"):
        decode(tmp_path, 3, "folder")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    "size",
    # Pillow warns of the first and refuses the second; lines cost memory even where they are short.
    [(10_000, 10_000), (14_000, 14_000), (1, 2**16), (2**16, 1)],
    ids=str,
)
def test_a_decompression_bomb_is_refused(size):
    bomb = encode(Image.new("1", size), compress_level=1)
    with pytest.raises(BrokenImage, match="89 million pixels, or 65,535 a side; make it smaller"):
        decode(bomb, 3, "x.png")
    assert decode(encode(Image.new("1", (1, 2**16 - 1))), 1, "x.png").size == (1, 2**16 - 1)


def test_a_jpeg_of_many_scans_is_refused():
    data = encode(noise(40, 30), "JPEG", progressive=True)
    last, scans = data[data.rindex(b"\xff\xda") : -2], data.count(b"\xff\xda")
    # Not those of a thumbnail among the notes.
    thumbnail = data * 9
    note = b"\xff\xe2" + (2 + len(thumbnail)).to_bytes(2, "big") + thumbnail
    data = data[:2] + note + data[2:-2]
    few = data + last * (50 - scans) + b"\xff\xd9"
    assert decode(few, 3, "x.jpg").size == (40, 30)
    with pytest.raises(BrokenImage, match=r"x.jpg: broken image \(51 scans\)"):
        decode(few[:-2] + last + b"\xff\xd9", 3, "x.jpg")


@pytest.mark.filterwarnings("ignore")
def test_hostile_bytes_are_an_image_or_broken():
    draw = np.random.default_rng(1)
    palette = noise(12, 10).quantize(16)
    seeds = [
        encode(noise(12, 10)),
        encode(noise(12, 10), "JPEG", exif=b"Exif\x00\x00" + Image.Exif().tobytes()),
        encode(palette, transparency=bytes(16)),
        encode(palette, "GIF"),
    ]
    broken = 0
    for i in range(240):
        data = bytearray(seeds[i % 4])
        for place in draw.integers(0, len(data) // (1 + i % 3), draw.integers(1, 8)):
            data[place] = draw.integers(256)
        try:
            image = decode(bytes(data[: len(data) - i % 2 * int(draw.integers(40))]), 3, "x")
            assert image.mode == "RGB"
        except BrokenImage:
            broken += 1
    assert 50 < broken < 240


# Geometry


@pytest.mark.parametrize(
    "size", [(500, 375), (251, 333), (40, 60), (999, 250), (2000, 90), (224, 224)]
)
def test_evaluation_is_resizing_and_cutting_the_centre(size):
    image, short = noise(*size), 248  # floor(224 / 0.9)
    if is_long := max(size) > 4 * min(size):
        image = image.point(lambda v: 64 + v // 2)
    width, height = (int(short * side / min(size)) for side in size)
    left, top = round((width - 224) / 2), round((height - 224) / 2)
    whole = image.resize((width, height), Image.Resampling.BICUBIC)
    expected = np.asarray(whole.crop((left, top, left + 224, top + 224))).astype(int)
    result = centre(image, 224, 0.9, "bicubic")
    assert (result.shape, result.dtype) == ((3, 224, 224), torch.uint8)
    assert result.is_contiguous()
    off = np.abs(result.permute(1, 2, 0).numpy() - expected)
    # Of a long image the part alone is resized. Pillow rounds after each of two passes, whose order
    # depends on the sizes. (It also cuts off what overshoots 0 to 255 in between: hence the
    # middling noise.)
    assert off.max() <= (2 if is_long else 0)


def box_of(crop: torch.Tensor) -> np.ndarray:
    """Left, top, width and height of what was cut out of a gradient, each within 2 pixels."""
    size = crop.shape[1]
    near, far = size // 4, size - 1 - size // 4  # the kernel is cut off at the edges
    values = crop[:2].double().mean(dim=(2,)), crop[:2].double().mean(dim=(1,))
    lines = values[1][0], values[0][1]  # red by column, green by row
    sides = [float(line[far] - line[near]) / (far - near) * size for line in lines]
    starts = [
        float(line[near]) + 0.5 - (near + 0.5) * side / size
        for line, side in zip(lines, sides, strict=True)
    ]
    return np.array([*starts, *sides])


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "random"])
def test_random_parts_keep_to_their_ranges_and_fill_them(interpolation):
    image, draw, scale = gradient(240, 200), np.random.default_rng(1), (0.2, 0.5)
    boxes = np.array(
        [box_of(random_part(image, 32, scale, RATIO, interpolation, draw)) for _ in range(300)]
    )
    left, top, width, height = boxes.T
    assert min(left.min(), top.min()) > -2
    assert (left + width).max() < 242
    assert (top + height).max() < 202
    area, ratio = width * height / (240 * 200), width / height
    assert 0.19 < area.min() < 0.23
    assert 0.46 < area.max() < 0.52
    assert area.mean() == pytest.approx(0.35, abs=0.02)
    assert 0.72 < ratio.min() < 0.79
    assert 1.26 < ratio.max() < 1.38
    assert np.log(ratio).mean() == pytest.approx(0, abs=0.05)
    for start, side, whole in ((left, width, 240), (top, height, 200)):
        assert (start / (whole - side)).mean() == pytest.approx(0.5, abs=0.06)


# Datasets


def make(folder: ImageFolder, train: bool = True, augment=None, **flags) -> ImageDataset:
    cut = crops.RandomPart(SIZE, augment=augment) if train else crops.Cut(3, SIZE, 0.8)
    return ImageDataset(folder, cut, train=train, **flags)


def batches_of(dataset: ImageDataset, epoch: int = 1, num_workers: int = 0) -> list[dict]:
    iterator = AllInBatches(SimpleNamespace()).get_batch_iterator(
        dataset, max_sentences=4, epoch=epoch
    )
    # Not fairseq's own loader: to be rid of it takes five seconds a worker.
    return list(
        DataLoader(
            dataset,
            batch_sampler=iterator.frozen_batches,
            collate_fn=dataset.collater,
            num_workers=num_workers,
            multiprocessing_context="fork" if num_workers else None,
        )
    )


def test_evaluation_has_all_images_in_order(folder):
    dataset = make(folder, train=False)
    batches = batches_of(dataset)
    assert torch.cat([b["id"] for b in batches]).tolist() == list(range(12))
    for i in range(12):
        image = batches[i // 4]["net_input"]["images"][i % 4]
        assert torch.equal(image, centre(folder.open(i), SIZE, 0.8, "bicubic"))
    assert dataset.can_reuse_epoch_itr_across_epochs
    assert not make(folder).can_reuse_epoch_itr_across_epochs


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("batch_size", [5, 100])
def test_the_last_batch_is_kept(folder, train, batch_size):
    iterator = AllInBatches(SimpleNamespace()).get_batch_iterator(
        make(folder, train=train), max_sentences=batch_size, required_batch_size_multiple=8
    )
    assert sum(len(batch) for batch in iterator.frozen_batches) == 12


def test_a_random_part_depends_on_seed_epoch_index_and_copy_alone(folder):
    def image(seed, epoch, i):
        dataset = make(folder, seed=seed, repeats=3)
        dataset.set_epoch(epoch)
        return dataset[i]["images"]

    base = image(1, 1, 0)
    dataset = make(folder)
    for i in (5, 2, 0):  # whatever came before
        last = dataset[i]["images"]
    assert torch.equal(last, base)
    for other in (image(2, 1, 0), image(1, 2, 0), image(1, 1, 12), image(1, 1, 24)):
        assert not torch.equal(other, base)


@pytest.mark.parametrize("suffix", [".tar", ".tar.xz"])
def test_workers_change_nothing(root, tmp_path, suffix):
    folder = ImageFolder(pack(root, tmp_path / f"x{suffix}"), "train")
    folder.open(0)  # what the workers inherit is open
    augment = AugmentPicture(RecipeConfig(aa="rand-m9-mstd0.5-inc1"), (0.5,) * 3, "bicubic")
    for epoch in (1, 2):
        alone = batches_of(make(folder, repeats=2, augment=augment), epoch)
        shared = batches_of(make(folder, repeats=2, augment=augment), epoch, num_workers=2)
        assert len(alone) == len(shared) == 3
        for one, other in zip(alone, shared, strict=True):
            assert torch.equal(one["id"], other["id"])
            assert torch.equal(one["net_input"]["images"], other["net_input"]["images"])


@pytest.mark.parametrize("repeats", [1, 2, 3, 5])
def test_an_epoch_repeats_some_images_side_by_side(folder, repeats):
    dataset, epochs = make(folder, repeats=repeats), []
    for seed in range(20):
        np.random.seed(seed)
        indices = dataset.ordered_indices()
        assert len(indices) == len(set(indices)) == len(folder) == len(dataset)
        images, copies = indices % 12, indices // 12
        assert len(set(images)) == -(-12 // repeats)
        assert (copies == np.arange(12) % repeats).all()
        assert (images == np.repeat(images[::repeats], repeats)[:12]).all()
        epochs.append(images)
    assert set(np.concatenate(epochs)) == set(range(12))
    assert len({tuple(images) for images in epochs}) == 20


def test_views_are_parts_of_their_own(tmp_path):
    for i in range(2):
        (tmp_path / "train" / str(i)).mkdir(parents=True)
        gradient(200, 200).save(tmp_path / "train" / str(i) / "x.png")
    folder = ImageFolder(tmp_path, "train")
    views = ((2, (0.5, 1.0)), (4, (0.05, 0.2)))
    cut = crops.Views([(count, crops.RandomPart(32, scale)) for count, scale in views])
    dataset = ImageDataset(folder, cut, train=True)
    images = dataset[0]["images"]
    assert images.shape == (6, 3, 32, 32)
    boxes = np.array([box_of(view) for view in images])
    areas = boxes[:, 2] * boxes[:, 3] / 200**2
    assert areas[:2].min() > 0.45
    assert areas[2:].max() < 0.25
    assert len({tuple(box.round()) for box in boxes}) == 6
    assert dataset.collater([dataset[0], dataset[1]])["net_input"]["images"].shape[:2] == (2, 6)
    dataset.set_epoch(2)
    assert not torch.equal(dataset[0]["images"], images)
    fixed = ImageDataset(folder, cut, train=False)
    before = fixed[0]["images"]
    fixed.set_epoch(2)
    assert torch.equal(fixed[0]["images"], before)


# Broken images


@pytest.fixture
def damaged(root) -> ImageFolder:
    """Image 1 of the training images is broken."""
    folder = ImageFolder(root, "train")
    Path(folder.names[1]).write_bytes(b"")
    return folder


def test_the_next_image_takes_the_place_of_a_broken_one_with_one_warning(damaged, caplog):
    dataset = make(damaged, repeats=2)
    batch = dataset.collater([dataset[i] for i in (0, 1, 13, 2, 1)])
    assert batch["id"].tolist() == [0, 1, 13, 2, 1]
    images = batch["net_input"]["images"]
    assert torch.equal(images[1], images[3]) and not torch.equal(images[1], images[2])
    assert batch["target"].tolist() == [int(damaged.targets[i]) for i in (0, 2, 2, 2, 2)]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert damaged.names[1] in caplog.text
    assert "empty file" in caplog.text


def test_evaluation_refuses_broken_images(damaged):
    with pytest.raises(BrokenImage, match=f"{damaged.names[1]}: .*empty file"):
        make(damaged, train=False)[1]


def test_a_file_that_cannot_be_read_stops_training(folder):
    Path(folder.names[1]).unlink()
    with pytest.raises(UserError, match=f"{folder.names[1]}: cannot be read") as caught:
        make(folder)[1]
    assert not isinstance(caught.value, BrokenImage)


def test_squash_keeps_the_whole_image_and_a_square_is_cut_at_random():
    image = gradient(60, 30)
    squashed = crops.Cut(3, 12, 1.0, "bilinear", "squash")(image)
    expected = np.asarray(image.resize((12, 12), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert (squashed == expected).all()
    middle = crops.Cut(3, 12, 0.5, "bilinear", "squash")(image)
    whole = np.asarray(image.resize((24, 24), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(middle.astype(int) - whole[:, 6:18, 6:18]).max() <= 1
    generator, corners = np.random.default_rng(1), set()
    for _ in range(200):
        pixels = crops.SquarePart(14, 12, "bilinear")(image, generator).transpose(1, 2, 0)
        (corner,) = [
            (r, c)
            for r in range(3)
            for c in range(3)
            if (pixels == np.asarray(image.resize((14, 14), 2).crop((c, r, c + 12, r + 12)))).all()
        ]
        corners.add(corner)
    assert len(corners) == 9
