"""Which lines are code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resmlp_mt.text.code import join_code

LONGEST = 1000


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
    parts = join_code(text.splitlines(keepends=True))
    assert [block.removesuffix("\n") for block, is_code in parts if is_code] == [
        block.removesuffix("\n") for block in code
    ]


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
