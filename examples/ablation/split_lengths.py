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

import resmlp_mt  # noqa: F401  (silences fairseq)

PARTS = {"train": ("train", False), "valid": ("valid", False), "test": ("valid", True)}


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--longest", type=int, required=True, metavar="TOKENS")
    arguments = parser.parse_args()

    pair = "-".join(data_utils.infer_language_pair(str(arguments.data)))
    arguments.out.mkdir(parents=True)
    for path in [*arguments.data.glob("dict.*.txt"), *arguments.data.glob("*.model")]:
        shutil.copy(path, arguments.out)
    for part, (source, keep_long) in PARTS.items():
        sides = {
            lang: data_utils.load_indexed_dataset(f"{arguments.data}/{source}.{pair}.{lang}")
            for lang in pair.split("-")
        }
        builders = {
            lang: indexed_dataset.make_builder(f"{arguments.out}/{part}.{pair}.{lang}.bin", "mmap")
            for lang in sides
        }
        kept = 0
        for i in range(len(sides[pair.split("-")[0]])):
            rows = {lang: side[i] for lang, side in sides.items()}
            if (max(map(len, rows.values())) > arguments.longest) == keep_long:
                kept += 1
                for lang, row in rows.items():
                    builders[lang].add_item(row)
        if not kept:
            sys.exit(f"split_lengths.py: no pair of {source} is left for {part}; change --longest")
        for lang, builder in builders.items():
            builder.finalize(f"{arguments.out}/{part}.{pair}.{lang}.idx")
        print(f"{part}: {kept} pairs")


if __name__ == "__main__":
    main()
