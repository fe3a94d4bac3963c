import json

import pytest

from resmlp_mt.errors import UserError
from resmlp_mt.lines.fields import choose_field


@pytest.mark.parametrize(
    ("source", "into", "line", "text", "changed"),
    [
        ("2", None, "a\tb\tc", "b", "a\tX\tc"),
        ("1", "3", "a\tb\tc", "a", "a\tb\tX"),
        ("1", "4", "a\tb\t", "a", "a\tb\t\tX"),
        ("t", None, '{"n": 1, "t": "b\\nc"}', "b\nc", '{"n": 1, "t": "X"}'),
        ("t", "de", '{"t": "ü", "n": null}', "ü", '{"t": "ü", "n": null, "de": "X"}'),
        ("t", "d\ud83d", '{"t": "u" }', "u", '{"t": "u", "d\\ud83d": "X"}'),
        ("t", None, '{"n":1e400,"t":"u","l":[0.10,{"t":2}]}', "u", None),
        ("t", None, f' {{"n": {"12" * 3000}, "t" : "u"}} ', "u", None),
        ("t", None, '{"t": 1, "u": "\\u00fc\\"t", "t": "u"}', "u", None),
        ("t", "de", '{"t": "", "s": "\\ud83d"}', "", '{"t": "", "s": "\\ud83d", "de": "X"}'),
    ],
)
def test_one_part_is_taken_and_changed(source, into, line, text, changed):
    taken, put = choose_field(source, into).take(line, "line 7")
    if changed is None:  # this and no more
        changed = "X".join(line.rsplit(text, 1))
    assert taken == text and put("X") == changed
    if source == "t":
        found = json.loads(put("\n\t\x01"), parse_int=float)  # of any number of digits
        assert found[into or source] == "\n\t\x01" and "\n" not in put("\n")


@pytest.mark.parametrize(
    ("source", "into", "line", "changed"),
    [
        ("2", "3", " ", " "),
        ("1", "2", "", ""),
        ("t", "de", "", ""),
        ("t", "de", "\t", "\t"),
        ("t", None, '{"t": null}', '{"t": null}'),
        ("t", "de", '{"t": null, "de": "x"}', '{"t": null, "de": null}'),
    ],
)
def test_blank_lines_and_nulls_stay(source, into, line, changed):
    taken, put = choose_field(source, into).take(line, "line 7")
    assert taken == "" and put("X") == changed


@pytest.mark.parametrize(
    ("source", "into", "line", "said"),
    [
        ("3", None, "a\tb", "there is no --field 3, but 2 columns"),
        ("1", "4", "a\tb", "there is no --into 4, but 2 columns"),
        ("t", None, "a\tb", "no JSON "),
        ("t", None, "[" * 99999, "no JSON "),
        ("t", None, '["t"]', "no JSON object"),
        ("t", None, "null", "no JSON object"),
        ("t", None, '{"a": "b", "\\n": 1}', r"there is no --field t, but a, \\n$"),
        ("t", None, "{}", "there is no --field t, but none"),
        ("t", None, '{"t": 3}', "--field t is no text"),
    ],
)
def test_what_has_no_such_part_is_named(source, into, line, said):
    with pytest.raises(UserError, match=f"^a.tsv, line 7: {said}"):
        choose_field(source, into).take(line, "a.tsv, line 7")
