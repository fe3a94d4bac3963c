import re
import sys

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from resmlp_mt.inference.segments import find_spaces, split_text

from resmlp_mt.data.subwords import load_subwords
from resmlp_mt.files.finding import PRETRAINED
from resmlp_mt.text import sentences as sentences_module
from resmlp_mt.text.punctuation import ENDS, may_cut
from resmlp_mt.text.sentences import count_several, split_sentences


def split(text, longest=100, sentences=True, pieces=str.split, language="en"):
    """The texts of the segments, each with all of its subwords."""
    parts = split_text(text, lambda x: split_sentences(x, language), pieces, longest, sentences)
    assert all(list(part.pieces) == list(pieces(part.text.strip())) for part in parts)
    return [part.text for part in parts]


def test_whole_lines_that_fit_stay_whole_and_others_are_cut_in_sentences():
    text = "One. Two. Three. Four.\nFive. Six."
    assert split(text, 3, sentences=False) == ["One. ", "Two. ", "Three. ", "Four.\n", "Five. Six."]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Mr. Lee met Dr. Wu. He left.", ["Mr. Lee met Dr. Wu. ", "He left."]),
        ("en_US", 'He said "stop it."  Then\the left!', ['He said "stop it."  ', "Then\the left!"]),
        ("en", "One.\n\n  Two. Three.\n", ["One.\n\n", "  Two. ", "Three.\n"]),
        ("en", " \n\x01One.\n \x01 \nTwo.", [" \n\x01One.\n \x01 \n", "Two."]),
        ("de", "Er kam z. B. am 3. Mai. Gut!", ["Er kam z. B. am 3. Mai. ", "Gut!"]),
        ("de", "Im 19. Jahrhundert. Und?", ["Im 19. Jahrhundert. ", "Und?"]),
        ("de", "Dem 5. Mai, seinem 40. Geburtstag.", ["Dem 5. Mai, seinem 40. Geburtstag."]),
        ("de", "Nr. 1. Das weiß ich.", ["Nr. 1. ", "Das weiß ich."]),
        ("de", "Er kam am 3. Dann ging er.", ["Er kam am 3. ", "Dann ging er."]),
        ("en", "I am in 19. Fine.", ["I am in 19. ", "Fine."]),
        ("en", "Go to WWW.EXAMPLE.COM now.", ["Go to WWW.EXAMPLE.COM now."]),
        ("en", "Open README.TXT. Use ASP.NET.", ["Open README.TXT. ", "Use ASP.NET."]),
        ("en", "Call System.IO.File.ReadAll. Go.", ["Call System.IO.File.ReadAll. ", "Go."]),
        ("en", "SEE HTTPS://EXAMPLE.COM FOR MORE", ["SEE HTTPS://EXAMPLE.COM FOR MORE"]),
        ("en", "I am tired.You are nice.", ["I am tired.", "You are nice."]),
        ("en", "I AM TIRED.YOU ARE NICE.", ["I AM TIRED.", "YOU ARE NICE."]),
        ("en", "See vol. 3, eq. (3).", ["See vol. 3, eq. (3)."]),
        ("en", "They sing mi fa. Then they stop.", ["They sing mi fa. ", "Then they stop."]),
        ("de", "Die Fa. Meier kommt.", ["Die Fa. Meier kommt."]),
        ("en", "how are you?? im fine!!! u?", ["how are you?? ", "im fine!!! ", "u?"]),
        ("zh-Hans", "你好。我是学生！你呢？", ["你好。", "我是学生！", "你呢？"]),
        ("ja", "はい。元気です。", ["はい。", "元気です。"]),
        ("hi", "नमस्ते। कैसे हो?", ["नमस्ते। ", "कैसे हो?"]),
        ("tlh", "A man. A dog.", ["A man. ", "A dog."]),
        ("en", "\x01 \n", []),
    ],
)
def test_sentences_are_those_of_the_language(language, text, expected):
    def pieces(part):
        return part.replace("\x01", " ").split()

    assert split(text, language=language, pieces=pieces) == expected


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("A b c. D e! F?", 3, ["A b c. ", "D e! ", "F?"]),
        ("A b, c d; e far. Gee", 3, ["A b, ", "c d; ", "e far. ", "Gee"]),
        ("A b, c d; e far. Gee", 4, ["A b, c d; ", "e far. ", "Gee"]),
        ("A b c d e", 2, ["A b ", "c d ", "e"]),
        ("3.5 is a number. So is 4.", 4, ["3.5 is a number. ", "So is 4."]),
    ],
)
def test_sentences_are_cut_in_clauses_before_words(text, longest, expected):
    assert split(text, longest) == split(text, longest, sentences=False) == expected


