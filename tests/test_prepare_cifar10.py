"""examples/cifar10/prepare.py on an archive of the real form, made small."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy
from PIL import Image

ROOT = Path(__file__).parents[1]
CLASSES = ["airplane", "cat", "dog"]


def archive(path, per_batch=7, names=None):
    """Write an archive; returns the images and classes of train and val, in its order."""
    generator, written = numpy.random.default_rng(1), {"train": [], "val": []}
    batches = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    files = {"batches.meta.txt": "\n".join(CLASSES).encode() + b"\n\n"}
    for batch in batches:
        data = b""
        for _ in range(per_batch):
            target = int(generator.integers(len(CLASSES)))
            planes = generator.integers(0, 256, (3, 32, 32), dtype=numpy.uint8)
            written["val" if "test" in batch else "train"].append((target, planes))
            data += bytes([target]) + planes.tobytes()
        files[batch] = data
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            if names is None or name in names:
                member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return written


def prepare(*arguments):
    command = [sys.executable, ROOT / "examples/cifar10/prepare.py", *arguments]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=ROOT)


def test_images_come_out_pixel_by_pixel_in_the_folders_of_their_classes(tmp_path):
    written = archive(tmp_path / "x.tar.gz")
    done = prepare(tmp_path / "x.tar.gz", "--out", tmp_path / "out", "--train", 4)
    assert done.returncode == 0, done.stderr
    for split, limit in (("train", 4), ("val", 1000)):
        for target, name in enumerate(CLASSES):
            planes = [p for t, p in written[split] if t == target][:limit]
            paths = sorted((tmp_path / "out" / split / name).iterdir())
            assert len(paths) == len(planes)
            for path, plane in zip(paths, planes, strict=True):
                assert (numpy.asarray(Image.open(path)).transpose(2, 0, 1) == plane).all()


def test_something_else_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "text.tar.gz").write_text("no archive")
    archive(tmp_path / "part.tar.gz", names=["batches.meta.txt", "data_batch_1.bin"])
    for name in ("text.tar.gz", "part.tar.gz", "missing.tar.gz"):
        done = prepare(tmp_path / name, "--out", tmp_path / "out")
        assert done.returncode == 2 and name in done.stderr and "Traceback" not in done.stderr
        assert not (tmp_path / "out").exists()
