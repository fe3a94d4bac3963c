"""Which text a model was trained on: its languages, its dictionaries and its subwords."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from resmlp_mt.data.subwords import find_subwords
from resmlp_mt.data.vocabulary import Vocabulary
from resmlp_mt.files.sums import sum_files

KEY = "text"  # of an identity in a checkpoint's task_state


@dataclass(frozen=True)
class Identity:
    """The languages, dictionaries and subwords that models which work together share. Source first.

    Attributes:
        languages: Their codes.
        dictionaries: SHA-256 of the symbols, a line each, without the four special ones. So they
            stay the same where only counts differ.
        subwords: SHA-256 of the SentencePiece models; None where there is none.
    """

    languages: tuple[str, str]
    dictionaries: tuple[str, str]
    subwords: tuple[str | None, str | None]

    @classmethod
    def of_folder(
        cls, folder: Path, languages: Sequence[str], symbols: Sequence[Sequence[str]] | None = None
    ) -> "Identity":
        """The identity of the text in a folder with dict.LANG.txt, and SentencePiece models if any.

        Raises:
            UserError: If a dictionary is missing or broken.
        """
        if symbols is None:
            symbols = [Vocabulary(folder / f"dict.{lang}.txt").symbols for lang in languages]
        models = [find_subwords(folder, lang) for lang in languages]
        return cls(
            tuple(languages),
            tuple(map(_sum_symbols, symbols)),
            tuple(path and sum_files(folder, [path.name])[path.name] for path in models),
        )

    @classmethod
    def of_state(cls, task_state: dict | None) -> "Identity | None":
        """The identity in the task_state of a checkpoint, if there is one: older ones have none."""
        try:
            found = {part: tuple(pair) for part, pair in task_state[KEY].items()}
            plain = all(isinstance(part, str | None) for pair in found.values() for part in pair)
            return cls(**found) if plain and set(map(len, found.values())) == {2} else None
        except (KeyError, TypeError, AttributeError):
            return None

    @classmethod
    def of_checkpoint(cls, path: str | Path, state: dict) -> "Identity | None":
        """The identity in a checkpoint, or of the files beside it; None if neither tells."""
        if found := cls.of_state(state.get("task_state")):
            return found
        cfg = getattr(state.get("cfg"), "task", None)
        languages = [getattr(cfg, f"{side}_lang", None) for side in ("source", "target")]
        folder = Path(path).parent
        if None in languages or not all((folder / f"dict.{x}.txt").is_file() for x in languages):
            return None
        return cls.of_folder(folder, languages)

    def as_state(self) -> dict[str, list]:
        """The same as a checkpoint holds it."""
        return {part: list(pair) for part, pair in asdict(self).items()}

    def differences(self, other: "Identity", languages: bool = True) -> str:
        """The differences of another identity, in words; with those of languages, or without."""
        told, before = [], self
        turned = self.languages[::-1] == other.languages
        if not languages:
            turned = self.dictionaries != other.dictionaries
        if turned and self.dictionaries == other.dictionaries[::-1]:
            told.append("source and target are swapped")
            before = replace(
                self, dictionaries=other.dictionaries, subwords=self.subwords[::-1]
            )  # the rest is told of the same languages
        elif languages and self.languages != other.languages:
            now, then = ("{} to {}".format(*each.languages) for each in (other, self))
            told.append(f"its languages are {now}, not {then}")
        joined = other.subwords[0] == other.subwords[1]
        for side, lang in enumerate(other.languages):
            if before.dictionaries[side] != other.dictionaries[side]:
                told.append(f"dict.{lang}.txt has other symbols")
            known = before.subwords[side], other.subwords[side]
            if None not in known and known[0] != known[1]:
                name = "spm.model" if joined else f"spm.{lang}.model"
                told.append(f"{name} is another one")
        return ", ".join(dict.fromkeys(told))


def _sum_symbols(symbols: Sequence[str]) -> str:
    lines = "".join(f"{symbol}\n" for symbol in symbols[len(Vocabulary.SPECIAL) :])
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
