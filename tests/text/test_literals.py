"""Which words of a text are the same in all languages."""

import pytest
from text.test_pipeline import about, pipeline

from resmlp_mt.text.rules import NAMING
from resmlp_mt.text.rules.pictures import FIRST_MARK

LITERALS = [
    "https://example.org/a?b=c(d)#e", "ftp://a.b/c", "www.example.org", "mailto:a@b.c",
    "anna.b+c@mail.example.org", "@anna", "#berlin", "#debian-devel", "/etc/init.d", "./configure",
    "~/notes.txt", r"C:\temp\a.txt", "setup.py", "example.com", "src/main.c", "IMG_1234.JPG",
    "debian.org/doc", "--input=a", "--resume", "%s", "%(count)s", "%1$d", "%.2f", "{0}", "{name}",
    "{{name}}", "%s%d", "${HOME}", "$PATH", "main()", "my_name", "MAX_LENGTH", "getName",
    "2024-03-15", "A47B11X", "bbcddb662477", "DE89370400440532013000", "4711000",
    "123e4567-e89b-12d3-a456-426614174000", "%@", "%1$@", "%d%%", "%n", "%1", "%L2", ":name",
    ":user_name", ":param1", "Re_gular", "&copy;", "&#8211;", "&amp;nbsp;", "12/31/2024",
]  # fmt: skip
OTHERS = [
    "dog", "Don't", "and/or", "AC/DC", "e.g.", "z.B.", "d.h.", "U.S.A.", "hello.How", "ok.it",
    "home.at", "100%", "50", "$100", "1.0997501702", "12.5.2020", "3:45",
    "20th", "100km", "1990s", "mp3", "B2B", "COVID-19", "iPhone", "LibreOffice", "McDonald",
    "_very_", "well-known", "a@", "#1", "--", "-v", "\ue000", "(ok)", 
    ":how", ":p", ":Please", ":größe", "M&uuml;ller",
    "a:name", "::name", "AT&T", "1/2", "24/7", "%20and", "%nothing",
]  # fmt: skip


COMPUTED = [
    "{{ name | upper }}", "{{ $t('a.b') }}", "{{{ name }}}", "<%= user.name %>", "${ name }",
    "#{ a + b }", "%{ name }", "{n, number}", "{ day, date, short }", "`git commit -m`",
    "{n, plural, one {# file} other {# of {m, select, a {b} other {c}}}}", "{% if new %}",
]  # fmt: skip


def find(text):
    """The words of a text that get names."""
    return list(pipeline("en", "de").read(text, about("en", "de"), NAMING, 99).names.values())


@pytest.mark.parametrize("word", LITERALS + COMPUTED)
def test_literals_are_named_as_a_whole_without_the_marks_around_them(word):
    for sentence in ("See {}.", "See {}, please!", 'Is it "{}"?', "{}: so", "**{}**, so"):
        assert find(sentence.format(word)) == [word], sentence


@pytest.mark.parametrize("word", OTHERS)
def test_words_and_numbers_that_languages_write_differently_are_none(word):
    assert find(f"See {word}, or {word}.") == []


PARTS = "a a. - a_ a- aA 9 9. 9, 9- /a a@ %( {{{a ${a <%=a ( {n, {n,plural,one{ ` `a <a> [a](b &a;"


@pytest.mark.parametrize("part", [*PARTS.split(), "9 ", "{{ ", "` ", FIRST_MARK, "🐶", "m²"])
def test_long_text_takes_no_time(part):
    find(part * 10**5)  # where it grew with the square, it took minutes
