"""Subwords as fairseq reads them: dictionaries and binary files."""

import shutil
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import sentencepiece

from resmlp_mt.data.binary_check import MAGIC
from resmlp_mt.data.vocabulary import Vocabulary

_CHUNK = 2**22  # numbers at once
# The types that fairseq's MMapIndexedDataset reads: 16 bits for small dictionaries, else 32.
_KINDS = ((np.dtype(np.uint16), 8), (np.dtype(np.uint32), 9))
_SMALL = 65500


def write_dictionaries(
    models: list[sentencepiece.SentencePieceProcessor],
    occurrences: Sequence[Mapping[str, int]],
    langs: tuple[str, str],
    folder: Path,
) -> list[Path]:
    """A dictionary for each language, with every piece that its SentencePiece model can emit.

    The segmented training text need not hold them all. A new word may be made of a piece that never
    stood alone there. It must not become <unk>.

    Args:
        models: Of source and target; one and the same where they are joined.
        occurrences: How often each piece occurs on each side. Those of joined ones are added.
        langs, folder: The files are FOLDER/dict.LANG.txt.
    """
    paths = [folder / f"dict.{lang}.txt" for lang in langs]
    for side, (model, path) in enumerate(zip(models, paths, strict=True)):
        seen = occurrences if models[0] is models[1] else occurrences[side : side + 1]
        pieces = [
            model.id_to_piece(i)
            for i in range(model.get_piece_size())
            if not (model.is_control(i) or model.is_unknown(i))
        ]
        counts = {piece: sum(side.get(piece, 0) for side in seen) for piece in pieces}
        # As fairseq does it: the most frequent first, and a size that is a multiple of 8.
        lines = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        missing = -(len(Vocabulary.SPECIAL) + len(lines)) % 8
        lines += [(f"madeupword{i:04d}", 0) for i in range(missing)]
        text = "".join(f"{piece} {count}\n" for piece, count in lines)
        path.write_text(text, encoding="utf-8")
    return paths


def write_binary(
    numbers: Path, sizes: Path, table: np.ndarray, vocabulary_size: int, prefix: Path
) -> None:
    """Write the pair of files that fairseq-preprocess makes of a text.

    Nothing is held in memory but a chunk, however long the text.

    Args:
        numbers: A file of int32, the numbers of the subwords, sentence after sentence.
        sizes: A file of int32: how many each sentence has.
        table: The index in the dictionary of each number.
        vocabulary_size: Of the dictionary.
        prefix: The files are PREFIX.bin and PREFIX.idx.
    """
    kind, code = _KINDS[vocabulary_size >= _SMALL]
    table = table.astype(kind)
    with open(numbers, "rb") as source, open(f"{prefix}.bin", "wb") as target:
        while len(chunk := np.fromfile(source, np.int32, _CHUNK)):
            table[chunk].tofile(target)
    count = sizes.stat().st_size // 4
    with open(f"{prefix}.idx", "wb") as target:
        target.write(MAGIC + struct.pack("<QBQ", 1, code, count))
        place = 0
        with open(sizes, "rb") as source:
            shutil.copyfileobj(source, target)
            source.seek(0)
            while len(chunk := np.fromfile(source, np.int32, _CHUNK)):
                ends = place + np.cumsum(chunk, dtype=np.int64)
                ((ends - chunk) * kind.itemsize).tofile(target)
                place = ends[-1]