def test_clauses_without_spaces_are_cut_at_their_punctuation():
    text = "一二三，四五六，七八九。十。"
    assert split(text, 8, pieces=list) == ["一二三，四五六，", "七八九。", "十。"]


# What is a sentence by itself, in scripts with blanks between sentences and without.
SCRIPTS = {
    "am": ["ሰላም ነው።", "እንዴት ነህ፧", "ደህና ነኝ።"],
    "ar": ["مرحبا، يا علي.", "كيف حالك؟", "أنا بخير۔"],
    "bn": ["আমি ভালো।", "তুমি কেমন?", "চলো!"],
    "bo": ["བཀྲ་ཤིས། །", "ཁྱེད་རང་།", "བདེ་པོ༎"],
    "el": ["Τι κάνεις;", "Καλά.", "Εσύ;"],
    "he": ["שלום.", "מה שלומך?", "טוב!"],
    "hy": ["Բարև, ընկեր։", "Ինչպե՞ս ես։", "Լավ եմ։"],
    "ja": ["これは本です．", "「はい。」", "2つある。"],
    "ka": ["გამარჯობა.", "როგორ ხარ?", "კარგად."],
    "km": ["សួស្តី។", "អ្នកសុខសប្បាយទេ៕", "បាទ។"],
    "ko": ["안녕하세요.", "저는 학생입니다.", "반갑습니다!"],
    "mn": ["ᠰᠠᠢᠨ᠃", "ᠪᠠᠢᠨᠠ᠉", "ᠲᠢᠶᠮᠦ᠃"],
    "my": ["မင်္ဂလာပါ၊ ဟုတ်။", "နေကောင်းလား။", "ကောင်းပါတယ်။"],
    "sat": ["ᱡᱚᱦᱟᱨ᱾", "ᱪᱮᱫ᱿", "ᱵᱮᱥ᱾"],
    "si": ["ආයුබෝවන්෴", "කොහොමද?", "හොඳයි."],
    "ur": ["یہ کیا ہے؟", "یہ کتاب ہے۔", "شکریہ۔"],
    "zh": ["他来了，真的。", "2020年，iPhone出了！", "iPhone好吗？", "﹙是﹚3．5米｡"],
}


@pytest.fixture(params=[True, False], ids=["sentencex", "without it"])
def splitter(request, monkeypatch):
    if not request.param:
        monkeypatch.setitem(sys.modules, "sentencex", None)
    sentences_module._splitter.cache_clear()
    yield
    sentences_module._splitter.cache_clear()


@pytest.mark.filterwarnings("ignore:sentencex is not installed")
@pytest.mark.parametrize("language", SCRIPTS)
def test_sentences_end_in_all_scripts_with_a_blank_behind_them_and_without(language, splitter):
    expected = SCRIPTS[language]
    assert split_sentences(" ".join(expected), language) == [
        *(sentence + " " for sentence in expected[:-1]),
        expected[-1],
    ]
    # Behind what ASCII has, a blank is needed.
    tight = [text for text in expected if text[-1] not in ".!?;"]
    assert split_sentences("".join(tight), language) == tight


# Sentences with a number in the digits of their language.
NUMBERS = {
    "ar": "الساعة ٣.٥ الآن.",
    "bn": "সে ১.৫ কেজি খায়।",
    "fa": "ساعت ۳.۵ است.",
    "hi": "राजा १.५ बजे सेब खाता है।",
    "ja": "値は１．５と１.５です。",
    "mr": "तो १.५ वाजता येतो.",
    "my": "၁.၅ ရှိတယ်။",
    "ne": "ऊ १.५ बजे आउँछ।",
    "th": "ราคา ๑.๕ บาท",
}


