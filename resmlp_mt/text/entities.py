"""Characters that are spelled out, as "&amp;" in HTML, and blanks at which no line is broken."""

import html
import re
from dataclasses import dataclass

_ENTITY = re.compile(r"&#?\w+;")
# Of HTML, and the backslash before quotes of Android and many programs. What was spelled out twice,
# as &amp;nbsp; is no character.
_SPELLED = re.compile(r"""&amp;(?!#?\w+;)|(?!&amp;)&#?\w{2,31};|(?<!\\)\\["']""")
# Not the & that begins an entity which the text still has.
_CHARACTER = re.compile(r"[^&]|&(?!#?\w+;)", re.DOTALL)
_FIXED = "\xa0"  # the blank of &nbsp;
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
    """A text in which characters are spelled out, if there are any: a model reads these better.

    A character that stands there as it is too is left out: nobody knew how to write it afterwards.

    >>> read_spelled("Salt &amp; pepper").texts
    ('Salt & pepper',)
    """
    raw = _ENTITY.sub("", _SPELLED.sub("", text))
    found = {_read(spelled): spelled for spelled in _SPELLED.findall(text)}
    spelling = {c: spelled for c, spelled in found.items() if _is_shown(c) and c not in raw}

    def write(match: re.Match) -> str:
        character = _read(match[0])
        return character if character in spelling else match[0]

    written = _SPELLED.sub(write, text)
    return Spelled((written,), spelling) if spelling else None


def _read(spelled: str) -> str:
    """The character that is spelled out; what is no entity as it is."""
    return html.unescape(spelled) if spelled.startswith("&") else spelled[1:]


def _is_shown(read: str) -> bool:
    """Whether it is one character, and none that ends a line or cannot be seen."""
    return len(read) == 1 and (read.isprintable() or read == _FIXED)


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
