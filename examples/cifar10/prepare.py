"""CIFAR-10's binary archive -> folders of PNG images, train/ and val/.

    python examples/cifar10/prepare.py cifar-10-binary.tar.gz --out data-bin/cifar10

The test images become val/. --train and --val limit the images of each class, the first ones in the
order of the archive.
"""

import argparse
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy
from PIL import Image
from tqdm import tqdm

from resmlp_mt.files.output import whole_folder

# A record: a byte for the class, then 32 x 32 pixels of red, of green, of blue.
_RECORD = 1 + 3 * 32 * 32
_BATCHES = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "val": ["test_batch.bin"]}


def main() -> int:
    """Convert."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train", type=int, default=5000, metavar="N", help="images a class")
    parser.add_argument("--val", type=int, default=1000, metavar="N", help="images a class")
    arguments = parser.parse_args()
    limits = {"train": arguments.train, "val": arguments.val}
    try:
        with tarfile.open(arguments.archive) as archive:
            files = {Path(m.name).name: m for m in archive.getmembers() if m.isfile()}
            classes = archive.extractfile(files["batches.meta.txt"]).read().decode().split()
            with whole_folder(arguments.out, *_BATCHES) as folder:
                for split, names in _BATCHES.items():
                    data = b"".join(archive.extractfile(files[name]).read() for name in names)
                    count = _write(data, classes, folder / split, limits[split])
                    print(f"{arguments.out / split}: {count:,} images of {len(classes)} classes")
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        print(f"prepare.py: {arguments.archive}: no CIFAR-10 archive ({error})", file=sys.stderr)
        return 2
    return 0


def _write(data: bytes, classes: list[str], folder: Path, limit: int) -> int:
    for name in classes:
        (folder / name).mkdir(parents=True)
    records = numpy.frombuffer(data, numpy.uint8).reshape(-1, _RECORD)
    seen = Counter()
    for record in tqdm(records, desc=folder.name, disable=None, leave=False):
        name = classes[record[0]]
        if seen[name] < limit:
            pixels = record[1:].reshape(3, 32, 32).transpose(1, 2, 0)
            Image.fromarray(pixels).save(folder / name / f"{seen[name]:04}.png")
            seen[name] += 1
    return sum(seen.values())


if __name__ == "__main__":
    sys.exit(main())
