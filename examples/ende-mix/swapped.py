"""Pairs once more, with another name, number or address where one stands on both sides.

Others get an emoji at the end of both sides. A model learns from them to copy what it never saw.
kept.py measures whether it does.
"""

import random
import re

Row = tuple[str, str, str]

_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?![\w:/-]|[.,]\d)")
_NAME = re.compile(r"(?<![\w.@/-])[A-ZÄÖÜ][a-zäöüß]{2,}(?![\w@/-]|\.\w)")
_SYLLABLES = [c + v for c in "b d f g h k l m n p r s t v z ch sh".split() for v in "aeiou"]
# Pictographs, faces, vehicles, hands and animals, weather and signs.
_EMOJI = [
    *range(0x1F300, 0x1F5FF), *range(0x1F600, 0x1F64F), *range(0x1F680, 0x1F6C5),
    *range(0x1F90D, 0x1F9FF), *range(0x2600, 0x27BF),
]  # fmt: skip
_WITH_EMOJI = 0.2
_WORD = re.compile(r"[^\W\d_]{4,}")
_ENDINGS = "com org net de eu info io co.uk ac.at ch".split()


def swap(rows: list[Row], share: float, seed: int = 1) -> list[Row]:
    """So many pairs with something else in them, of those that hold what both sides share.

    A fifth as many pairs follow that have an emoji at their ends.

    Args:
        rows: Source, target and domain of each pair.
        share: Of all pairs. One may be drawn several times.
        seed: Of what is drawn.
    """
    draw = random.Random(seed)
    found = [(row, shared) for row in rows if (shared := list_shared(row))]
    names = sorted({word for _, shared in found for word in shared if not word.isdigit()})
    words = sorted({word for row, _ in found for text in row[:2] for word in _WORD.findall(text)})
    chosen = draw.choices(found, k=round(share * len(rows))) if found else []
    swapped = [replace(row, draw.choice(shared), draw, names, words) for row, shared in chosen]
    ends = draw.sample(rows, round(share * _WITH_EMOJI * len(rows)))
    return swapped + [append_emoji(row, draw) for row in ends]


def list_shared(row: Row) -> list[str]:
    """The names and numbers that stand once on either side."""
    sides = [_NUMBER.findall(text) + _NAME.findall(text) for text in row[:2]]
    return [word for word in sides[0] if sides[0].count(word) == sides[1].count(word) == 1]


def replace(row: Row, word: str, draw: random.Random, names: list[str], words: list[str]) -> Row:
    """The pair with something else in the place of a word that both sides share.

    Names are known ones, or spelled anew of syllables or of pieces of words. Second names may be
    words.
    """
    new = _draw_number(draw) if word.isdigit() else _draw_name(draw, names, words)
    pattern = _NUMBER if word.isdigit() else _NAME
    source, target = (
        pattern.sub(lambda match: new if match[0] == word else match[0], text) for text in row[:2]
    )
    return source, target, row[2]


def append_emoji(row: Row, draw: random.Random) -> Row:
    """The pair with an emoji behind it, now and then in the place of its final stop."""
    emoji = chr(draw.choice(_EMOJI))
    strip = draw.random() < 0.3
    source, target = (f"{text.rstrip('. ') if strip else text} {emoji}" for text in row[:2])
    return source, target, row[2]


def _draw_number(draw: random.Random) -> str:
    if draw.random() < 0.2:
        return ".".join(str(draw.randrange(30)) for _ in range(draw.randint(2, 3)))
    return str(draw.randrange(2, 10 ** draw.randint(1, 5)))


def _draw_name(draw: random.Random, names: list[str], words: list[str]) -> str:
    def word() -> str:
        way = draw.random()
        if way < 0.4:
            return draw.choice(names)
        return (_splice(draw, words) if way < 0.7 and words else _spell(draw)).capitalize()

    kind = draw.random()
    if kind < 0.4:
        return word()
    if kind < 0.75:
        # Fischer is a name, and a trade.
        plain = words and draw.random() < 0.3
        return f"{word()} {draw.choice(words).capitalize() if plain else word()}"
    first, second, third = (word().lower() for _ in range(3))
    site = f"{first}{draw.choice(['', '-', '.'])}{second}.{draw.choice(_ENDINGS)}"
    number = str(draw.randrange(1000))
    if kind < 0.87:
        user = draw.choice([third, f"{third}.{second}", f"{third}.{number}", third + number])
        return f"{user}@{site}"
    path = draw.choice(["", "", f"/{third}", f"/{third}/{number}", f"/{number}"])
    return draw.choice(["https://", "http://", "www.", "https://www."]) + site + path


def _spell(draw: random.Random) -> str:
    """A word that nobody knows."""
    return "".join(draw.choices(_SYLLABLES, k=draw.randint(2, 3))) + draw.choice("nrslt")


def _splice(draw: random.Random, words: list[str]) -> str:
    """A word that nobody knows, of pieces that mean something elsewhere, as Dort-mund does."""
    head, tail = draw.choice(words), draw.choice(words)
    return head[: draw.randint(2, 5)] + tail[-draw.randint(2, 5) :]
