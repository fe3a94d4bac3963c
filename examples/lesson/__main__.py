"""`python -m examples.lesson` writes the corpus."""

import argparse
from pathlib import Path

from examples.lesson import write_lesson


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.lesson",
        description="Write a made-up English-German corpus: train, valid and test.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--train", type=int, default=30000, help="pairs to train on")
    parser.add_argument("--valid", type=int, default=500, help="pairs to validate on")
    parser.add_argument("--test", type=int, default=500, help="pairs to test on")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another corpus")
    args = parser.parse_args(arguments)
    try:
        write_lesson(args.out, args.train, args.valid, args.test, args.seed)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
