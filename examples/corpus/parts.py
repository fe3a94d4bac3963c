"""A corpus in parts: lines of text, JSON lines and rows of Parquet, read and written part by part.

A part is a file of its own in the output. It appears whole or not at all, so that what is there is
done.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from resmlp_mt.data.reading import OPENERS, decode_lines, open_packed
from resmlp_mt.errors import UserError, name_some
from resmlp_mt.files.output import whole_file
from resmlp_mt.translating.fields import choose_field

_JSON = (".jsonl", ".json", ".ndjson")


def find_parts(paths: list[Path], rows: int) -> Iterator[dict]:
    """Yield the parts of files, in order.

    Args:
        paths: Text, JSON lines, both also packed, and Parquet, as their names end.
        rows: Of a part, at most. A part of a Parquet file lies in one of its row groups.

    Yields:
        `path`, `name` of the output, `first` row of all and `line` in the file, counted from 1, how
        many `rows`, and where they begin: the byte of the unpacked text, or the row of the `group`
        of rows. `sum` is the SHA-256 of its lines, or of the Parquet file that it lies in.

    Raises:
        UserError: If a file cannot be read.
    """
    number, before = 0, 0
    for path in paths:
        line = 1
        for place in _find_rows(path, rows) if _is_parquet(path) else _find_lines(path, rows):
            name = f"{number:06d}{_suffix(path)}"
            yield {"path": str(path), "name": name, "first": before + line, "line": line, **place}
            number, line = number + 1, line + place["rows"]
        before += line - 1


def _is_parquet(path: Path) -> bool:
    return path.suffix == ".parquet"


def _suffix(path: Path) -> str:
    return Path(path.stem if path.suffix in OPENERS else path.name).suffix or ".txt"


def _find_lines(path: Path, rows: int) -> Iterator[dict]:
    with open_packed(path) as stream:
        start = 0
        while lines := list(islice(stream, rows)):
            yield {"rows": len(lines), "start": start, "group": 0, "sum": _sum(lines)}
            start += sum(map(len, lines))


def _sum(lines: list[bytes]) -> str:
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _find_rows(path: Path, rows: int) -> Iterator[dict]:
    with _open_table(path) as file:
        with open(path, "rb") as stream:
            whole = {"sum": hashlib.file_digest(stream, "sha256").hexdigest()}
        if not file.metadata.num_rows:
            yield {"rows": 0, "start": 0, "group": 0, **whole}
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            for start in range(0, size, rows):
                yield {"rows": min(rows, size - start), "start": start, "group": group, **whole}


@contextmanager
def _open_table(path: Path):
    """Open a Parquet file. What is wrong with it is named, also while it is read in the block."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    if not path.is_file():
        raise UserError(f"{path}: " + ("a folder, not a file" if path.is_dir() else "no such file"))
    try:
        with ParquetFile(path) as file:
            yield file
    except (ArrowException, OSError) as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"{path}: cannot be read as Parquet ({reason}); copy it again") from None


def translate_part(part: dict, out: Path, field: str, into: str | None, translate) -> int:
    """Translate a part and write it.

    Args:
        part: As `find_parts` yields it.
        out: The folder of the output.
        field, into: The field of JSON lines, or the column of Parquet, to translate, and where the
            translations go. Lines of text are texts.
        translate: Takes the texts, and yields their translations.

    Returns:
        How many characters there were to translate.

    Raises:
        UserError: If a row has no text, or the file cannot be read or is another one by now.
    """
    translate_it = _translate_rows if _is_parquet(Path(part["path"])) else _translate_lines
    try:
        return translate_it(part, out, field, into, translate)
    except UserError as error:
        where = "" if part["path"] in str(error) else f"{part['path']}: "
        raise UserError(f"{where}{error}") from None


def _translate_lines(part: dict, out: Path, field: str, into: str | None, translate) -> int:
    with open_packed(Path(part["path"])) as stream:
        stream.seek(part["start"])
        lines = list(islice(stream, part["rows"]))
    if _sum(lines) != part["sum"]:
        raise UserError(f"{part['path']} has changed since the start: give it as it was")
    lines = list(decode_lines(lines, part["path"], part["line"]))
    texts, puts = lines, []
    if Path(part["name"]).suffix in _JSON:
        take = choose_field(field, into)
        numbered = enumerate(lines, part["line"])
        taken = [take(line, f"{part['path']}, line {number}") for number, line in numbered]
        texts, puts = map(list, zip(*taken, strict=True))
    with whole_file(out / part["name"]) as path, open(path, "w", encoding="utf-8") as stream:
        for i, text in enumerate(translate(texts)):
            stream.write((puts[i](text) if puts else text) + "\n")
    return sum(map(len, texts))


def _translate_rows(part: dict, out: Path, field: str, into: str | None, translate) -> int:
    import pyarrow
    from pyarrow import parquet

    into = into or field
    with _open_table(Path(part["path"])) as file:
        for name in (field, into):
            if file.schema_arrow.names.count(name) > 1:
                raise UserError(f"several columns are called {name}: give them names of their own")
        table = _read_rows(file, part)
    if field not in table.column_names:
        raise UserError(f"there is no --field {field}, but {name_some(table.column_names)}")
    texts = table[field].to_pylist()
    for number, text in enumerate(texts, part["line"]):
        if not isinstance(text, str | None):
            raise UserError(f"row {number}: --field {field} is no text: {text!s:.60}")
    translated = translate([text or "" for text in texts])
    answers = [a if text is not None else None for text, a in zip(texts, translated, strict=True)]
    column = pyarrow.array(answers, pyarrow.string())
    if into in table.column_names:
        table = table.set_column(table.column_names.index(into), into, column)
    else:
        table = table.append_column(into, column)
    with whole_file(out / part["name"]) as path:
        parquet.write_table(table, path)
    return sum(len(text or "") for text in texts)


def _read_rows(file, part: dict):
    """The table of a part's rows, decoded from those before it in its group, a little at a time."""
    import pyarrow

    kept, place, end = [], 0, part["start"] + part["rows"]
    if not part["rows"]:
        return file.schema_arrow.empty_table()
    for batch in file.iter_batches(batch_size=part["rows"], row_groups=[part["group"]]):
        kept.append(batch.slice(max(0, part["start"] - place), max(0, end - place)))
        place += batch.num_rows
        if place >= end:
            break
        if place <= part["start"]:
            kept.clear()
    return pyarrow.Table.from_batches(kept).slice(0, part["rows"])
