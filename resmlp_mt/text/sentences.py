"""Text cut into sentences by Wikimedia's splitter."""

import re
import warnings
from collections.abc import Callable, Iterable
from functools import cache

from resmlp_mt.text.punctuation import CLOSERS, COMMAS, ENDS, UNSEEN, cut_at

# Characters cut at once, and the longest sentence. Where a quote stays open, the time to cut grows
# with their square.
_WINDOW = 5000
# The stop within a number, which the splitter knows between digits of ASCII alone.
_POINT = re.compile(r"(?<=\d)[.．](?=\d)")
# Ends of all scripts. A shad may be doubled.
_FOREIGN_END = re.compile(rf"[{ENDS}．](?!\s*།)")
# The splitter lacks some of them, but knows "。". Behind it digits and small letters of ASCII go on
# with the sentence, for the splitter; and it takes three commas for ends.
_KNOWN_END = "。"
_GOES_ON = re.compile(rf"(?<={_KNOWN_END})[{CLOSERS}]* *[0-9a-z]")
_FOREIGN_COMMA = re.compile(f"[{COMMAS}]")
# Quotes and brackets that the splitter lacks, in the place of those that it finds within others.
_QUOTES = str.maketrans("『〈【［｛｢〝』〉】］｝｣〟", "《" * 7 + "》" * 7)
# What goes on with a sentence behind a quote that ends in a stop. Particles of Japanese also begin
# words, but seldom before kanji. In Korean no sentence begins without a blank.
_MORE = {
    ("ja", "jpn"): "と(?!ころ|ても|にかく|りあえず|うとう)|って|など|を"
    "|[はがにのも](?=[《「\u30a1-\u30ff\u3400-\u9fff])",
    ("ko", "kor"): r"[\u1100-\u11ff가-힣]|\ (?:이?라[고는며]|하[고며])(?!\w)",
    ("zh", "zho", "cmn"): "的(?![确確士])",
}
# What the splitter begins a sentence with, and what is of the one before: Markdown's emphasis too.
_BEHIND = re.compile(rf"[{UNSEEN}{CLOSERS}*_~]*(?:\s+|$)|[{UNSEEN}]+")
_UNSEEN = re.compile(rf"[{UNSEEN}\s]*")
# Before a number with a stop that is an ordinal in German: "am 3. Oktober".
OF_ORDINAL = r"d(?:er|ie|as|en|em|es)|(?:dies|jed)e[mnrs]?|[ai]m|vom|zu[mr]|ab|bis|seit"
_ORDINAL = re.compile(
    rf"(?i)\b(?:{OF_ORDINAL}|(?:mein|dein|sein|ihr|unser|euer|eur|ein|kein)(?:e[mnrs]?)?|beim|ins?"
    r"|und|oder)\s\d{1,3}\.\s+$"
)
_OPENERS = re.compile(r"(?:Dann|Danach|Da|Das|Der|Die|Er|Sie|Es|Wir|Ich|Aber|Und)\b")
# What the splitter takes for ends of sentences: before numbers, and in German before names.
_BEFORE_NUMBER = re.compile(r"(?i)\b(?:vol|eq|approx|tel)\.\s*$")
_NUMBER = re.compile(r"[(+]?\d")
_GERMAN_SHORT = re.compile(r"\b(?:Fa|Inh|zzgl)\.\s*$")
_BEGINS_IMAGE = re.compile(r"(?:^|[\s(*_])!$")  # of Markdown: ![text](address)
_ADDRESS = re.compile(r"(?i)://|@|^www\.")
_IN_CAPITALS = re.compile(r"[A-Z]{2,}\b")
_LOUD = re.compile(r"[!?]{2,}\s+(?=[^\W\d_])")
# Without the splitter: punctuation that ends a sentence, what closes behind it, and white space,
# which the ends of other scripts go without. German and French close with what others open with.
_END = re.compile(rf"[.!?…]+[{CLOSERS}“‘«‹{UNSEEN}]*\s+|{_KNOWN_END}+[{CLOSERS}{UNSEEN}]*\s*(?!,)")


def split_sentences(text: str, language: str) -> list[str]:
    """Cut a text after each sentence and the white space that follows it.

    Args:
        text: Any text.
        language: Its code, as "en", "de_AT" or "zh-Hans"; English rules hold for unknown ones.

    Returns:
        The sentences in order; joined they are the text. Where sentencex is not installed they end
        at punctuation alone, with a warning.
    """
    find_sentences = _splitter()
    language = base_language(language)
    plain = _spell_plainly(text, language)
    sentences: list[str] = []
    start = 0
    while start < len(text):
        window = plain[start : start + _WINDOW]
        found = find_sentences(language, window)
        if start + _WINDOW < len(text):
            # The last sentence may end behind the window.
            found = found[:-1] or [window[: window.rfind(" ") + 1] or window]
        for sentence in found:
            sentences.append(text[start : start + len(sentence)])
            start += len(sentence)
    return [part for sentence in _mend(sentences, language) for part in _cut_loud(sentence)]


