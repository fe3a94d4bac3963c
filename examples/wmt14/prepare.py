"""The archives of WMT14 -> raw text: train, valid and test in .en and .de or .fr.

    python examples/wmt14/prepare.py data-bin/wmt14-raw --lang de --out data-bin/wmt14-raw/en-de

Nothing is cleaned here: `resmlp-mt prepare` does that, on subwords, as fairseq's recipe does.
"""

import argparse
import gzip
import html
import re
import sys
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO

from resmlp_mt.data.reading import decode_lines
from resmlp_mt.errors import UserError
from resmlp_mt.files.output import whole_folder

# Each archive with its file of a language; LANG is de or fr, SIDE that or en.
_EUROPARL = ("training-parallel-europarl-v7.tgz", "training/europarl-v7.LANG-en.SIDE")
_CRAWL = ("training-parallel-commoncrawl.tgz", "commoncrawl.LANG-en.SIDE")
_NEWS = ("training-parallel-nc-v9.tgz", "training/news-commentary-v9.LANG-en.SIDE")
_UN = ("training-parallel-un.tgz", "un/undoc.2000.LANG-en.SIDE")
_GIGA = ("training-giga-fren.tar", "giga-fren.release2.fixed.SIDE.gz")
_TRAINING = {
    "de": [_EUROPARL, _CRAWL, _NEWS],
    "fr": [_EUROPARL, _CRAWL, _UN, _NEWS, _GIGA],
}
# ROLE is src for English and ref for the other. newstest2013 calls every side a source.
_EVALUATION = {
    "valid": ("test.tgz", "test/newstest2013-src.SIDE.sgm"),
    "test": ("test-full.tgz", "test-full/newstest2014-LANGen-ROLE.SIDE.sgm"),
}
_SEGMENT = re.compile(r'<seg id="[^"]*">(.*?)</seg>')


def main() -> int:
    """Unpack both languages side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archives", type=Path, metavar="DIR", help="where the archives are")
    parser.add_argument("--lang", choices=["de", "fr"], required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    lang = arguments.lang
    sources = [("train", *source) for source in _TRAINING[lang]]
    sources += [(split, *source) for split, source in _EVALUATION.items()]
    try:
        with whole_folder(arguments.out, "train.en", "*.en", f"*.{lang}") as folder:
            for split, archive, member in sources:
                outs = {}
                for side, role in (("en", "src"), (lang, "ref")):
                    name = member.replace("LANG", lang).replace("SIDE", side).replace("ROLE", role)
                    outs[name] = folder / f"{split}.{side}"
                count = _unpack(arguments.archives / archive, outs)
                print(f"{archive}: {count:,} pairs to {split}", flush=True)
    except UserError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    return 0


def _unpack(path: Path, outs: dict[str, Path]) -> int:
    """Append the text of each member to its file; returns the number of lines, the same for all."""
    counts = {}
    try:
        with tarfile.open(path, "r|*") as archive:  # read once, from front to back: it is large
            for member in archive:
                name = member.name.removeprefix("./")
                if name in outs:
                    write = _write_segments if name.endswith(".sgm") else _copy
                    with open(outs[name], "ab") as stream:
                        counts[name] = write(archive.extractfile(member), stream, name)
                if len(counts) == len(outs):
                    break
    except (EOFError, gzip.BadGzipFile, tarfile.TarError, zlib.error) as error:
        raise UserError(f"{path}: not a whole archive ({error})") from None
    except OSError as error:
        raise UserError(str(error)) from None
    if missing := [name for name in outs if name not in counts]:
        raise UserError(f"{path}: there is no {' and no '.join(missing)} in it")
    if len(set(counts.values())) > 1:
        found = " and ".join(f"{name} has {count:,} lines" for name, count in counts.items())
        raise UserError(f"{path}: {found}: parallel files need a line for a line")
    return next(iter(counts.values()))


def _copy(source: BinaryIO, stream: BinaryIO, name: str) -> int:
    if name.endswith(".gz"):
        source = gzip.GzipFile(fileobj=source)
    count, last = 0, b"\n"
    while chunk := source.read(1 << 20):
        stream.write(chunk)
        count += chunk.count(b"\n")
        last = chunk[-1:]
    if last != b"\n":  # or the next corpus would go on in this line
        stream.write(b"\n")
        count += 1
    return count


def _write_segments(source: BinaryIO, stream: BinaryIO, name: str) -> int:
    found = [match[1] for line in decode_lines(source, name) if (match := _SEGMENT.search(line))]
    stream.writelines(f"{html.unescape(text).strip()}\n".encode() for text in found)
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