@pytest.mark.filterwarnings("ignore:sentencex is not installed")
@pytest.mark.parametrize("language", NUMBERS)
def test_numbers_stay_whole_in_the_digits_of_all_scripts(language, splitter):
    for rules in (language, "en"):
        assert split_sentences(NUMBERS[language], rules) == [NUMBERS[language]]


@pytest.mark.filterwarnings("ignore:sentencex is not installed")
@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ['"Stop!", Tom said. ', "He left."]),
        ("ja", ["彼は「犬は毎日、水を見る！」と言った。", "はい。"]),
        ("ja", ["『本当？』と聞いた。", "『はい。』", "『行く！』"]),
        ("ja", ["｢行こう！！｣って言った｡", "｢はい｡｣", "すごい｡"]),
        ("ja", ["『「行く。」と言う。』と書いた。", "〈はい。〉", "はい。"]),
        ("ja", ["「本当。」、と言った。", "「はい。」", "とても嬉しい。"]),
        ("ja", ["「モーニング娘。」は日本の歌手。", "「はい。」", "はじめて見た。"]),
        ("ko", ['그는 "가자."라고 말했다. ', '"정말?"이라고 물었다. ', "‘가자.’ ", "그래."]),
        ("ko", ["「가자!」 하고 말했다. ", "“가자!” ", "하고많은 사람."]),
        ("zh", ["“走吧！”", "他说：“走吧！”", "然后走了。", "“走！”，他说。", "“走！”的声音。"]),
        ("zh", ["『走吧？』", "他說。"]),
    ],
)
def test_a_sentence_goes_on_behind_a_quote_where_its_language_says_so(language, expected, splitter):
    assert split_sentences("".join(expected), language) == expected


@pytest.mark.filterwarnings("ignore:sentencex is not installed")
@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("ar", ["مرحبا.\u061c ", "نعم؟\u200f ", "نعم. \u200f"]),
        ("en", ["\u2067Hello.\u2069 ", "Stop‼️ ", "(Bye.)\u200e"]),
        ("fa", ["می\u200cروم.\u200c ", "بله.\ufeff"]),
        ("he", ["\u202bשלום.\u200f ", "מה?\u202c ", "\u200fטוב.\u200f"]),
        ("hi", ["नमस्ते।\u200d ", "ठीक।"]),
        ("th", ["Hello.\u200b ", "สวัสดี!\u200b"]),
        ("zh", ["你好。\u200b", "你呢？\u200b"]),
    ],
)
def test_what_is_unseen_behind_an_end_is_of_the_sentence(language, expected, splitter):
    assert split_sentences("".join(expected), language) == expected
    assert count_several(expected, language) == 0
    for sentence in expected:
        assert split_sentences(sentence, language) == [sentence]


def test_lines_hold_several_sentences_where_more_than_one_has_letters():
    lines = ["Hello. 😀", "1. Milk", "Stop! * * *", "Well. ... Yes.", "Hello. 😀 Bye."]
    assert [count_several([line], "en") for line in lines] == [0, 0, 0, 1, 1]


def test_a_blank_parts_translations_behind_what_is_unseen():
    for text in ("One.\u200fTwo.", "One!\u200b\ufeffTwo."):
        segments = split_text(text, lambda x: split_sentences(x, "en"), list, 100, True)
        assert find_spaces(segments, " ") == ["", " ", ""]


def test_the_ends_are_those_of_unicode_and_a_few():
    characters = "".join(map(chr, range(128, 0x110000)))
    unicode = set(regex.findall(r"\p{Sentence_Break=STerm}", characters))
    ours = set(re.findall(f"[{ENDS}]", characters))
    assert unicode - ours == set("\u104a\u1b5e\ua9c8")  # which are commas
    assert ours - unicode == set("\u0df4\u0f0d\u0f0e\u0f0f\u0f10\u0f11\u0f12\u0f14")


