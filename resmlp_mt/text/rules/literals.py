"""Words that are the same in all languages: code, addresses, files, placeholders, numbers."""

import re
from collections.abc import Iterator
from itertools import chain

from resmlp_mt.text.rules.names import NAME, Fixed, Names, read_names, write_names
from resmlp_mt.text.rules.numbers import find_numbers
from resmlp_mt.text.segments import About, Place, Traced

_FILES = (
    "7z apk avi bak bat bmp bz2 c cfg conf cpp css csv deb dll doc docx exe flac gif gz h htm "
    "html ini ipynb iso jar java jpeg jpg js json log lua md mkv mov mp3 mp4 msi odp ods odt ogg "
    "pdf php png ppt pptx ps1 py rar rb rpm rs rst rtf sh sql sqlite svg tar tex tgz tif "
    "tiff toml ts tsv txt wav webm webp xls xlsx xml xz yaml yml zip"
)
# Without those that are English or German words, which may follow a stop and no blank: "ok.it".
_SITES = "biz ch co com de dev edu eu fr gov io jp net nl org tv uk"
_ENDINGS = "|".join(f"{_FILES} {_SITES}".split())
_NO_NAMES = (
    "a|an|and|are|but|how|i|if|in|is|it|not|or|so|that|the|there|they|this|to|we|what|when|where"
    "|who|why|yes|no|you|aber|das|der|die|du|er|es|ich|ihr|ist|ja|mit|nein|nicht|oder|sie|sind"
    "|und|warum|was|wenn|wer|wie|wir|wo|zu"
)
# Literals with blanks in them: code of Markdown, templates, messages of ICU with all branches. Of
# "{{ name }}" alone models keep the braces, and translate better with them.
_BRACED = r"\{[^{}]*+\}"
for _ in range(4):  # messages within branches of others
    _BRACED = rf"\{{(?:[^{{}}]++|{_BRACED})*+\}}"
_WITH_BLANKS = (
    r"(?<!`)(?P<ticks>`{1,3})(?!`)[^`\n]+(?P=ticks)(?!`)",
    r"(?<!\w)(?:(?!\{\{ [\w.-]+ \}\})\{{2,3}[^{}]{1,200}\}{2,3}|\{%[^{}%]{1,200}%\}"
    r"|<%=?[^<>%]{1,200}%>|[$#%]\{[^{}]{1,200}\})(?!\w)",
    rf"(?<!\w)(?=\{{\s*\w+\s*,\s*[a-z]+){_BRACED}(?!\w)",
)
# Each begins where nothing of its kind comes before. So the time grows with the text, not faster.
_WITHOUT_BLANKS = (
    # An address of the web.
    r"(?<![a-z0-9+.])(?:[a-z][a-z0-9+]{1,20}://|mailto:|www\.)[^\s<>\"“”„«»‹›‘’]{1,2000}",
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",  # of mail
    r"(?<![\w/])[@#][A-Za-z_][\w-]*\w",
    r"(?<![\w/])(?:(?:~|\.{1,2})(?:/[\w.+-]+)+|(?:/[\w.+-]+){2,}|[A-Z]:\\[\w\\.+-]+)/?",
    rf"(?<![\w./+-])[\w+-]{{2,}}(?:[./][\w+-]+)*\.(?i:{_ENDINGS})(?:/[^\s<>\"]*)?(?![\w-]|\.\w)",
    r"(?<![\w-])--[a-z][\w-]*(?:=[^\s,;\"']+)?",
    # Placeholders of C, Python, iOS and Qt, of Mustache and of shells. Behind one "%%" is a
    # percent sign.
    r"(?<![\w%])(?:%(?:\(\w+\))?(?:\d+\$)?[-+#0]?\d*(?:\.\d+)?l{0,2}[cdfgisuxX@])+(?:%%)*(?!\w)"
    r"|(?<![\w%])%(?:n|L?[1-9]\d?)(?![\w%])"
    r"|\{\{[\w.-]+\}\}|(?<=\{\{ )[\w.-]+(?= \}\})|\$?\{[\w.-]*\}|\$[A-Za-z_]\w*",
    # Of Laravel and of SQL, and :smile: of chats. Before other words a blank was put on the wrong
    # side of the colon: "Question :how are you?", "Answer :Yes".
    rf"(?<![^\s(\[\"'„“>|*]):(?!(?:{_NO_NAMES})\b)"
    r"(?:[a-z]|(?<![^\s] :)[A-Z])[A-Za-z0-9_]+(?![\w`]|:`)",
    r"(?<![\w;])&(?:amp;)*(?:#\d{2,7}|#x[0-9A-Fa-f]{2,6}|[A-Za-z][A-Za-z0-9]{1,30});",
)
WHOLE = "|".join(_WITH_BLANKS)
_WHOLE, _LITERAL = re.compile(WHOLE), re.compile("|".join((WHOLE, *_WITHOUT_BLANKS)))
# Signs of which each literal has one, and those of which each literal with blanks has one.
_SIGN = re.compile(r"[`{%<@#/\\$:&~]|\w\.\w|--")
_OPENING = re.compile("[`{<]")
# Marks behind an address that belong to the sentence.
_BEHIND = ".,;:!?…'*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}

