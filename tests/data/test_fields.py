import json

import pytest

from resmlp_mt.data.fields import choose_field
from resmlp_mt.errors import UserError


@pytest.mark.parametrize(
    ("source", "into", "line", "text", "changed"),
    [
        ("2", None, "a\tb\tc", "b", "a\tX\tc"),
        ("1", "3", "a\tb\tc", "a", "a\tb\tX"),
        ("1", "4", "a\tb\t", "a", "a\tb\t\tX"),
        ("t", None, '{"n": 1, "t": "b\\nc"}', "b\nc", '{"n": 1, "t": "X"}'),
        ("t", "de", '{"t": "ü", "n": null}', "ü", '{"t": "ü", "n": null, "de": "X"}'),
        ("t", "de", '{"t": "", "s": "\\ud83d"}', "", '{"t": "", "s": "\\ud83d", "de": "X"}'),
    ],
)
def test_one_part_is_taken_and_changed(source, into, line, text, changed):
    taken, put = choose_field(source, into).take(line, 7)
    assert taken == text and put("X") == changed
    if source == "t":
        assert json.loads(put("\n\t\x01"))[into or source] == "\n\t\x01" and "\n" not in put("\n")


@pytest.mark.parametrize(
    ("source", "into", "line", "said"),
    [
        ("3", None, "a\tb", "line 7 has 2 columns: there is no --field 3"),
        ("1", "4", "a\tb", "line 7 has 2 columns: there is no --into 4"),
        ("t", None, "a\tb", "line 7 is no JSON"),
        ("t", None, "[" * 99999, "line 7 is no JSON"),
        ("t", None, '["t"]', "line 7 has no text as --field t"),
        ("t", None, '{"t": 3}', "line 7 has no text as --field t"),
    ],
)
def test_what_has_no_such_part_is_named(source, into, line, said):
    with pytest.raises(UserError, match=said):
        choose_field(source, into).take(line, 7)
