"""Lines put together that break within sentences: mails, wrapped text, copies from PDF."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import monotonic

import regex

from resmlp_mt.text.code import LONGEST, Fence, ends_code, find_fence
from resmlp_mt.text.punctuation import CLOSERS, ENDS, UNSEEN, UNSPACED
from resmlp_mt.text.sentences import OF_ORDINAL, base_language, parts_sentences_by_blanks

_REACH = 100  # characters at the end of a text that are looked at

# The end of a sentence, and what may stand behind it: quotes, brackets, emphasis, emoji, and what
# is unseen.
_BEHIND = rf"(?:[“‘«‹]|\s*[{CLOSERS}*_{UNSEEN}\u2600-\u27bf\U0001f000-\U0001faff])*$"
_END = regex.compile(rf"(?V1)[.!?…．{ENDS}]{_BEHIND}")
_GREEK_END = regex.compile(rf"(?V1)[;\u037e]{_BEHIND}")
# A line of speech, which ends without a stop in Japanese.
_SPEECH = re.compile(r"「[^」]*」|『[^』]*』")
# A full stop behind these ends no sentence.
_SHORT = re.compile(
    r"(?<!\w)(?:Mr|Mrs|Ms|Dr|Prof|Hr|Fr|Nr|approx|incl|cf|vs|e\.\s?g|i\.\s?e"
    r"|bzw|ca|evtl|ggf|inkl|sog|vgl|[zZ]\.\s?B|[dD]\.\s?h)\.$"
)

# What items of a list begin with. Lines within a sentence begin with dashes and with numbers too.
_ITEM = re.compile(
    r"(?:[-+*·∙]\s|[•◦‣⁃▪▫●○■□▶▸►◆◇➢✓✔・※\u2460-\u24ff]"
    r"|(?P<dash>[–—])\s|(?P<open>（)?(?P<number>\d{1,3})(?(open)）|(?:\.\s+|．\s*(?!\d)))"
    r"|(?:\d{1,3}|[^\W\d_]|[ivxIVX]{2,5})[)）]\s)"
)
_BEFORE_ORDINAL = re.compile(rf"(?i)\b(?:{OF_ORDINAL})$")
_OPEN_ORDINAL = re.compile(rf"(?i)\b(?:{OF_ORDINAL})\s\d{{1,3}}\.$")
_MONTH = re.compile(
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
    r"|(?:Jan|Feb|Apr|Aug|Sept?|Okt|Nov|Dez)\.)(?!\w)"
)

# Quoted lines of mails; and lines that part others, as those of dashes do.
_QUOTE = re.compile(r"(?:\s*>)*")
_RULE = re.compile(r"(?:[-=_*~#+]\s*){2,}")
# Times of subtitles and rows of tables, which stay apart; headers of mails.
_ROW = re.compile(r"\||.*\d\s*-->\s*\d")
_HEADER = re.compile(r"[A-Z][\w-]*:\s")
_UNSPACED = re.compile(f"[{UNSPACED}]")


class JoinedLines:
    """Lines, of which each that does not end its sentence is put together with the next.

    >>> list(JoinedLines([["A dog", "sleeps.", "", "- It is", "- late"]], "en"))
    ['A dog sleeps.', '', '- It is', '- late']

    Blank lines, items of lists, lines of dashes, and quotes of another depth stay apart. So do
    headers of mails, numbers and times of subtitles, and rows of tables. A block of code is one
    line, with line ends in it. A line is there as soon as it is known to be whole. Behind what
    begins a block, that is where the block ends, or is known to have no end.

    Args:
        texts: The lines of each text. Those of two texts are never put together.
        language: Of the lines: its code.
        ready: Whether the next of the lines, or their end, comes within so many seconds.
    """

    def __init__(
        self,
        texts: Iterable[Iterable[str]],
        language: str,
        ready: Callable[[float], bool] = lambda seconds: True,
    ):
        self._ready = ready
        self._steps = self._join(texts, language)
        self._whole: deque[str] = deque()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._whole:
            self._whole.extend(next(self._steps))
        return self._whole.popleft()

    def ready(self, seconds: float) -> bool:
        """Whether the next whole line, or the end, comes within so many seconds."""
        until = monotonic() + seconds
        while not self._whole:
            if not self._ready(max(0.0, until - monotonic())):
                return False
            try:
                self._whole.extend(next(self._steps))
            except StopIteration:
                return True
        return True

    def _join(self, texts: Iterable[Iterable[str]], language: str) -> Iterator[list[str]]:
        """Yield for each line, and for the end of each text, the lines that are whole by it."""
        for lines in texts:
            text = _Text(base_language(language))
            for line in lines:
                yield text.take(line)
            yield text.finish()


class _Text:
    """A text whose lines come one after the other.

    Args:
        language: Of the text, without region and script.
    """

    def __init__(self, language: str):
        self.language = language
        self.parts: list[str] = []  # of what is put together
        self.end = ""  # of it
        self.depth = 0  # of the quote that it is
        self.dash = None  # what it begins with as an item of a list
        self.number = 0  # of the last item
        self.heads = False  # whether it is a header of a mail
        self.fence: Fence | None = None  # of the block of code whose end has not come
        self.code: list[str] = []  # its lines

    def take(self, line: str) -> list[str]:
        """Add a line; what is whole by it."""
        if self.fence:
            return self._take_code(line, self.fence)
        if fence := find_fence(line):
            self.fence, self.code = fence, [line]
            return self.close()
        quote = _QUOTE.match(line)[0]
        depth, text = quote.count(">"), line[len(quote) :].strip()
        apart = self._stays_apart(text)
        whole = self.close() if apart or depth != self.depth else []
        if apart:
            return [*whole, line]
        heads = bool(_HEADER.match(text))
        if (item := self._find_item(text)) or heads and self.heads:
            whole += self.close()
        if self.parts:
            gap = self._find_gap(text)
            self.parts[-1] = self.parts[-1].rstrip()
            self.parts += [gap, line[len(quote) :].lstrip()]
            self.end += gap + text
        else:
            self.parts, self.end, self.depth = [line], text, depth
            self.heads, self.dash = heads, item and item["dash"]
            self.number = int(item and item["number"] or self.number)
        self.end = self.end[-_REACH:]
        return whole + self.close() if self._ends() else whole

    def _take_code(self, line: str, fence: Fence) -> list[str]:
        self.code.append(line)
        if ends_code(line, fence):
            block, self.fence = "\n".join(self.code), None
            return [block]
        return self._give_up() if len(self.code) == LONGEST else []

    def _give_up(self) -> list[str]:
        """Take the lines of a block without an end as others, but for the first, which is whole."""
        self.fence = None
        first, *others = self.code
        return [first, *(whole for line in others for whole in self.take(line))]

    def _stays_apart(self, text: str) -> bool:
        """Whether a line is whole, and so is what comes before it."""
        if text.isdecimal():  # of a subtitle, unless a sentence goes on with it
            return not self.parts
        return not text.strip(UNSEEN) or bool(_RULE.fullmatch(text) or _ROW.match(text))

    def close(self) -> list[str]:
        """What was put together, if anything was: nothing comes to it any more."""
        whole = ["".join(self.parts)] if self.parts else []
        self.parts, self.end = [], ""
        return whole

    def finish(self) -> list[str]:
        """What is left at the end of the text."""
        whole = []
        while self.fence:
            whole += self._give_up()
        return whole + self.close()

    def _ends(self) -> bool:
        """Whether it ends a sentence."""
        if len(self.end) < _REACH and _SPEECH.fullmatch(self.end.strip()):
            return True
        if not _END.search(self.end):
            return self.language == "el" and bool(_GREEK_END.search(self.end))
        ordinal = self.language == "de" and _OPEN_ORDINAL.search(self.end)
        return not (ordinal or _SHORT.search(self.end))

    def _find_item(self, text: str) -> re.Match | None:
        """The mark of an item with which a line begins."""
        item = _ITEM.match(text)
        if not item or self.end.endswith((":", "：")):
            return item
        if number := item["number"]:
            if self.language == "de" and (
                _BEFORE_ORDINAL.search(self.end) or _MONTH.match(text, item.end())
            ):
                return None
            return item if not self.parts or int(number) in (1, self.number + 1) else None
        return item if not self.parts or item["dash"] in (None, self.dash) else None

    def _find_gap(self, text: str) -> str:
        """What goes between it and the next line."""
        close = all if parts_sentences_by_blanks(self.language) else any
        return "" if close(map(_UNSPACED.match, (self.end[-1], text[0]))) else " "
