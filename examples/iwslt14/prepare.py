"""IWSLT14's German-English archive -> cleaned raw text: train, valid and test in .de and .en.

    python examples/iwslt14/prepare.py de-en.tgz --out data-bin/iwslt14-raw/text

The lines are those of fairseq's recipe, but for two things: lengths are counted in the words that
SacreBLEU sees (13a) and not in Moses's, so that a few other pairs are left out; and whatever else
is said about a talk, its speaker for one, goes with the address and the keywords.
"""

import argparse
import html
import re
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from resmlp_mt.data.reading import decode_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_folder

_LANGS = "de", "en"
_MAX_WORDS = 175
_MAX_RATIO = 1.5
_VALID_EVERY = 23
_TESTS = "TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"

# About a talk, not of it. Titles and descriptions are translated: they stay, without their tags.
_ABOUT = re.compile(r"\s*</?(url|keywords|speaker|talkid|reviewer|translator|doc)\b")
_TAGS = re.compile(r"</?(title|description)>")
_SEGMENT = re.compile(r'<seg id="[^"]*">(.*?)</seg>')


def main() -> int:
    """Read the archive, clean, split and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    try:
        with tarfile.open(arguments.archive) as archive:
            talks = _read_pairs(archive, "de-en/train.tags.de-en.{}", _read_talks)
            test = []
            for name in _TESTS:
                test += _read_pairs(archive, f"de-en/IWSLT14.{name}.de-en.{{}}.xml", _read_segments)
        _write(talks, test, arguments.out)
    except UserError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    except (EOFError, KeyError, OSError, tarfile.TarError, zlib.error) as error:
        print(f"prepare.py: {arguments.archive}: not the archive ({error})", file=sys.stderr)
        return 2
    return 0


def _read_pairs(
    archive: tarfile.TarFile, name: str, read: Callable[[Iterable[str]], Iterator[str]]
) -> list[tuple[str, str]]:
    sides = []
    for lang in _LANGS:
        file = name.format(lang)
        sides.append(list(read(decode_lines(archive.extractfile(file), file))))
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{archive.name}: {name.format('*')} has {len(sides[0]):,} sentences in "
            f"{_LANGS[0]} and {len(sides[1]):,} in {_LANGS[1]}"
        )
    return list(zip(*sides, strict=True))


def _read_talks(lines: Iterable[str]) -> Iterator[str]:
    return (_TAGS.sub("", line).strip() for line in lines if not _ABOUT.match(line))


def _read_segments(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if found := _SEGMENT.search(line):
            yield html.unescape(found[1]).strip()


def _write(talks: list[tuple[str, str]], test: list[tuple[str, str]], out: Path) -> None:
    kept = list(_clean(talks))
    splits = {
        "train": [pair for number, pair in enumerate(kept, 1) if number % _VALID_EVERY],
        "valid": kept[_VALID_EVERY - 1 :: _VALID_EVERY],
        "test": test,
    }
    with whole_folder(out, "train.de", *(f"*.{lang}" for lang in _LANGS)) as folder:
        for split, pairs in splits.items():
            for side, lang in enumerate(_LANGS):
                with open(folder / f"{split}.{lang}", "w", encoding="utf-8") as stream:
                    stream.writelines(f"{pair[side]}\n" for pair in pairs)
    print(f"{len(talks):,} pairs, {len(kept):,} after cleaning")
    for split, pairs in splits.items():
        print(f"{out / split}: {len(pairs):,} pairs")


def _clean(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    tokenize = Tokenizer13a()
    for pair in pairs:
        short, long = sorted(len(tokenize(text).split()) for text in pair)
        if short and long <= _MAX_WORDS and long <= _MAX_RATIO * short:
            yield pair


if __name__ == "__main__":
    sys.exit(main())
