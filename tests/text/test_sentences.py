"""Where sentences end, in all scripts, and where characters may be cut."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.text.punctuation import CLOSERS, COMMAS, ENDS, may_cut
from resmlp_mt.text.sentences import count_several, split_sentences

# Sentences of which the ends are known: how they begin, what may be within, and their last words.
BEGIN = {"en": "Dogs We In The", "de": "Hunde Er Dann Zwei Die"}
WITHIN = {
    "en": [
        "Dr. Wu", "Mr. Lee", "J. Smith", "e.g. this", "3.5", "No. 5", "vol. 3", "5 p.m. on",
        "a.b.org", "System.IO.File.ReadAll", "ASP.NET", "HTTPS://A.COM", "(see p. 3)",
        '"Stop!", said', "Mon.–Fri. and", "Feb. 2020", "5 p.m. EST",
    ],
    "de": [
        "Dr. Wu", "z. B. Hunde", "inkl. Versand", "exkl. Porto", "geb. Meier", "div. Dinge",
        "mind. Tage", "Abb. Zwei", "Kap. Drei", "tgl. Wasser", "am 3. Mai", "3. Mai", "Nr. 5",
        "vgl. Art. 5", "im 19. Jahrhundert", "seinem 40. Geburtstag", "bzw. Katzen", "Fa. Meier",
        "ca. 3", "usw. und", "Mo.–Fr. ab",
    ],
}  # fmt: skip
LAST = {
    "en": "mice ill art me no may etc OK ID 24 fa Bart",
    "de": "Mäuse mich mag usw etc Art Bart ID ok man ill",
}
# Words, stops and what stands around them, in any order.
PIECES = [
    *"Ab .,;:!?\n\u3000\u2028\x85\"'“”。，『』と\u200f१\x01क्।ๆำ།་؟𑁇🇩()[1*",
    "A dog", " etc.", " Dr.", "Art.", " No.", "usw.", " inkl.", "am 3. ", "Mai", " Dann", "z. B.",
    "a.b", "README.MD", "x@y.de", "3.5", "J. ", "??", " 24", "“Go.”", "『行く。』",
]  # fmt: skip


@st.composite
def known_sentences(draw, language):
    """Some sentences, each with its stop and a blank."""
    words = st.lists(st.sampled_from(WITHIN[language]), max_size=3)
    begin = st.sampled_from(BEGIN[language].split())
    last = st.sampled_from(LAST[language].split())
    stop = st.sampled_from([". ", "! ", "?\n", "...\n"])
    one = st.builds(
        lambda begin, words, last, stop: " ".join([begin, "see", *words, last]) + stop,
        begin, words, last, stop,
    )  # fmt: skip
    return draw(st.lists(one, min_size=1, max_size=5))


@pytest.mark.parametrize("language", BEGIN)
@given(st.data())
def test_a_text_is_cut_in_the_sentences_that_it_was_made_of(language, data):
    sentences = data.draw(known_sentences(language))
    assert split_sentences("".join(sentences), language) == sentences
    assert [split_sentences(sentence, language) for sentence in sentences] == [
        [sentence] for sentence in sentences
    ]


@given(
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.sampled_from(["en", "de", "fr", "zh", "ja", "ko", "kk", "el", "xx"]),
)
def test_joined_sentences_are_the_text(text, language):
    sentences = split_sentences(text, language)
    assert "".join(sentences) == text and all(sentences)
    several = sum(any(map(str.isalpha, sentence)) for sentence in sentences) > 1
    assert count_several([text], language) == several


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["A young girl is feeling ill. ", "Dogs play in the snow."]),
        ("de", ["Nr. 1. ", "Das weiß ich."]),
        ("de", ["Er kam am 3. ", "Dann ging er."]),
        ("de", ["Das ist Vitamin C. ", "Es hilft."]),
        ("de", ["Das Geld geht aus. ", "3 Jungen und Frau Mai lachen. ", "Mai lacht."]),
        ("en", ["Open README.TXT. ", "Use ASP.NET."]),
        ("en", ["I am tired.", "You are nice."]),
        ("en", ["See vol. 3, eq. (3)."]),
        ("en", ["how are you?? ", "im fine!!! ", "u?"]),
        ("en_US", ['He said "stop it."  ', "Then\the left!"]),
        # It goes on behind a quote where its language says so.
        ("en", ['"Stop!", Tom said. ', "He left."]),
        ("ja", ["彼は「犬は毎日、水を見る！」と言った。", "はい。"]),
        ("ja", ["『本当？』と聞いた。", "『はい。』", "『行く！』"]),
        ("ja", ["「モーニング娘。」は日本の歌手。", "「はい。」", "はじめて見た。"]),
        ("ko", ['그는 "가자."라고 말했다. ', '"정말?"이라고 물었다. ', "‘가자.’ ", "그래."]),
        ("zh", ["“走吧！”", "他说：“走吧！”", "然后走了。", "“走！”，他说。", "“走！”的声音。"]),
        # What is unseen behind an end is of the sentence.
        ("ar", ["مرحبا.\u061c ", "نعم؟\u200f ", "نعم. \u200f"]),
        ("en", ["\u2067Hello.\u2069 ", "Stop‼️ ", "(Bye.)\u200e"]),
        ("he", ["\u202bשלום.\u200f ", "מה?\u202c ", "\u200fטוב.\u200f"]),
        ("th", ["Hello.\u200b ", "สวัสดี!\u200b"]),
    ],
)
def test_sentences_end_by_the_rules_of_the_language(language, expected):
    assert split_sentences("".join(expected), language) == expected
    for sentence in expected:
        assert split_sentences(sentence, language) == [sentence]


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


@pytest.mark.parametrize("language", SCRIPTS)
def test_sentences_end_in_all_scripts_with_a_blank_behind_them_and_without(language):
    expected = SCRIPTS[language]
    assert split_sentences(" ".join(expected), language) == [
        *(sentence + " " for sentence in expected[:-1]),
        expected[-1],
    ]
    # Behind what ASCII has, a blank is needed.
    tight = [text for text in expected if text[-1] not in ".!?;"]
    assert split_sentences("".join(tight), language) == tight


def test_numbers_stay_whole_in_the_digits_of_all_scripts():
    for zero in map(ord, "٠০۰०０0၀๐"):
        for text in (f"a {chr(zero + 3)}.{chr(zero + 5)} b.", f"a {chr(zero + 1)}．{chr(zero)}。"):
            for language in ("ar", "hi", "ja", "en"):
                assert split_sentences(text, language) == [text]


def test_lines_hold_several_sentences_where_more_than_one_has_letters():
    lines = ["Hello. 😀", "1. Milk", "Stop! * * *", "Well. ... Yes.", "Hello. 😀 Bye."]
    assert [count_several([line], "en") for line in lines] == [0, 0, 0, 1, 1]


def test_ends_commas_and_closers_of_all_scripts_part():
    characters = "".join(map(chr, range(0x110000)))
    sets = [set(regex.findall(f"(?V1)[{marks}]", characters)) for marks in (ENDS, COMMAS, CLOSERS)]
    ends, commas, closers = sets
    assert not (ends & commas or ends & closers or commas & closers)
    assert set("。！？؟।۔։።။៕᠃෴།｡") <= ends and set("，、،፣၊；：՝") <= commas
    assert set("\"'”’»›)]」』）】》〉］｝") <= closers
    assert not (ends | commas) & set(map(chr, range(128)))


@given(st.text(alphabet="aé\u0301कि्षกำไ한ᄒ\u1161\u11ab👩🏽\u200d💻🇩🇪\ufe0f7\r\n", min_size=2))
def test_cuts_are_between_what_readers_take_for_characters(text):
    ends = {match.end() for match in regex.finditer(r"\X", text)}
    assert {i for i in range(1, len(text)) if may_cut(text, i)} == ends - {len(text)}
