import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.lines.joined import JoinedLines
from resmlp_mt.text.code import LONGEST, part_code


def join(text, language="en"):
    return "\n".join(JoinedLines([text.split("\n")], language))


# A few words, a whole sentence of them, and what wraps to the same sentence.
SENTENCES = {
    "am": "ሰላም ነው።",
    "ar": "كيف حالك؟",
    "bn": "আমি ভালো।",
    "de": "Er fragte: „Kommst du?“",
    "el": "Τι κάνεις;",
    "en": 'He said (in "their" house): "Stop!"',
    "fr": "Il dit : «\u00a0Bonjour\u00a0!\u00a0»",
    "he": "מה שלומך?",
    "hy": "Ինչպե՞ս ես։",
    "ka": "როგორ ხარ?",
    "ko": "저는 학생입니다.",
    "mn": "ᠪᠠᠢᠨᠠ ᠤᠤ᠉",
    "sat": "ᱪᱮᱫ ᱪᱮᱫ᱿",
    "si": "කොහොමද ඔබ෴",
    "ur": "یہ کتاب ہے۔",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_are_put_together_and_kept_apart_in_all_scripts(language):
    sentence = SENTENCES[language]
    wrapped = sentence.replace(" ", "\n")
    assert wrapped != sentence and join(wrapped, language) == sentence
    assert join(f"{wrapped}\n{sentence}", language) == f"{sentence}\n{sentence}"
    marked = f"{sentence}\u200f\n\u200e\n{sentence} \u200e\n{sentence}\u2069\u061c"
    assert join(marked, language) == marked


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("zh", "我喜欢\n苹果。\n你呢？", "我喜欢苹果。\n你呢？"),
        ("zh-Hans", "我用\niPhone\n和\nMac OS\nX。", "我用iPhone和Mac OS X。"),
        ("ja", "「これは、\n本です。」\nはい", "「これは、本です。」\nはい"),
        ("ja", "「行くよ」\n『これは、\n本』\nはい", "「行くよ」\n『これは、本』\nはい"),
        ("ja", "彼は「行くよ」\nと「本」\nを見た。", "彼は「行くよ」と「本」を見た。"),
        ("ja", "「本」と「犬」\nを見た。", "「本」と「犬」を見た。"),
        ("ja", "値は\n１．５と式\n（３）を見た。", "値は１．５と式（３）を見た。"),
        ("th", "สวัสดี\nครับ\n2\nคน", "สวัสดีครับ 2 คน"),
        ("bo", "བཀྲ་\nཤིས།", "བཀྲ་ཤིས།"),
        ("km", "អ្នកសុខ\nសប្បាយទេ៕", "អ្នកសុខសប្បាយទេ៕"),
        ("ko", "저는\n학생입니다.", "저는 학생입니다."),
        ("en", "It means 你\n好 in\nChinese.", "It means 你好 in Chinese."),
    ],
)
def test_no_blank_comes_between_words_that_have_none(language, text, expected):
    assert join(text, language) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Milk\n\nEggs\n \nBread",
        "We need\n- milk\n* eggs\n• bread\n+ ham\n·\tsalt\n◦rice\n・米\n① tea",
        "Ingredients\n1. flour\n2. eggs\n10) a bowl\na) large\niv) deep",
        "Steps:\n7. Stir\n8. Bake\n- long\n9. Eat",
        "１．粉\n２．卵\n\n材料\n（１）粉\n（2）卵",
        "We take:\n– milk\n– eggs",
        "Hello\n-- \nTom\n=====\n* * *\nBye",
        "We said\n> Hello\n> > Hi\n>\n> Bye",
        "Stop! 😀\n**Now.**\nBye ...\nDear me…\n(Well.)",
        "So, etc.\nOf us.\nAt 5 p.m.\nIn 1995.\nI am 42.\nBye",
    ],
)
def test_what_is_apart_stays_apart(text):
    assert join(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "1\n00:00:01,000 --> 00:00:04,000\nGo home.\n\n2\n00:05.000 --> 00:06.000\nNo",
        "From: John\nDate: Mon, 3 Jun\nSubject: Re: Lunch\n\nHi",
        "| Name | Age |\n|------|-----|\n| Tom | 25 |",
        "Do:\n```\nx = 1\nprint(x)\n```\nThen",
        "> From: John\n> To: Ann",
    ],
)
def test_subtitles_headers_tables_and_code_stay_apart(text):
    assert join(text) == text


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "  A dog  \n   and a cat \nplay. ", "  A dog and a cat play. "),
        ("en", "1. Flour\nand eggs\n2. Milk", "1. Flour and eggs\n2. Milk"),
        ("en", "The answer is\n42. Good.", "The answer is 42. Good."),
        ("en", "A man\n– old –\nwaits", "A man – old – waits"),
        ("en", "I met Mr.\nLee, e.g.\nhere.", "I met Mr. Lee, e.g. here."),
        ("en", "> I think\n> so.\n> Bye", "> I think so.\n> Bye"),
        ("en", "It is -5\n-6 here", "It is -5 -6 here"),
        ("de", "Wir kommen am\n3. Oktober an.", "Wir kommen am 3. Oktober an."),
        ("de", "Wir kommen am 3.\nOktober an.", "Wir kommen am 3. Oktober an."),
        ("de", "Berlin,\n1. Mai 2020", "Berlin, 1. Mai 2020"),
        ("de", "Er kam in die\n1. Liga, im\n19. Jahr", "Er kam in die 1. Liga, im 19. Jahr"),
        ("de", "Plan\n1. Am\n2. Mai\n2. Im Juni", "Plan\n1. Am 2. Mai\n2. Im Juni"),
        ("de", "Er hat z. B.\nHunger.\nGut", "Er hat z. B. Hunger.\nGut"),
    ],
)
def test_lines_go_on_with_what_only_looks_like_an_end_or_an_item(language, text, expected):
    assert join(text, language) == expected


