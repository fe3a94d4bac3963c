"""Blocks of lines as numbers, from within."""

from resmlp_mt.data.encode import Encoder
from resmlp_mt.data.filters import Limits
from resmlp_mt.data.reading import Block
from resmlp_mt.data.subwords import load_subwords
from resmlp_mt.files.finding import PRETRAINED


class Watched:
    """SentencePiece, and the longest line that it was given."""

    def __init__(self):
        self.model, self.longest = load_subwords(PRETRAINED / "multi30k-en-de" / "spm.model"), 0

    def encode(self, lines, **options):
        self.longest = max([self.longest, *map(len, lines)])
        return self.model.encode(lines, **options)

    def __getattr__(self, name):
        return getattr(self.model, name)


def test_a_line_without_end_is_dropped_before_it_is_cut():
    short, usual, long = "A dog.", "A man rides a bike. " * 12, "dogs play " * 5000
    pairs = [(short, short), (long, short), (usual, usual), (short, long), (long, long), ("", long)]
    sides = [[f"{side}\n".encode() for side in column] for column in zip(*pairs, strict=True)]
    block = Block(("x.en", "x.de"), 1, tuple(sides))
    watched, limits = Watched(), Limits(100, 9)
    found = Encoder([watched, watched], None, limits)(block)
    assert watched.longest == len(usual)
    assert found.dropped == {"a side has more than 100 subwords": 4}
    expected = [watched.model.encode(line, out_type=int) for line in (short, usual)]
    end = watched.model.get_piece_size()
    for side in found.sides:
        assert side.numbers.tolist() == [*expected[0], end, *expected[1], end]
        assert side.sizes.tolist() == [len(line) + 1 for line in expected]
    # All lines of a validation are wanted.
    assert Encoder([watched, watched], None, None)(block).dropped == {}
    assert watched.longest == len(long)
