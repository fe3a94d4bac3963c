"""The symbols of one side of a model, read from a dictionary of fairseq without fairseq."""

from pathlib import Path

from resmlp_mt.errors import UserError

# The largest known dictionaries have 260,000 symbols. fairseq takes half a kilobyte for a line.
_MAX_SYMBOLS, _MAX_BYTES = 2**20, 2**26
_OVERWRITE = "#fairseq:overwrite"


def check_dictionaries(folder: Path, *languages: str) -> None:
    """Refuse dictionaries that take much memory, before anything reads them.

    Raises:
        UserError: If one has more than a million lines, or 64 MB.
    """
    for path in (folder / f"dict.{lang}.txt" for lang in languages):
        if not path.is_file():
            continue
        small = path.stat().st_size <= _MAX_BYTES
        if not small or sum(map(path.read_bytes().count, (b"\n", b"\r"))) > _MAX_SYMBOLS:
            raise UserError(f"{path}: more than {_MAX_SYMBOLS:,} symbols; copy the file again")


class Vocabulary:
    """Symbols and their indices: as much of fairseq's `Dictionary` as translation needs.

    The four special symbols come first, as in every dictionary that fairseq-preprocess writes.

    Args:
        path: A file with a symbol and its count in each line.

    Raises:
        UserError: If it is missing or broken; names the line.
    """

    SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")

    def __init__(self, path: Path):
        self.symbols = list(self.SPECIAL)
        self.indices = {symbol: index for index, symbol in enumerate(self.SPECIAL)}
        number = 0
        try:
            with open(path, encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if fault := self._add(line.rstrip()):
                        raise UserError(f"{path}, line {number}: {fault}: {line.rstrip():.40}")
        except UnicodeDecodeError:
            raise UserError(f"{path}, after line {number}: not UTF-8; copy it again") from None
        except FileNotFoundError:
            raise UserError(f"{path}: missing; copy the model again") from None

    def _add(self, line: str) -> str | None:
        """Add a line; returns its fault, if it has one."""
        overwrites = line.endswith(f" {_OVERWRITE}")
        symbol, space, count = line.removesuffix(f" {_OVERWRITE}").rpartition(" ")
        try:
            int(count)
        except ValueError:
            space = ""
        if not space:
            return "no symbol + count"
        if symbol in self.indices and not overwrites:
            return "a symbol for the second time"
        self.indices[symbol] = len(self.symbols)
        self.symbols.append(symbol)
        return None

    def __len__(self) -> int:
        return len(self.symbols)

    def __getitem__(self, index: int) -> str:
        """The symbol of an index; <unk> behind the last one."""
        return self.symbols[index] if index < len(self.symbols) else self.SPECIAL[self.unk()]

    def index(self, symbol: str) -> int:
        """The index of a symbol; of one that is not there, that of <unk>."""
        return self.indices.get(symbol, self.unk())

    def pad(self) -> int:
        """The index of padding."""
        return 1

    def eos(self) -> int:
        """The index of the end of a sentence."""
        return 2

    def unk(self) -> int:
        """The index of <unk>, which stands for all without a symbol."""
        return 3
