"""Words that are the same in all languages: addresses, files, placeholders, names of programs."""

import re
from collections.abc import Iterator

from resmlp_mt.text.punctuation import Place
from resmlp_mt.text.stand_ins import FIRST_MARK

_FILES = (
    "7z apk avi bak bat bmp bz2 c cfg conf cpp css csv deb dll doc docx exe flac gif gz h htm "
    "html ini ipynb iso jar java jpeg jpg js json log lua md mkv mov mp3 mp4 msi odp ods odt ogg "
    "pdf php png ppt pptx ps1 py rar rb rpm rs rst rtf sh sql sqlite svg tar tex tgz tif "
    "tiff toml ts tsv txt wav webm webp xls xlsx xml xz yaml yml zip"
)
# Without those that are English or German words, which may follow a stop and no blank: "ok.it".
_SITES = "biz ch co com de dev edu eu fr gov io jp net nl org tv uk"
_MARKS = rf"{FIRST_MARK}-\U0010ffff"
_ENDINGS = "|".join(f"{_FILES} {_SITES}".split())
_NO_NAMES = "|".join(
    "a an and are but how i if in is it not or so that the there they this to we what when where "
    "who why yes no you aber das der die du er es ich ihr ist ja mit nein nicht oder sie sind so "
    "und warum was wenn wer wie wir wo zu".split()
)
# Each begins where nothing of its kind comes before. So the time grows with the text, not faster.
_KINDS = {
    "address": r"(?<![a-z0-9+.])(?:[a-z][a-z0-9+]{1,20}://|mailto:|www\.)[^\s<>\"“”„«»‘’]{1,2000}",
    "mail": r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    "handle": r"(?<![\w/])[@#][A-Za-z_][\w-]*\w",
    "path": r"(?<![\w/])(?:(?:~|\.{1,2})(?:/[\w.+-]+)+|(?:/[\w.+-]+){2,}|[A-Z]:\\[\w\\.+-]+)/?",
    "file": rf"(?<![\w./+-])[\w+-]{{2,}}(?:[./][\w+-]+)*\.(?i:{_ENDINGS})"
    r"(?:/[^\s<>\"]*)?(?![\w-]|\.\w)",
    "option": r"(?<![\w-])--[a-z][\w-]*(?:=[^\s,;\"']+)?",
    # Of C, Python, iOS and Qt, of Mustache and of shells. Behind one "%%" is a percent sign.
    "placeholder": r"(?<![\w%])(?:%(?:\(\w+\))?(?:\d+\$)?[-+#0]?\d*(?:\.\d+)?l{0,2}[cdfgisuxX@])+"
    r"(?:%%)*(?!\w)|(?<![\w%])%(?:n|L?[1-9]\d?)(?![\w%])"
    r"|\{\{[\w.-]+\}\}|(?<=\{\{ )[\w.-]+(?= \}\})|\$?\{[\w.-]*\}|\$[A-Za-z_]\w*",
    # Of Laravel and of SQL, and :smile: of chats. Before other words a blank was put on the wrong
    # side of the colon: "Question :how are you?", "Answer :Yes". Sphinx has code behind its names.
    "name": rf"(?<![^\s(\[\"'„“>|*]):(?!(?:{_NO_NAMES})\b)"
    r"(?:[a-z]|(?<![^\s] :)[A-Z])[A-Za-z0-9_]+(?![\w`]|:`)",
    "entity": r"(?<![\w;])(?P<entity>&(?:amp;)*"
    r"(?:#\d{2,7}|#x[0-9A-Fa-f]{2,6}|[A-Za-z][A-Za-z0-9]{1,30});)(?![\w&])",
    "call": r"\b[A-Za-z]\w*\(\)",
    "snake": r"\b(?=[A-Za-z][A-Za-z0-9]*_)\w+(?<!_)\b",
    "camel": r"\b[a-z]{2,}(?:[A-Z][a-z0-9]+)+\b",
    "date": r"\b\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?\b|(?<![\w/])\d{1,2}/\d{1,2}/\d{4}(?![\w/])",
    # Letters and digits that change twice, and not "20th", "100km" or "mp3". Or very many.
    "code": r"\b(?=\w{7})(?:[A-Za-z]+\d+[A-Za-z]|\d+[A-Za-z]+\d)[A-Za-z0-9]*(?:-[A-Za-z0-9]+)*\b"
    r"|\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{10,}\b",
    "mark": rf"(?<![^\W_])(?<![{_MARKS}])[{_MARKS}]+(?!\w)",
    "uuid": r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4,12})+\b",
    "number": r"(?<![\w.,])\d{6,}(?!\w|[.,]\d)",
}
# What templates compute, with blanks in it: Jinja's {{ name | upper }}, ICU's {n, number}, Ruby's
# <%= name %>. Of a name alone models keep the braces, and translate better with them. Branches of
# ICU's plurals are text.
_COMPUTED = (
    r"(?<!\w)(?:(?!\{\{ [\w.-]+ \}\})\{{2,3}[^{}]{1,200}\}{2,3}|[$#%]\{[^{}]{1,200}\}"
    r"|<%=[^<>%]{1,200}%>"
    r"|\{\s*\w+\s*,\s*(?:number|date|time|duration|ordinal|spellout)\b[^{}]{0,200}\})(?!\w)"
)
_WORD, _WITH_BLANKS = (
    re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    for patterns in (_KINDS.values(), (_COMPUTED, *_KINDS.values()))
)
# What stands behind an address, and is of the sentence.
_BEHIND = ".,;:!?…'*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}


def find_literals(text: str, blanks: bool = True) -> Iterator[Place]:
    """Yield the places of such words in a text, without the punctuation around them.

    >>> [text[start:end] for text in ["Edit setup.py, e.g. %(count)s."]
    ...  for start, end in find_literals(text)]
    ['setup.py', '%(count)s']

    Args:
        text: Any text.
        blanks: Take what templates compute as a whole. Without it none has a blank in it: of
            "{{ name }}" it is the name.
    """
    for match in (_WITH_BLANKS if blanks else _WORD).finditer(text):
        word = match[0]
        is_entity = match.lastgroup == "entity"
        while word and not is_entity and (word[-1] in _BEHIND or _closes(word)):
            word = word[:-1]
        if word:
            yield match.start(), match.start() + len(word)


def _closes(word: str) -> bool:
    """Whether the last character closes a bracket that was opened before the word."""
    opener = _PAIRS.get(word[-1])
    return opener is not None and word.count(word[-1]) > word.count(opener)