# Identifiers: names of programs, parts and orders, as snake_case, KB5034441, us-east-1, m².
# Raised and lowered characters, signs of marks and fractions. Subwords write most plainly: 102 for
# 10², which is another number.
_MARKED = "\u00aa\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u2070-\u209c\u2120\u2122\u2150-\u215f\u2189"
# Letters and digits in one. A model knows short ones, as A4 and mp3. "20th", "100km" and "1990s"
# are words; so are "5-year-old" and German "Formel-1-Fahrer".
_MIXED = r"[A-Za-z]+\d[A-Za-z0-9]*|\d+[A-Za-z]+\d[A-Za-z0-9]*"
_PARTS = r"(?:[._-][A-Za-z0-9]+)*(?![\w@]|[._-][A-Za-z0-9])"
_LONG = re.compile(
    r"\b[A-Za-z]\w*\(\)"
    r"|\b(?=[A-Za-z][A-Za-z0-9]*_)\w+(?<!_)\b"
    r"|\b[a-z]{2,}(?:[A-Z][a-z0-9]+)+\b"
    r"|(?<![\w/])\d{1,4}[-/]\d{1,2}[-/]\d{1,4}(?:T[\d:.]+Z?)?(?![\w/-])"  # a date
    r"|\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4,12})+\b"  # of Unicode's UUIDs
    r"|(?<![\w-])[a-z]{2,}+(?=[a-z0-9-]*\d)(?:(?:-[a-z0-9]+){2,}|-[a-z]+\d[a-z0-9]*)\b"
    rf"|(?<![\w.-])(?=[\w.-]{{5}})(?:{_MIXED}){_PARTS}"
    rf"|(?<![\w\u2044{_MARKED}])[\w\u2044]*[{_MARKED}][\w\u2044{_MARKED}]*"
)
SHORT = re.compile(rf"(?<![\w.-])(?!{NAME}\b)(?:{_MIXED})(?![\w-])")
# Marks of which each identifier has one.
_MARK = re.compile(rf"[\d_{_MARKED}\u2044]|\(\)|[a-z][A-Z]")


def read(text: Traced, about: About) -> tuple[Traced, Names | None]:
    """Put names in the place of literals, identifiers and numbers."""
    kinds = (find(text.text, about) for find in (find_literals, find_identifiers, find_numbers))
    return read_names(text, chain(*kinds), about)


write = write_names


def find_literals(text: str, about: About | None = None) -> Iterator[Fixed]:
    """Yield the literals of a text, without the punctuation around them."""
    for match in _LITERAL.finditer(text) if _SIGN.search(text) else ():
        word = match[0]
        while word and word[0] != "&" and (word[-1] in _BEHIND or _closes(word)):
            word = word[:-1]
        if word:
            yield (match.start(), match.start() + len(word)), word


def _closes(word: str) -> bool:
    """Whether the last character closes a bracket that was opened before the word."""
    return word.count(word[-1]) > word.count(_PAIRS.get(word[-1], word[-1]))


def find_identifiers(text: str, about: About) -> Iterator[Fixed]:
    """Yield long identifiers; short ones too, where the text is read with care."""
    if _MARK.search(text):
        for kind in (_LONG, SHORT) if about.careful else (_LONG,):
            yield from ((match.span(), match[0]) for match in kind.finditer(text))


def find_whole(text: str) -> list[Place]:
    """The places of literals that have blanks in them: no sentence ends there."""
    found = _WHOLE.finditer(text) if _OPENING.search(text) else ()
    return [match.span() for match in found if " " in match[0]]
