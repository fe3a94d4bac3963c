"""What ends sentences and clauses in the scripts of the world, and where a word may be cut."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise


def _expand(points: str) -> str:
    """The inside of a character class, from code points in hex and their ranges."""
    return "".join(
        "-".join(chr(int(point, 16)) for point in part.split("-")) for part in points.split()
    )


# Ends of sentences that need no blank behind them: Sentence_Break=STerm of Unicode 16 (UAX 29)
# without those of ASCII. Left out are 104A, 1B5E and A9C8, the commas of Burmese, Balinese and
# Javanese. Added are kunddaliya of Sinhala (0DF4) and shad of Tibetan (0F0D-0F12 and 0F14).
ENDS = _expand("""
    0589 061D-061F 06D4 0700-0702 07F9 0837 0839 083D-083E 0964-0965 0DF4 0F0D-0F12 0F14 104B 1362
    1367-1368 166E 1735-1736 17D4-17D5 1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5F
    1B7D-1B7F 1C3B-1C3C 1C7E-1C7F 203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E53-2E54 2E60-2E61 3002
    A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16
    FE56-FE57 FF01 FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1
    11141-11143 111C5-111C6 111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 113D4-113D5 1144B-1144C
    115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42
    11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16D6E-16D6F 16E98 1BC9F 1DA88
""")
# Commas, colons and semicolons that need no blank behind them, by their names in Unicode.
COMMAS = _expand("""
    055D 060C 061B 0703-0709 07F8 104A 1363-1366 17D6 1802 1804 1808 1B5D-1B5E 204F 3001 A4FD-A4FE
    A60D A6F4-A6F6 A9C8 FE10-FE11 FE13-FE14 FE50-FE51 FE54-FE55 FF0C FF1A-FF1B FF64 1144D 1145A
""")
# Scripts that write words without blanks between them: Thai, Lao, Tibetan, Burmese, Khmer, Han,
# kana and Yi, with their punctuation and with full-width forms.
UNSPACED = _expand("""
    0E00-0FFF 1000-109F 1780-17FF 1950-19FF 1A20-1AAF 2E80-9FFF A000-A4CF A9E0-A9FF AA60-AA7F
    F900-FAFF FE10-FE1F FE30-FE4F FF00-FFEF 20000-3FFFF
""")
# What closes a quote or a bracket behind the end of a sentence.
CLOSERS = "\"'”’»›)\\]」』）】》〉］｝"
# What may stand behind an end unseen: marks of direction, joiners, blanks without width, and the
# selectors of a picture's form.
UNSEEN = "\u061c\u200b\u200c\u200d\u200e\u200f\u202c\u2060\u2069\ufe0e\ufe0f\ufeff"

# Where something begins and ends in a text.
Place = tuple[int, int]

_JOINER, _VIRAMA = "\u200d", 9
_SPACING = "\u0e33\u0eb3"  # vowels of Thai and Lao that Unicode has among the letters


def join_places(places: Iterable[Place]) -> list[Place]:
    """Places in the order of the text, those that overlap as one."""
    joined: list[Place] = []
    for start, end in sorted(places):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def leave_out(places: Iterable[Place], others: Sequence[Place]) -> list[Place]:
    """The places that overlap with none of the others."""
    return [
        (start, end)
        for start, end in places
        if not any(start < stop and begin < end for begin, stop in others)
    ]


def cut_at(text: str, places: Iterable[int]) -> list[str]:
    """The parts of a text between places, which are in order. Joined they are the text."""
    ends = pairwise([0, *places, len(text)])
    return [text[start:end] for start, end in ends if start < end]


def may_cut(text: str, place: int) -> bool:
    """Whether no character, as readers take it, reaches over a place of a text.

    Letters keep their marks, emoji what is joined to them, flags their second letter, and Korean
    syllables their parts: the grapheme clusters of UAX 29, without its rarest rules.

    Args:
        text: Any text.
        place: Of the cut: between 1 and its length - 1.
    """
    before, after = text[place - 1], text[place]
    if _is_mark(after) or after in _SPACING:
        return False
    if _JOINER in (before, after) or before + after == "\r\n":
        return False
    if "\U000e0020" <= after <= "\U000e007f":
        return False  # the letters within flags of regions
    if _is_flag(before) and _is_flag(after):
        flags = re.search("[\U0001f1e6-\U0001f1ff]*$", text[max(0, place - 100) : place])
        return len(flags[0]) % 2 == 0
    if "\u1100" <= min(before, after) <= "\u11ff" and max(before, after) <= "\ud7a3":
        return False  # parts of syllables, of which Korean may be written
    # A virama joins two consonants, with other marks beside it too.
    while after.isalpha() and place and (_is_mark(text[place - 1]) or text[place - 1] == _JOINER):
        place -= 1
        if unicodedata.combining(text[place]) == _VIRAMA:
            return False
    return True


def _is_mark(character: str) -> bool:
    """Whether it belongs to the character before it; colours of skin do too."""
    return unicodedata.category(character)[0] == "M" or "\U0001f3fb" <= character <= "\U0001f3ff"


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
