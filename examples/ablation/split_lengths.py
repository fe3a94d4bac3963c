"""Keep short sentences to train on and long ones to test on, for how a model meets new lengths.

    python examples/ablation/split_lengths.py data-bin/multi30k data-bin/multi30k-short --longest 16

OUT/train and OUT/valid are the pairs of DATA's with at most that many tokens on both sides, the end
of sentence among them; OUT/test are the other pairs of DATA's valid.
"""

import argparse
import shutil
import sys
from pathlib import Path

from fairseq.data import data_utils, indexed_dataset

from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_folder

_MADE = ("dict.*.txt", "*.model", "*.bin", "*.idx")
PARTS = {"train": ("train", False), "valid": ("valid", False), "test": ("valid", True)}


def main() -> int:
    """Write the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--longest", type=int, required=True, metavar="TOKENS")
    arguments = parser.parse_args()

    try:
        lang, _ = data_utils.infer_language_pair(str(arguments.data))
        with whole_folder(arguments.out, f"dict.{lang}.txt", *_MADE) as folder:
            split(arguments.data, folder, arguments.longest)
    except UserError as error:
        print(f"split_lengths.py: {error}", file=sys.stderr)
        return 2
    return 0


def split(data: Path, out: Path, longest: int) -> None:
    """Divide the pairs of DATA by their longer side.

    Raises:
        UserError: If nothing is left of a part.
    """
    pair = "-".join(data_utils.infer_language_pair(str(data)))
    langs = pair.split("-")
    for path in [*data.glob("dict.*.txt"), *data.glob("*.model")]:
        shutil.copy(path, out)
    for part, (source, keep_long) in PARTS.items():
        sides = [
            data_utils.load_indexed_dataset(f"{data}/{source}.{pair}.{lang}") for lang in langs
        ]
        stems = [f"{out}/{part}.{pair}.{lang}" for lang in langs]
        builders = [indexed_dataset.make_builder(f"{stem}.bin", "mmap") for stem in stems]
        kept = 0
        for i in range(len(sides[0])):
            rows = [side[i] for side in sides]
            if (max(map(len, rows)) > longest) == keep_long:
                kept += 1
                for builder, row in zip(builders, rows, strict=True):
                    builder.add_item(row)
        if not kept:
            raise UserError(f"no pair of {source} is left for {part}; change --longest")
        for builder, stem in zip(builders, stems, strict=True):
            builder.finalize(f"{stem}.idx")
        print(f"{part}: {kept} pairs")


if __name__ == "__main__":
    sys.exit(main())
