"""Download files; go on where a download was interrupted; refuse what is not the expected file.

    python scripts/fetch.py --base-url https://HOST --to FOLDER --checksums FILE PATH...

A line of FILE says what is known of a file: `sha256 VALUE NAME`, `md5 VALUE NAME` or
`size BYTES NAME`. What is not known is learned: the sha256 of each file is written beside it, to
NAME.sha256, when it is first fetched, and the file has to keep it.
"""

import argparse
import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tqdm import tqdm

_CHUNK = 1 << 20


class _Refused(Exception):
    """A fault that ends the script."""


def main() -> int:
    """Fetch what is missing and check everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", metavar="PATH", help="below the base URL")
    parser.add_argument("--base-url", required=True, metavar="URL")
    parser.add_argument("--to", required=True, type=Path, metavar="DIR")
    parser.add_argument("--checksums", required=True, type=Path, metavar="FILE")
    arguments = parser.parse_args()
    try:
        checks = _read_checks(arguments.checksums)
        arguments.to.mkdir(parents=True, exist_ok=True)
        for path in arguments.paths:
            url = f"{arguments.base_url.rstrip('/')}/{path}"
            _fetch(url, arguments.to / Path(path).name, checks)
    except (_Refused, OSError) as error:
        print(f"fetch.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fetch.py: interrupted; run again to go on", file=sys.stderr)
        return 2
    return 0


def _read_checks(path: Path) -> list[tuple[str, str, str, Path]]:
    """Lines of (kind, value, name), and the file that each stands in."""
    if not path.is_file():
        raise _Refused(f"{path}: no such file")
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    checks = [(*line, path) for line in lines if line and not line[0].startswith("#")]
    for check in checks:
        if len(check) != 4 or check[0] not in ("sha256", "md5", "size"):
            raise _Refused(f"{path}: a line is 'sha256|md5|size VALUE NAME', not {check[:-1]}")
    return checks


def _fetch(url: str, path: Path, checks: list[tuple[str, str, str, Path]]) -> None:
    record = path.with_name(f"{path.name}.sha256")
    if record.exists():  # in the form that sha256sum writes and reads
        value, *name = record.read_text(encoding="utf-8").split() or [""]
        if name not in ([path.name], [f"*{path.name}"]):
            raise _Refused(f"{record}: not a line 'SHA256  {path.name}'. Delete it, or mend it")
        checks = [*checks, ("sha256", value, path.name, record)]
    checks = [check for check in checks if check[2] == path.name]
    if path.exists():
        if wrong := _find_mismatch(path, checks):
            raise _Refused(f"{path}: {wrong}. Delete it to have it fetched again")
    else:
        part = path.with_name(f"{path.name}.part")
        print(f"fetch {url}", flush=True)
        _download(url, part)
        if wrong := _find_mismatch(part, checks):
            part.unlink()  # going on from it would never mend it
            raise _Refused(
                f"{url}: {wrong}. Not kept; run again, and if that does not help, name another "
                "source with --base-url"
            )
        os.replace(part, path)
    if not record.exists():
        part = record.with_name(f"{record.name}.part")
        part.write_text(f"{_digest(path, 'sha256')}  {path.name}\n", encoding="utf-8")
        os.replace(part, record)


def _find_mismatch(path: Path, checks: list[tuple[str, str, str, Path]]) -> str | None:
    for kind, expected, _, origin in checks:
        found = str(path.stat().st_size) if kind == "size" else _digest(path, kind)
        if found != expected:
            return f"its {kind} is {found}, and {origin} says {expected}"
    return None


def _digest(path: Path, algorithm: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _download(url: str, part: Path) -> None:
    """Make `part` whole, going on from what is there where the server can."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={done}-"} if done else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            done = done if answer.status == 206 else 0
            length = answer.headers.get("Content-Length")
            total = done + int(length) if length else None
            watch = dict(unit="B", unit_scale=True, disable=None, leave=False)
            with (
                open(part, "ab" if done else "wb") as stream,
                tqdm(desc=part.name, total=total, initial=done, **watch) as bar,
            ):
                while chunk := answer.read(_CHUNK):
                    stream.write(chunk)
                    bar.update(len(chunk))
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # nothing left to send: whole, or of another file
            part.unlink()
            return _download(url, part)
        raise _Refused(f"{url}: the server says {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise _Refused(f"{url}: {reason}; run again to go on from what has come") from None
    # A connection that breaks off ends the stream as if the file were over.
    if total is not None and part.stat().st_size != total:
        raise _Refused(
            f"{url}: only {part.stat().st_size:,} of {total:,} bytes came; run again to go on"
        )


if __name__ == "__main__":
    sys.exit(main())
