"""Text cut into sentences by Wikimedia's splitter."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise

import regex
import sentencex

from resmlp_mt.text.punctuation import CLOSERS, COMMAS, ENDS, UNSEEN, cut_at

# Characters cut at once, and the longest sentence. Where a quote stays open, the time to cut grows
# with their square.
_WINDOW = 2000
# A text that is one sentence in any case: its marks are all at its end.
_MARKS = rf".!?…．;\u037e{ENDS}"
_ONE = regex.compile(rf"(?V1)[^{_MARKS}]*+[{_MARKS}]*+[{CLOSERS}{UNSEEN}\s]*+")
# Characters that the splitter begins a sentence with, but that end the one before: also emphasis.
_BEHIND = regex.compile(
    rf"(?V1s)[,:;].*|[{UNSEEN}\s]*$|(?<!\s)(?:[{UNSEEN}{CLOSERS}*_~]*(?:\s+|$)|[{UNSEEN}]+)|"
)

# Words that go on with a sentence behind a quote that ends in a stop. Particles of Japanese also
# begin words, but seldom before kanji. In Korean no sentence begins without a blank.
_MORE = {
    ("ja", "jpn"): "と(?!ころ|ても|にかく|りあえず|うとう)|って|など|を"
    "|[はがにのも](?=[《「\u30a1-\u30ff\u3400-\u9fff])",
    ("ko", "kor"): r"[\u1100-\u11ff가-힣]|\ (?:이?라[고는며]|하[고며])(?!\w)",
    ("zh", "zho", "cmn"): "的(?![确確士])",
}
# A name with dots, as an address, "System.IO.File" or "main.c()".
_NAME = regex.compile(r"(?i)://|@|^www\.|\w\.\w{2,}\.\w|\w\.\w+\(\)")
_INNER, _BEFORE_CAPITALS = regex.compile(r"\.(?=\w)"), regex.compile(r"\.(?=[A-Z]{2,}\b)")
_WORD_BEFORE = regex.compile(r"(?r)\S*")

# Before a number with a stop that is an ordinal in German: "am 3. Oktober".
_ORDINAL = (
    r"d(?:er|ie|as|en|em|es)|(?:dies|jed)e[mnrs]?|[ai]m|vom|zu[mr]|ab|bis|seit|beim|ins?|an|auf|und"
    r"|oder|(?:mein|dein|sein|ihr|unser|euer|eur|ein|kein)(?:e[mnrs]?)?"
)
_MONTH = (
    r"(?:Jan(?:uar)?|Jänner|Feb(?:ruar)?|März|Apr(?:il)?|Mai|Jun[io]?|Jul[iy]?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Okt(?:ober)?|Nov(?:ember)?|Dez(?:ember)?)\b"
)
# Words that begin sentences, and stand within none with a capital letter.
_OPENER = (
    r"(?:Aber|Als|Am|An|Auch|Auf|Bei|Beim|Da|Daher|Damit|Danach|Dann|Das|Dem|Den|Denn|Der|Des"
    r"|Dies(?:e[mnrs]?)?|Die|Doch|Dort|Du|Ein(?:e[mnrs]?)?|Er|Es|Für|Hier|Ich|Im|In|Ist|Jede[mnrs]?"
    r"|Jetzt|Kann|Kein(?:e[mnrs]?)?|Man|Mit|Nach|Nicht|Noch|Nun|Nur|Ob|Obwohl|Oder|So|Und|Um|Vom|Von"
    r"|Vor|Wann|War|Warum|Was|Weil|Wenn|Wer|Wie|Wir|Wird|Wo|Zu|Zum|Zur)\b"
)
# Words that the splitter takes for abbreviations, by the language of the text; those of English for
# German too. Before a capital letter they are none.
_WORDS = (
    r"al|arc|ark|art|cal|con|del|etc|exec|fed|gen|id|ill|ken|la|man|mar|mass|may|me|med|mex"
    r"|min|miss|mo|no|ok|op|ore|pa|re|rep|res|tex|ver|wash|Al|Art|Bart|Ida|Ill|Ken|May|No|Ok|TeX|CA|ID|LA"
    r"|ME|NO|OK"
)
_BEFORE_CAPITAL = rf"(?=[{CLOSERS}]*\s+[\p{{Ps}}\p{{Pi}}\"']*(?:\p{{Lu}}\p{{Ll}}|[AI]\b))"
# A text is given to the splitter in a spelling of the same length. There a stop that ends nothing
# is a comma, and one that ends a sentence in any case an exclamation mark. The splitter takes
# digits and small letters of ASCII for what goes on with a sentence.
_OWN = {
    "en": {
        # Abbreviations that the splitter lacks, each before what it belongs to.
        r"\.(?<=\b(?:(?i:vol|eq|approx|tel)|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.)"
        r"(?=\s*[(+]?[\d,])|\.(?<=\b[ap]\.m\.)(?=\s(?:[A-Z]{2,3}T|UTC)\b)"
        r"|\.(?<=\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\.)(?=\s[a-z\d(])": ",",
        rf"\.(?<=\b(?:{_WORDS})\.){_BEFORE_CAPITAL}": "!",
    },
    "de": {
        r"\.(?<=\b(?:[Aa](?:bb|bs|bzgl|llg|nm|ufl)|[Bb](?:earb|es|etr|spw)|Bd|Bsp|[Dd]iv"
        r"|[Ee](?:hem|inkl|inschl|ntspr|vtl|xkl)|Fam?|[Gg](?:eb|egr|em|est?|ez|gf)|Hbf|Hl|Hrn?|Hrsg|Inh|[Ii]nkl"
        r"|[Ii]nsb(?:es)?|[Jj]ährl|Kap|max|[Mm]ind?|[Mm]ögl|[Mm]onatl|[Mm]tl|[Nn]ördl|[Öö]stl|[Rr]öm"
        r"|[Ss]og|[Ss]pez|[Ss]tellv|[Ss]üdl|[Tt]ägl|[Tt]gl|[Tt]eilw|[Uu]rspr|[Vv]erh|[Vv]ersch|[Vv]gl"
        r"|[Vv]orm|[Ww]estl|[Ww]öchentl|[Zz]it|[Zz]us|[Zz]zgl"
        rf"|(?i:{_ORDINAL})\s\d{{1,3}})\.)(?=\s)(?!\s+{_OPENER})"
        rf"|\.(?<=\b\d{{1,2}}\.)(?=\s+{_MONTH})": ",",
        # It knows no words that only sentences begin with.
        rf"\.(?<=\b(?:{_WORDS}|ass|bart|kath|mag|mich|Ass|Mai|Mass|usw)\.){_BEFORE_CAPITAL}"
        rf"|\.(?<=\p{{L}}\.)(?=\s+{_OPENER})": "!",
        # It takes numbers and months for what goes on with a sentence.
        rf"\.(?<=\p{{Ll}}{{3}}\.)\s+\K(?:\d|(?={_MONTH})\w)": "A",
    },
}


def split_sentences(text: str, language: str) -> list[str]:
    """Cut a text behind sentences and the white space after them. Joined, they are the text.

    The language is a code, as "en", "de_AT" or "zh-Hans"; English rules hold for unknown ones.
    """
    if _ONE.fullmatch(text):
        return [text] if text else []
    language = base_language(language)
    plain = text
    for pattern, spelled in _find_spellings(language):
        plain = pattern.sub(spelled, plain)
    ends = [0]
    while ends[-1] < len(text):
        window = plain[ends[-1] : ends[-1] + _WINDOW]
        found = sentencex.segment(language, window)
        if ends[-1] + _WINDOW < len(text):
            # The last sentence may end behind the window.
            found = found[:-1] or [window[: window.rfind(" ") + 1] or window]
        for sentence in found:
            ends.append(ends[-1] + len(sentence))
    begins = ((_BEHIND.match(text, start, end).end(), end) for start, end in pairwise(ends[1:]))
    return cut_at(text, (begin for begin, end in begins if begin < end))


@cache
def _find_spellings(language: str) -> list[tuple[regex.Pattern, str | Callable]]:
    """Patterns that the splitter misreads, and a spelling of the same length that it knows."""
    more = "|".join([",", *(words for codes, words in _MORE.items() if language in codes)])
    spellings = {
        r"[\s--\ ]": " ",  # it fails on a wide blank after an initial
        rf"[{';' if language == 'el' else ''}\u037e]": "?",
        # The stop within a number, which it knows between digits of ASCII alone, and within
        # "Mon.–Fri."; commas, of which it takes three for ends; the mark of an image of Markdown:
        # ![text](address); and the last digit within brackets, which it takes for the number of an
        # item: "(p. 3) (p. 4)".
        rf"(?<=\d)[.．](?=\d)|\.(?=[-–]\w)|[{COMMAS}]|(?<![^\s(*_])!(?=\[)"
        r"|\d(?=\))(?<=\([^()]{1,80})": ",",
        rf"[{ENDS}．](?!\s*།)": "。",  # it lacks the ends of some scripts. A shad may be doubled
        # Quotes and brackets that it lacks, in the place of those that it finds within others; and
        # straight quotes, which it takes in pairs, by what stands beside them.
        r'[『〈【［｛｢〝]|"(?=\w)(?<![^\s(]")': "《",
        r'[』〉】］｝｣〟]|"(?<=[^\s(]")': "》",
        rf"[.!?。](?=[.!?。]{{0,9}}[{CLOSERS}]{{1,9}}(?:{more}))": ",",
        r"\.(?=\w)\S*": _spell_name,
        **_OWN.get(language, {}),
        # What begins a sentence behind the end of another script, or behind doubled marks as in
        # chats.
        rf"。[{CLOSERS}]*\ *\K[0-9a-z]|[!?]{{2}}\s+\K[a-z]": "A",
    }
    return [(regex.compile(f"(?V1){row}"), spelled) for row, spelled in spellings.items()]


def _spell_name(match: regex.Match) -> str:
    """The rest of a word from a stop on, with commas for its first stops that end no sentence."""
    before = _WORD_BEFORE.match(match.string, max(0, match.start() - 99), match.start())[0]
    if "." in before:
        return match[0]
    return (_INNER if _NAME.search(before + match[0]) else _BEFORE_CAPITALS).sub(",", match[0])


def parts_sentences_by_blanks(language: str) -> bool:
    """Whether a language is written with blanks between sentences."""
    return base_language(language) not in ("zh", "zho", "cmn", "yue", "wuu", "lzh", "ja", "jpn")


@cache
def base_language(language: str) -> str:
    """The language of a code, without region and script: "de" of "de_AT"."""
    return language.replace("_", "-").partition("-")[0].lower()


def count_several(lines: Iterable[str], language: str) -> int:
    """How many lines hold several sentences. Numbers of lists, rules and emoji are none."""
    return sum(
        sum(any(map(str.isalpha, part)) for part in split_sentences(line, language)) > 1
        for line in lines
    )
