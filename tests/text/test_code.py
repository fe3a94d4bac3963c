"""Which lines are code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.text.code import join_code

LONGEST = 1000


# Lines, and which of them are a block.
@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Do:\n```\nls\n```\nDone.", 1, 4),
        ("- Do:\n  ```\n  ls\n\n  # x\n  ```", 1, 6),
        ("> ```\n> ls\n> ```\nDone.", 0, 3),
        ("~~~ sh\n```\n~~~~", 0, 3),
        ("```\n``` x\n```>\n```\nDone.", 0, 4),
        # Without an end it is none.
        ("```\n" + "x\n" * (LONGEST - 2) + "```", 0, LONGEST),
        ("```\n" + "x\n" * (LONGEST - 1) + "```", 0, 0),
        ("```a``` is\nb\n```", 0, 0),
        ("One\n~~~\nA.\n\nTwo\n~~~\nB.", 0, 0),  # headings
    ],
)
def test_blocks_of_code_are_found(text, start, end):
    lines = text.splitlines(keepends=True)
    found = [part for part, is_code in join_code(lines) if is_code]
    assert found == (["".join(lines[start:end])] if end else [])


LINES = ["a", "", "```", "````", "~~~", "```sh", "~~~sh", "> ```", "  ~~~~", "a ```", "- ```"]


@given(st.lists(st.sampled_from(LINES)))
def test_blocks_of_code_hold_all_lines_and_end_as_they_begin(lines):
    parts = list(join_code([line + "\n" for line in lines]))
    assert "".join(text for text, _ in parts) == "".join(line + "\n" for line in lines)
    for text, is_code in parts:
        first, *inside, last = text.splitlines() if is_code else ["", ""]
        first = first.removesuffix("sh")
        assert first.count(">") == last.count(">")
        marks, end = first.strip(" >-"), last.strip(" >")
        assert end.startswith(marks) and len({*marks, *end}) <= 1
        within = [line for line in inside if line.count(">") == first.count(">")]
        assert not any(line.strip(" >") in (marks, f"{marks}`") for line in within)


@pytest.mark.parametrize(
    "line", ["```a", "~~~a" + "~" * 1000, "`" * 1000 + "a`", "> " * 500, "- " * 500, "> > ~~~a"]
)
def test_many_lines_like_those_of_code_take_no_time(line):
    fences = [f"{'> ' * depth}{marks}" for depth in range(8) for marks in ("~~~~a", "````", "```")]
    lines = [*fences, *[line] * 10_000]
    assert "".join(text for text, _ in join_code(lines)) == "".join(lines)