def test_lines_go_on_within_subtitles_and_behind_headers():
    text = "1\n00:01 --> 00:02\nI think we\ngo home\n\nDate: Mon,\n 3 Jun\nTo: Ann\n\nin\n1999\nwe"
    expected = "1\n00:01 --> 00:02\nI think we go home\n\nDate: Mon, 3 Jun\nTo: Ann\n\nin 1999 we"
    assert join(text) == expected
    assert join("Three\nThings: a\nLetters: b") == "Three Things: a Letters: b"


def test_a_line_is_there_as_soon_as_it_is_whole_and_ready_says_so():
    read = []
    lines = ["A dog", "sleeps.", "It", "", "Tom", "- a", "b."]

    def come():
        for line in lines:
            read.append(line)
            yield line

    def ready(seconds):
        return len(read) < limit

    joined = JoinedLines([come()], "en", ready)
    for limit, expected, answers in (
        (1, False, []),  # one line comes, and is not whole
        (2, True, ["A dog sleeps."]),
        (3, False, []),
        (4, True, ["It", ""]),
        (5, False, []),
        (6, True, ["Tom"]),
        (7, True, ["- a b."]),
        (8, True, []),  # the end
    ):
        assert joined.ready(0.0) == expected and len(read) == min(limit, len(lines))
        assert [next(joined) for _ in answers] == answers
    assert list(joined) == []


TEXTS = st.lists(
    st.text(alphabet="aB1c。한ไ\u200f .,!?:-–*>)”\"'3่\u3000\t", max_size=12)
    | st.sampled_from(["1. a", "2. b", "3. Mai", "am", "Dr.", "- x", "> y", "a", "", "--", "ไทย"])
    | st.sampled_from(["```", "~~~a", "~~~", "> ```"]),
    max_size=8,
)


@given(st.lists(TEXTS, max_size=3), st.sampled_from(["en", "de", "zh", "th", "el"]))
def test_nothing_is_lost_and_texts_and_blank_lines_stay_apart(texts, language):
    def visible(lines):
        return "".join("".join(lines).replace(">", "").split())

    joined = [list(JoinedLines([text], language)) for text in texts]
    assert list(JoinedLines(texts, language)) == sum(joined, [])
    for text, lines in zip(texts, joined, strict=True):
        assert visible(lines) == visible(text)
        again = [line for whole in lines for line in whole.split("\n")]  # code has several
        assert [line for line in again if not line.strip()] == [
            line for line in text if not line.strip()
        ]
        assert list(JoinedLines([again], language)) == lines
        blocks = ["\n".join(block) for block, is_code in part_code(text) if is_code]
        assert [whole for whole in lines if "\n" in whole] == blocks


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1])
def test_a_block_of_code_that_does_not_end_is_none(length):
    lines = ["```", *["a"] * (length - 2), "```", "b", "~~~c", "d"]
    code, rest = ["\n".join(lines[:length])], ["b", "~~~c", "d"]
    open_ended = ["```", " ".join("a" * (length - 2)), "```", *rest]
    assert list(JoinedLines([lines], "en")) == (open_ended if length > LONGEST else code + rest)