def _mend(sentences: list[str], language: str) -> list[str]:
    """The sentences, each with what stands behind it, and those as one that were torn."""
    mended = sentences[:1]
    for sentence in sentences[1:]:
        if _goes_on(mended[-1], sentence, language):
            mended[-1] += sentence
            continue
        behind = _UNSEEN.fullmatch(sentence)
        if not behind and not mended[-1][-1].isspace():
            behind = _BEHIND.match(sentence)
        end = behind.end() if behind else 0
        mended[-1] += sentence[:end]
        if end < len(sentence):
            mended.append(sentence[end:])
    return mended


def _goes_on(before: str, behind: str, language: str) -> bool:
    """Whether what the splitter took for two sentences is one."""
    near = before[-40:]
    if behind[0] in ",:;" or _NUMBER.match(behind) and _BEFORE_NUMBER.search(near):
        return True
    if language == "de" and _GERMAN_SHORT.search(near):
        return True
    if behind[0] == "[" and _BEGINS_IMAGE.search(near):
        return True
    if before[-1].isspace():
        ordinal = language == "de" and _ORDINAL.search(near)
        return bool(ordinal and not _OPENERS.match(behind))
    if before[-1] != ".":
        return False
    # Within an address, or a name with dots: "README.MD", "System.IO.File".
    first, last = re.split(r"\s", before[-200:])[-1], re.split(r"\s", behind[:200], maxsplit=1)[0]
    if _ADDRESS.search(first) or re.search(r"\w\.\w+\.\w", first + last):
        return True
    return bool(_IN_CAPITALS.match(last)) and not before[-200:].isupper()


def _cut_loud(sentence: str) -> list[str]:
    """Cut behind marks that are doubled, as in chats, where small letters begin sentences."""
    return cut_at(sentence, (match.end() for match in _LOUD.finditer(sentence)))


def _spell_plainly(text: str, language: str) -> str:
    """The same ends of sentences, in the spelling that the splitter knows; character by character.

    It fails on a wide blank after an initial.
    """
    text = re.sub(r"\s", " ", text)
    if language == "el":
        text = re.sub("[;\u037e]", "?", text)
    text = _FOREIGN_END.sub(_KNOWN_END, _POINT.sub(",", text))
    text = _FOREIGN_COMMA.sub(",", text).translate(_QUOTES)
    text = _quoted_stop(language).sub(_spell_quoted, text)
    return _GOES_ON.sub(lambda match: match[0][:-1] + "A", text)


@cache
def _quoted_stop(language: str) -> re.Pattern:
    """Stops, with what closes a quote behind them where the sentence goes on."""
    more = [",", *(words for codes, words in _MORE.items() if language in codes)]
    return re.compile(rf"([.!?{_KNOWN_END}]+)([{CLOSERS}]+(?={'|'.join(more)}))?")


def _spell_quoted(match: re.Match) -> str:
    stops, closers = match.groups()
    return "," * len(stops) + closers if closers else stops


@cache
def _splitter() -> Callable[[str, str], list[str]]:
    try:
        import sentencex
    except ModuleNotFoundError:  # an exported model in a small container may do without
        return _cut_at_punctuation
    return sentencex.segment


def _cut_at_punctuation(language: str, text: str) -> list[str]:
    parts = cut_at(text, (match.end() for match in _END.finditer(text)))
    if len(parts) > 1:  # Python shows it once
        message = "sentencex is not installed: sentences end at punctuation, abbreviations too"
        warnings.warn(message, stacklevel=3)
    return parts


def parts_sentences_by_blanks(language: str) -> bool:
    """Whether a language is written with blanks between sentences."""
    return base_language(language) not in ("zh", "zho", "cmn", "yue", "wuu", "lzh", "ja", "jpn")


def base_language(language: str) -> str:
    """The language of a code, without region and script: "de" of "de_AT"."""
    return re.split("[-_]", language)[0].lower()


def count_several(lines: Iterable[str], language: str) -> int:
    """How many lines hold several sentences. Numbers of lists, rules and emoji are none."""
    return sum(
        sum(any(map(str.isalpha, part)) for part in split_sentences(line, language)) > 1
        for line in lines
    )
