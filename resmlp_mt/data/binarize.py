"""Segmented text as fairseq reads it: dictionaries and binary files."""

import logging
from collections import Counter
from pathlib import Path

import sentencepiece

from resmlp_mt.data.vocabulary import Vocabulary


def write_dictionaries(
    models: list[sentencepiece.SentencePieceProcessor],
    occurrences: list[Counter],
    langs: tuple[str, str],
    folder: Path,
) -> list[Path]:
    """A dictionary for each language, with every piece that its SentencePiece model can emit.

    The segmented training text need not hold them all. A new word may be made of a piece that never
    stood alone there. It must not become <unk>.
    """
    from fairseq.data import Dictionary

    if models[0] is models[1]:
        occurrences = [occurrences[0] + occurrences[1]] * 2
    paths = [folder / f"dict.{lang}.txt" for lang in langs]
    for model, seen, path in zip(models, occurrences, paths, strict=True):
        dictionary = Dictionary()
        for i in range(model.get_piece_size()):
            if not (model.is_control(i) or model.is_unknown(i)):
                piece = model.id_to_piece(i)
                dictionary.add_symbol(piece, n=seen[piece])
        dictionary.finalize()  # most frequent first, the size a multiple of 8
        dictionary.save(str(path))
    return paths


def binarize(
    text: Path,
    langs: tuple[str, str],
    splits: list[str],
    dictionaries: list[Path],
    workers: int,
    folder: Path,
) -> None:
    """Write what fairseq-preprocess makes of segmented text.

    Args:
        text: Folder of the segmented text: a file a split and language.
        langs: Of source and target.
        splits: Their names.
        dictionaries: Of source and target.
        workers: Processes that work side by side.
        folder: Where to.
    """
    from fairseq import options
    from fairseq_cli import preprocess

    tests = [str(text / split) for split in splits if split.startswith("test")]
    arguments = ["--source-lang", langs[0], "--target-lang", langs[1]]
    arguments += ["--trainpref", str(text / "train"), "--validpref", str(text / "valid")]
    arguments += ["--testpref", ",".join(tests)] if tests else []
    for side, path in zip(("src", "tgt"), dictionaries, strict=True):
        arguments += [f"--{side}dict", str(path)]
    arguments += ["--destdir", str(folder), "--workers", str(workers)]
    logging.getLogger("fairseq_cli.preprocess").setLevel(logging.WARNING)
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
    (folder / "preprocess.log").unlink(missing_ok=True)


def share_unknown(folder: Path, lang: str, text: Path) -> float:
    """Share of a text's subwords that have no symbol in the dictionary of its language."""
    dictionary = Vocabulary(folder / f"dict.{lang}.txt")
    unknown = total = 0
    with open(f"{text}.{lang}", encoding="utf-8") as lines:
        for line in lines:
            pieces = line.split()
            total += len(pieces)
            unknown += sum(dictionary.index(piece) == dictionary.unk() for piece in pieces)
    return unknown / max(total, 1)
