"""Marks that are cut off a line: where, and that nothing is lost of it."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.inference.translator import Translator
from resmlp_mt.text.marks import cut_marks, holds_text
from resmlp_mt.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- I love you ❤️", ["- ", "I love you ", "❤️"]),
        ("Great job!👏👏", ["Great job!", "👏👏"]),
        ("🤷‍♂️ I don't know", ["🤷‍♂️ ", "I don't know"]),
        ("1️⃣ First step", ["1️⃣ ", "First step"]),
        ("be a man 😂 😂 i gave up", ["be a man ", "😂 😂 ", "i gave up"]),
        ("I ♥ you", ["I ♥ you"]),
        ("I ♥ you ♥", ["I ♥ you ", "♥"]),
        ("Name:\tJohn\t\tAge: 25\t", ["Name:\t", "John\t\t", "Age: 25\t"]),
        ("> > ## How", ["> > ## ", "How"]),
        ("- 5 degrees", ["- 5 degrees"]),
        ("-5 degrees * 3", ["-5 degrees * 3"]),
        ("Lidl™ and 3 # 4", ["Lidl™ and 3 # 4"]),
        ("😂😂", ["😂😂"]),
        ("**Stop.**", ["**", "Stop.", "**"]),
        ("- **Note:** go", ["- ", "**", "Note:", "** ", "go"]),
        ("_Name_: Anna", ["_", "Name", "_: ", "Anna"]),
        ("# ***Why?*** So ***that.***", ["# ", "***", "Why?", "*** ", "So ***that.***"]),
        ("**I** like it", ["**I** like it"]),
        ("- [ ] Read it", ["- [ ] ", "Read it"]),
        ("* [x] Done", ["* [x] ", "Done"]),
        ("[x] Done", ["[x] Done"]),
        ("__init__.py: run **a.**", ["__init__.py: run **a.**"]),
        ("| Name | Age|", ["| ", "Name ", "| ", "Age", "|"]),
        ("a | b", ["a | b"]),
        (
            "{% if a %}Yes{% else %} No{% end %}",
            ["{% if a %}", "Yes", "{% else %} ", "No", "{% end %}"],
        ),
        ("<% if a %> Yes, <%= b %>", ["<% if a %> ", "Yes, <%= b %>"]),
        ("100% {%} <%>", ["100% {%} <%>"]),
        ("# ", ["# "]),
    ],
)
def test_marks_are_cut_off_at_the_edges_and_between_blanks(line, expected):
    assert cut_marks([line]) == expected


def test_pictures_within_sentences_are_cut_off_or_left_in_each_of_them():
    line = ["It is **a 🙂 b.** ", "I 🙂 am. ", "So 🙂 am I."]
    cut = ["It is **a ", "🙂 ", "b.** ", "I ", "🙂 ", "am. ", "So ", "🙂 ", "am I."]
    assert cut_marks(line) == cut
    assert cut_marks(line, within=False) == line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["**Stop! ", "Go.** ", "And"], ["**", "Stop! ", "Go.", "** ", "And"]),
        (["- [x] _A. ", "B. ", "C._"], ["- [x] ", "_", "A. ", "B. ", "C.", "_"]),
        (["<p>A.", "</p><p>B. ", "C.", "</p>"], ["<p>", "A.", "</p>", "<p>", "B. ", "C.", "</p>"]),
        # Not around all of them: they stay one, so that no mark is alone.
        (["He said **a! ", "B.** ", "C"], ["He said **a! B.** ", "C"]),
        (["_A. ", "B. ", "C_ d. ", "E"], ["_A. B. C_ d. ", "E"]),
    ],
)
def test_emphasis_over_several_sentences_is_cut_off_where_they_begin_and_end(line, expected):
    assert cut_marks(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True), ("12:30 😀 ---", False), ("- [x] ", False), ("[x] a", True), ("</p>", False),
        ("```bash\n", False), ("~~~ c++", False), ("~~~ a ~~~", True), ("```two words", True),
        ("`code`", True), ("1 < a", True),
    ],
)  # fmt: skip
def test_marks_alone_hold_no_text(text, expected):
    assert holds_text(text) is expected


def test_a_bullet_begins_a_line_and_no_sentence():
    assert cut_marks(["No. ", "- Yes. ", "😊 Bye."]) == ["No. ", "- Yes. ", "😊 ", "Bye."]


@given(
    st.lists(st.text(alphabet="aé\u0301 \t->#*_|:•1️⃣👩🏽\u200d💻🇩🇪❤😂→.", min_size=1), max_size=3)
)
def test_nothing_is_lost_and_no_picture_is_cut(line):
    parts = cut_marks(line)
    assert "".join(parts) == "".join(line) and all(parts)
    for sentence in line:
        ends = {0, *(match.end() for match in regex.finditer(r"\X", sentence))}
        cuts = [0]
        while cuts[-1] < len(sentence):
            cuts.append(cuts[-1] + len(parts.pop(0)))
        assert {*cuts} <= ends


@pytest.mark.parametrize("mark", ["*A b. It is so.* ", "<b>A. B.</b> ", "<b1>A. ", "**A. "])
def test_many_sentences_with_marks_take_no_time(mark):
    line = [part for number in range(3000) for part in mark.replace("1", str(number)).split(" ")]
    assert "".join(cut_marks(line)) == "".join(line)


@pytest.mark.parametrize(
    "mark",
    [
        "😂",
        "😂 ",
        "\t",
        "a\t",
        "{% a",
        "> ",
        "- ",
        "❤️ x ",
        "*",
        "**a",
        "| ",
        "a|",
        r"a\n",
        r"\n ",
        "<br>",
        " ",
    ],
)
def test_very_many_marks_take_no_time(mark):
    assert "".join(cut_marks([mark * 100_000])) == mark * 100_000


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (r"First line\nSecond line", ["First line", r"\n", "Second line"]),
        (r"Sure?\n\nIt ends.\n", ["Sure?", r"\n\n", "It ends.", r"\n"]),
        (r"Open (x86)\nodejs, $x^{2}\times y$", [r"Open (x86)\nodejs, $x^{2}\times y$"]),
        ('Say "yes|yes to all" here', ['Say "yes|yes to all" here']),
        ("First<br>second<br /> third", ["First", "<br>", "second", "<br /> ", "third"]),
        (
            "one apple|many apples|{n} apples",
            ["one apple", "|", "many apples", "|", "{n} apples"],
        ),
        ("ein Apfel | viele Äpfel", ["ein Apfel", " | ", "viele Äpfel"]),
    ],
)
def test_breaks_of_lines_and_forms_of_plurals_part_texts(text, parts):
    assert cut_marks([text]) == parts
    kept = [part for part in parts if not holds_text(part)]
    assert kept == [part for part in parts if part.strip()[0] in "\\<|"]


@pytest.mark.parametrize(
    "text",
    [
        r"Put \n at the end, or \r\n.",
        r'Write "\n" for a break.',
        r"C:\temp\new\1 is a folder.",
        r"The file a\name is new.",
        r"Two backslashes: a\\n b",
        r"`print(a\nB)` prints.",
        "The tag <br> breaks a line.",
        "Name | Date | Size",
        "Look (a dog|the dogs) up.",
        "This dog || that dog",
    ],
)
def test_what_only_speaks_of_breaks_and_bars_stays_whole(text):
    assert cut_marks([text]) == [text]


def test_times_of_subtitles_hold_no_text():
    assert not holds_text("00:01.000 --> 00:04.000 align:start position:0%")
    assert not holds_text("01:00:01,000 --> 01:00:04,000 X1:40 Y1:20")
    assert holds_text("From 00:01.000 --> to the end")


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("en-de", threads=1)


SENTENCES = ["I am very tired today.", "Where did you learn that?"]


@pytest.mark.parametrize(
    "form",
    ["- {}", "# {}", "> {}", "❤️ {}", "{} 👍🏽", "😀 {} 😂😂", "{}\t{}", "{} 😂 {}", "•\t{}🇩🇪"]
    + [
        "**{}**",
        "*{}* {}",
        "1. _{}_",
        "- **{}** {}",
        "| {} | {} |",
        "- [x] {}",
        "**{} {}**",
        "<p>{}</p>",
    ],
)
def test_the_text_beside_marks_is_translated_as_if_it_stood_alone(form, translator):
    alone = translator.translate(SENTENCES)
    assert all(sentence[-1] in ".?!" for sentence in alone)
    given = [form.format(sentence, sentence) for sentence in SENTENCES]
    assert translator.translate(given) == [form.format(text, text) for text in alone]


def test_a_line_that_is_left_whole_keeps_its_marks_within(translator):
    (line,) = translator.split("I love you ❤️", split_sentences=False)
    assert line.text == "I love you ❤️"
    begun = translator.translate(["❤️ I love you."], prefix=["❤️ Ich"])
    assert begun[0].startswith("❤️ Ich")


def test_alignments_count_the_words_of_marks(translator):
    line = "- I am tired 😂 today."
    (best, *_), *_ = translator.translate_nbest([line], attention=True)
    said, words = best.text.split(), line.split()
    for attention in best.attention:
        assert set(attention.source_words) <= {*range(len(words))}
        assert set(attention.target_words) <= {*range(len(said))}
    first = best.attention[0]
    assert (first.source_words, first.target_words) == ([0], [0]) and said[0] == "-"


def test_sentences_and_marks_are_cut_in_one_line():
    text = "Guten Morgen! ☀️ Wie geht es dir? 😊"
    parts = cut_marks(split_sentences(text, "de"))
    assert parts == ["Guten Morgen! ", "☀️ ", "Wie geht es dir? ", "😊"]
