"""Say which files of a wheel are not those of its upstream.

    python scripts/compare_wheel.py ve_fairseq-0.12.3-cp311-*.whl fairseq-0.12.2.tar.gz CHECKOUT

A wheel, a source package (.tar.gz) or a folder is compared with one or more others: a file is known
if any of them has it, but for line ends. The rest is listed as `compiled`, `changed` (some of them
have a file of that name) or `new`. --diff adds what changed, from the last of them that has it.
Ends with 1 if anything is listed.
"""

import argparse
import difflib
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

_Files = dict[str, bytes]


def main() -> int:
    """List the files, then how many are known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="a wheel, or the folder it was unpacked to")
    parser.add_argument("upstream", type=Path, nargs="+", help="a wheel, .tar.gz or folder")
    parser.add_argument("--diff", action="store_true", help="show what changed")
    arguments = parser.parse_args()

    read = []
    for path in (arguments.wheel, *arguments.upstream):
        try:
            read.append(_read_files(path))
        except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
            print(f"compare_wheel.py: {path}: {error}", file=sys.stderr)
            return 2
    files, *upstream = read
    known = 0
    for name, content in sorted(files.items()):
        others = [tree[name] for tree in upstream if name in tree]
        if content in others:
            known += 1
            continue
        kind = "compiled" if name.endswith((".so", ".pyd")) else "changed" if others else "new"
        print(f"{kind:8}  {name}")
        if arguments.diff and kind == "changed":
            lines = [text.decode(errors="replace").splitlines() for text in (others[-1], content)]
            print("\n".join(difflib.unified_diff(*lines, "upstream", "wheel", lineterm="")))
    print(f"{known} of {len(files)} files are upstream's")
    return int(known < len(files))


def _read_files(path: Path) -> _Files:
    """Read what the package consists of, by its name in a wheel of fairseq."""
    if path.is_dir():
        found = ((str(file.relative_to(path)), file.read_bytes()) for file in _walk(path))
    elif path.suffix in (".whl", ".zip"):
        found = _read_zip(path)
    else:
        found = _read_tar(path)
    return {
        # The sources have `examples` beside the package; its build puts a link to it inside.
        f"fairseq/{name}" if name.startswith("examples/") else name: content.replace(b"\r\n", b"\n")
        for name, content in found
        if not {"__pycache__", ".git"} & set(name.split("/")) and ".dist-info/" not in name
    }


def _walk(path: Path) -> Iterator[Path]:
    return (file for file in path.rglob("*") if file.is_file())


def _read_zip(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                yield entry.filename, archive.read(entry)


def _read_tar(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.isfile() else None
            if file:
                yield entry.name.partition("/")[2], file.read()


if __name__ == "__main__":
    sys.exit(main())
