"""Characters that are spelled out, as "&amp;" in HTML, and blanks at which no line is broken."""

import html
import re
from dataclasses import dataclass

# A model translates better what it reads as a character. Others are read as names, and so is what
# was spelled out twice. Android and many programs have a backslash before quotes.
_SPELLED = re.compile(
    r"""&(?:amp;(?!#?\w+;)|(?:lt|gt|quot|apos|nbsp|#39|#160|#x27|#xa0);)|(?<!\\)\\["']""",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&#?\w+;")
# Not the one that begins an entity which the text still has.
_CHARACTER = re.compile(r"[<>\"'\xa0]|&(?!#?\w+;)")
_TOKEN = r"\w+|[^\w\s]"
_FIXED_BLANK = re.compile(
    rf"(?P<before>{_TOKEN})(?P<blank>[\xa0\u2007\u202f])(?=(?P<behind>{_TOKEN}))"
)


@dataclass(frozen=True)
class Spelled:
    """A text whose characters are spelled out, and how.

    Attributes:
        texts: The text with the characters themselves, alone.
        spelling: Of each of these characters.
    """

    texts: tuple[str]
    spelling: dict[str, str]

    def put_together(self, translations: list[str]) -> str:
        """The translation of the text, with the characters spelled as they were."""
        (text,) = translations
        return _CHARACTER.sub(lambda match: self.spelling.get(match[0], match[0]), text)


def read_spelled(text: str) -> Spelled | None:
    """A text in which some of `& < > " '` and fixed blanks are spelled out, if there are any.

    A character that stands there as it is too is left out: nobody knew how to write it afterwards.

    >>> read_spelled("Salt &amp; pepper").texts
    ('Salt & pepper',)
    """
    raw = _ENTITY.sub("", _SPELLED.sub("", text))
    found = {_read(spelled): spelled for spelled in _SPELLED.findall(text)}
    spelling = {character: entity for character, entity in found.items() if character not in raw}
    if not spelling:
        return None

    def write(match: re.Match) -> str:
        character = _read(match[0])
        return character if character in spelling else match[0]

    return Spelled((_SPELLED.sub(write, text),), spelling)


def _read(spelled: str) -> str:
    """The character that is spelled out."""
    return html.unescape(spelled) if spelled.startswith("&") else spelled[1:]


def restore_blanks(translation: str, source: str) -> str:
    r"""Put blanks at which no line is broken between the same words as in the source.

    Subwords make plain blanks of them.

    >>> restore_blanks("Das kostet 5 € im Monat.", "It is 5\xa0€ a month.")
    'Das kostet 5\xa0€ im Monat.'
    """
    for match in _FIXED_BLANK.finditer(source):
        before, blank, behind = match["before"], match["blank"], match["behind"]
        if f"{before} {behind}" in source:
            continue  # nobody knows which is which
        both = rf"(?:(?<!\w)|(?=\W)){re.escape(before)} {re.escape(behind)}(?:(?<=\W)|(?!\w))"
        translation = re.sub(both, lambda _, said=before + blank + behind: said, translation)
    return translation
