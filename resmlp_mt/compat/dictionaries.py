"""Dictionaries: where one is broken."""

from io import StringIO

from fairseq.data import Dictionary

from resmlp_mt.compat.patching import patch
from resmlp_mt.errors import UserError


def name_broken_dictionaries() -> None:
    """Name the file and the line of a dictionary that fairseq cannot read."""

    @patch(Dictionary, "add_from_file")
    def add_or_explain(add_from_file, self, source):
        try:
            add_from_file(self, source)
        except OSError:
            raise
        except Exception:  # of a text that is not UTF-8, fairseq raises no less
            if not isinstance(source, str):
                raise
            raise UserError(f"{source}{_find_fault(source)}; copy the dictionary again") from None


def _find_fault(path: str) -> str:
    known, number = Dictionary(), 0
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007
                known.add_from_file(StringIO(line))
    except UnicodeDecodeError:
        return f", after line {number}: not UTF-8"
    except (ValueError, RuntimeError) as error:
        fault = "a symbol for the second time" if "Duplicate" in str(error) else "no symbol + count"
        return f", line {number}: {fault}: {line.rstrip():.40}"
    return ": broken"
