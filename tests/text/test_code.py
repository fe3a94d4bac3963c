"""Code: which lines are, what is put back between backquotes, and what is left alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.inference.translator import Translator
from resmlp_mt.text.code import LONGEST, part_code, restore_code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Do:\n```\nls\n```\nDone.", ["```\nls\n```"]),
        (
            "```sh\nls\n\n  # x\n```\n~~~sh\nls\n~~~",
            ["```sh\nls\n\n  # x\n```", "~~~sh\nls\n~~~"],
        ),
        ("- Do:\n  ```\n  ls\n  ```", ["  ```\n  ls\n  ```"]),
        ("- ```sh\n  ls\n  ```\nx\n1. ```\n   ls\n   ```", [
            "- ```sh\n  ls\n  ```", "1. ```\n   ls\n   ```",
        ]),
        ("> ```\n> ls\n> ```\nDone.", ["> ```\n> ls\n> ```"]),
        ("> ```\n> ls\n\nDone.\n\n```\nls\n```", ["```\nls\n```"]),
        ("\u00a0```\r\n\u00a0ls\r\n\u00a0```\r\n", ["\u00a0```\r\n\u00a0ls\r\n\u00a0```\r\n"]),
        # The end has as many marks at least, of the same kind, and nothing else.
        ("````\n```\nls\n```\n````", ["````\n```\nls\n```\n````"]),
        ("~~~ sh\n```\n~~~~", ["~~~ sh\n```\n~~~~"]),
        ("```\n``` x\n```>\n```\nDone.", ["```\n``` x\n```>\n```"]),
        # Without an end it is none.
        ("```\nDo it.", []),
        ("~~~a\n```\nls\n```", ["```\nls\n```"]),
        ("```\n" + "x\n" * (LONGEST - 2) + "```", ["```\n" + "x\n" * (LONGEST - 2) + "```"]),
        ("```\n" + "x\n" * (LONGEST - 1) + "```", []),
        ("```a``` is\nb\n```", []),
        ("``\nls\n``", []),
        ("One\n~~~\nA.\n\nTwo\n~~~\nB.", []),  # headings
    ],
)  # fmt: skip
def test_blocks_of_code_are_found(text, code):
    parts = list(part_code(text.splitlines(keepends=True)))
    assert ["".join(lines).removesuffix("\n") for lines, is_code in parts if is_code] == [
        block.removesuffix("\n") for block in code
    ]


LINES = ["a", "", "```", "````", "~~~", "```sh", "~~~sh", "> ```", "  ~~~~", "a ```", "- ```"]


@given(st.lists(st.sampled_from(LINES)))
def test_blocks_of_code_hold_all_lines_and_end_as_they_begin(lines):
    parts = list(part_code(lines))
    assert sum((part for part, _ in parts), []) == lines
    for part, is_code in parts:
        assert part
        if is_code:
            first, last = part[0].removesuffix("sh"), part[-1]
            assert first.count(">") == last.count(">")
            marks, end = first.strip(" >-"), last.strip(" >")
            assert end.startswith(marks) and len({*marks, *end}) == 1
            within = [line for line in part[1:-1] if line.count(">") == first.count(">")]
            assert not any(line.strip(" >") in (marks, f"{marks}`") for line in within)


@pytest.mark.parametrize(
    "line", ["```a", "~~~a" + "~" * 1000, "`" * 1000 + "a`", "> " * 500, "- " * 500, "> > ~~~a"]
)
def test_many_lines_like_those_of_code_take_no_time(line):
    fences = [f"{'> ' * depth}{marks}" for depth in range(8) for marks in ("~~~~a", "````", "```")]
    lines = [*fences, *[line] * 10_000]
    assert sum((part for part, _ in part_code(lines)), []) == lines


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("See `a.md`.", "Siehe »a.md«.", "Siehe `a.md`."),
        ("See `a.md`.", "Siehe a.md.", "Siehe `a.md`."),
        ("See `a.md`.", "Siehe `a.md`.", "Siehe `a.md`."),
        ("See ``a b``.", 'Siehe "a b".', "Siehe ``a b``."),
        ("`f` or `g`", "„g“ oder „f“", "`g` oder `f`"),
        ('Run `m "x"` and `p`', '»m "x"« und »p«', '`m "x"` und `p`'),
        # Translated code is taken for the next that is missing.
        ("`f()` gives `None` or `Empty`", "„f()“: „Nichts“, „Leer“", "`f()`: `None`, `Empty`"),
        # But not where there are others, or of another number of words.
        ("`None` is", "Nichts ist", "Nichts ist"),
        ('`None` is "it"', "„Nichts“ ist „es“", "„Nichts“ ist „es“"),
        ("`Not found` is", "„Weg“ ist", "„Weg“ ist"),
        ("`a`", "ab a-b", "ab `a`-b"),
        ("Type `in`", "Im Feld in Rot »in« tippen", "Im Feld in Rot `in` tippen"),
        ("`a` and `a`", "»a« und a und a", "`a` und `a` und a"),
        ("a ` b", "a » b", "a » b"),
        ("`` ` ` ", "x", "x"),
    ],
)
def test_code_takes_the_place_of_its_translation(source, translation, expected):
    assert restore_code(translation, source) == expected


TEXT = st.text(alphabet="ab `\"»«'.\n")


@given(TEXT, TEXT)
def test_no_more_changes_than_what_is_put_in_and_quotes(source, translation):
    restored = restore_code(translation, source)
    assert len(restored.split()) == len(translation.split())
    if "`" not in source:
        assert restored == translation


@given(st.lists(st.sampled_from(["`a`", "``b c``", "x", "y."])))
def test_all_code_that_a_translation_has_as_it_is_comes_back(words):
    source = " ".join(words)
    assert restore_code(source.replace("``", '"').replace("`", "'"), source) == source


@pytest.mark.parametrize("mark", ["`a` ", "`", "``a", "`a`b", "»a« "])
def test_much_code_takes_no_time(mark):
    text = mark * 200
    assert len(restore_code(text, text).split()) == len(text.split())


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("en-de", "The function `foo_bar()` returns `None` if there is no value."),
        ("de-en", "Löschen Sie den Ordner `/tmp/cache` mit `rm -r`."),
    ],
)
def test_what_ships_keeps_it(model, text):
    (best,) = Translator.from_pretrained(model, threads=1).translate([text])
    assert re.findall("`[^`]+`", best) == re.findall("`[^`]+`", text)