@given(st.text(alphabet="aé\u0301कि्षกำไ한ᄒ\u1161\u11ab👩🏽\u200d💻🇩🇪\ufe0f7", min_size=2))
def test_no_cut_is_within_what_readers_take_for_a_character(text):
    ends = {match.end() for match in regex.finditer(r"\X", text)}
    cuts = {i for i in range(1, len(text)) if may_cut(text, i)}
    assert cuts <= ends
    assert may_cut("ab", 1) and may_cut("한한", 1) and may_cut("🇩🇪🇩🇪", 2) and may_cut("กา", 1)


def test_words_that_are_too_long_are_cut_between_subwords():
    model = load_subwords(PRETRAINED / "multi30k-en-de" / "spm.model")

    def pieces(part):
        return tuple(model.encode(part, out_type=str))

    text = "https://example.org/" + "snowboarding-motorcyclist-playgrounds/" * 4
    whole = pieces(text)
    first, *others = split(text, 20, pieces=pieces)
    assert pieces(first) == whole[: len(pieces(first))]
    assert len(pieces(first)) > 10 and len(others) < len(whole) / 10


def find_text(text, longest=60):
    """The texts of the segments, and whether there is text in each."""

    def pieces(part):
        return list("".join(part.split()))

    parts = split_text(text, lambda x: split_sentences(x, "en"), pieces, longest, True, str.lower)
    return [(part.text, part.holds_text) for part in parts]


@pytest.mark.parametrize("word", ["a" * 101, "😀a" * 60, "x,y;z." * 40, "Ж" * 5000, "e\u0301" * 99])
def test_what_is_too_long_for_a_word_stays_whole(word):
    assert find_text(f"Look: {word} there. Bye!\n{word}\n漢字{word}漢字") == [
        ("Look: ", True),
        (word, False),
        (" there. ", True),
        ("Bye!\n", True),
        (f"{word}\n", False),
        ("漢字", True),
        (word, False),
        ("漢字", True),
    ]


def test_a_long_word_is_text_where_it_fits_or_has_few_subwords():
    text = f"Look: {'a' * 101} there."
    assert find_text(text, 120) == [(text, True)]
    assert find_text("a" * 100) == [("a" * 60, True), ("a" * 40, True)]


@pytest.mark.parametrize("letter", "漢かカ한ก་ကក")
def test_words_without_blanks_between_them_are_cut_however_many_there_are(letter):
    text = letter * 1000
    parts = split_text(text, lambda line: [line], list, 60, True)
    assert "".join(part.text for part in parts) == text
    assert all(len(part.pieces) <= 60 and not part.code for part in parts) == (letter != "한")


def test_a_sentence_without_end_and_open_quotes_take_no_time():
    texts = "“a. " * 100_000, "“a " * 100_000, "a" * 300_000, "J. " * 100_000, "。" * 100_000
    for text in texts:
        assert "".join(split_sentences(text, "en")) == text


def test_blank_lines_take_no_time():
    text = "a" + "\u2028" * 200_000
    (segment,) = split_text(text, lambda line: [line], str.split, 100, False)
    assert segment.text == text


def test_blanks_without_width_take_no_time():
    text = "a " * 20 + "\u200b" * 100_000
    parts = split(text, 12, pieces=lambda part: part.replace("\u200b", " ").split())
    assert "".join(parts) == text and len(parts) == 2


@given(
    st.text(alphabet="Ab .,;!?\n\u3000\u2028\x85\"'“”。，『』と\u200f१\x01क्।ๆำ།་؟𑁇🇩", max_size=120),
    st.integers(min_value=1, max_value=12),
    st.booleans(),
    st.sampled_from(["en", "de", "fr", "zh", "ja", "kk", "el", "xx"]),
)
def test_nothing_is_lost_and_everything_fits(text, longest, sentences, language):
    def pieces(part):
        return list("".join(part.replace("\x01", " ").split()))

    segments = split(text, longest, sentences, pieces, language)
    assert "".join(segments) == (text if pieces(text) else "")
    assert all(0 < len(pieces(segment)) <= longest for segment in segments)
    blanks = "\x01\x1f \n\u3000\u2028\x85"
    assert not any({"\n", "\u2028"} & set(segment.strip(blanks)) for segment in segments)
