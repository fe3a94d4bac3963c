"""Mutations of SentencePiece models: their bytes, pieces, rules and settings."""

import struct
from random import Random

from google.protobuf.message import EncodeError
from sentencepiece import sentencepiece_model_pb2

from hostile.mutate import mutate_bytes


def mutate_subwords(rng: Random, data: bytes) -> bytes:
    """Change bytes, or what they mean."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    model = sentencepiece_model_pb2.ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        rng.choice(_OF_SUBWORDS)(rng, model)
    try:
        return model.SerializePartialToString()
    except EncodeError:  # a few cannot be written
        return mutate_bytes(rng, data)


def _change_piece(rng: Random, model) -> None:
    piece = rng.choice(model.pieces)
    how = rng.randrange(6)
    if how == 0:
        piece.piece = rng.choice(("", "x", "<s>", "</s>", "<unk>", "<0x41>", "\0", "x" * 100_000))
    elif how == 1:
        piece.score = rng.choice((float("nan"), float("inf"), -1e38, 0.0))
    elif how == 2:
        piece.type = rng.randint(1, 6)
    elif how == 3:
        model.pieces.remove(piece)
    elif how == 4:
        model.pieces.insert(rng.randrange(len(model.pieces)), piece)
    else:
        del model.pieces[rng.randrange(len(model.pieces)) :]


def _change_normaliser(rng: Random, model) -> None:
    spec = rng.choice((model.normalizer_spec, model.denormalizer_spec))
    charsmap = model.normalizer_spec.precompiled_charsmap
    how = rng.randrange(4)
    if how == 0:
        spec.precompiled_charsmap = mutate_bytes(rng, charsmap)
    elif how == 1 and len(charsmap) > 4:  # the trie alone, whose length is written before it
        length = min(struct.unpack("<I", charsmap[:4])[0], len(charsmap))
        trie = mutate_bytes(rng, charsmap[4 : 4 + length])[:length].ljust(length, b"\xff")
        spec.precompiled_charsmap = charsmap[:4] + trie + charsmap[4 + length :]
    elif how == 2:
        name = rng.choice(("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"))
        setattr(spec, name, not getattr(spec, name))
    else:
        spec.precompiled_charsmap = rng.randbytes(rng.choice((0, 3, 5, 2000)))


def _change_trainer(rng: Random, model) -> None:
    spec = model.trainer_spec
    names = ("unk_id", "bos_id", "eos_id", "pad_id", "vocab_size", "max_sentencepiece_length")
    how = rng.randrange(4)
    if how == 0:
        setattr(spec, rng.choice(names), rng.choice((-1, 0, 1, 5, 2**31 - 1, -(2**31))))
    elif how == 1:
        spec.model_type = rng.randint(1, 4)
    elif how == 2:
        spec.byte_fallback = not spec.byte_fallback
    else:
        name = rng.choice(("unk_surface", "unk_piece", "bos_piece", "pad_piece"))
        setattr(spec, name, rng.choice(("", "x", "\n", "x" * 100_000)))


_OF_SUBWORDS = (_change_piece, _change_normaliser, _change_trainer)
