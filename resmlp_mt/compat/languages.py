"""The languages of prepared text, and the models that split raw text into subwords."""

from argparse import Namespace
from itertools import permutations
from pathlib import Path

from fairseq.file_io import PathManager

from resmlp_mt.data.subwords import find_subwords


def infer_languages(folder: str | Path) -> tuple[str, str] | None:
    """The source and the target language of prepared text, by the names of its files.

    fairseq takes whatever has one hyphen for a pair. So it reads zh and Hans from dict.zh-Hans.txt,
    and nothing from train.en-zh-Hans.en.idx. Dictionaries say where a code ends.

    Returns:
        The codes, or None where no name tells them.

    Raises:
        OSError: If there is no such folder.
    """
    names = [name.split(".") for name in sorted(PathManager.ls(str(folder)))]
    codes = [name[1] for name in names if name[0] == "dict" and name[2:] == ["txt"]]
    joined = {tuple(name[1:3]) for name in names}
    for pair in permutations(codes, 2):
        if any(("-".join(pair), code) in joined for code in pair):
            return pair
    return None


def find_splitter(flags: Namespace) -> Path | None:
    """The SentencePiece model of the source language in the data folder, by flags of fairseq."""
    folder, source = Path(getattr(flags, "data", None) or ""), getattr(flags, "source_lang", None)
    if source is None and folder.is_dir():
        source, _ = infer_languages(folder) or (None, None)
    return find_subwords(folder, source) if source else None
