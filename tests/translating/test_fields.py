import json
import re

import pytest

from resmlp_mt.errors import UserError
from resmlp_mt.translating.fields import choose_field


@pytest.mark.parametrize(
    ("source", "into", "line", "text", "changed"),
    [
        ("2", None, "a\tb\tc", "b", "a\tX\tc"),
        ("1", "3", "a\tb\tc", "a", "a\tb\tX"),
        ("1", "4", "a\tb\t", "a", "a\tb\t\tX"),
        ("t", None, '{"n": 1, "t": "b\\nc"}', "b\nc", '{"n": 1, "t": "X"}'),
        ("t", "de", '{"t": "ü", "n": null}', "ü", '{"t": "ü", "n": null, "de": "X"}'),
        ("t", "d\ud83d", '{"t": "u"}', "u", '{"t": "u", "d\\ud83d": "X"}'),
        ("t", None, '{"l": [0.1, {"t": 2}], "t": "u"}', "u", '{"l": [0.1, {"t": 2}], "t": "X"}'),
        ("m.t", None, '{"m": {"t": "a"}, "m.t": "u"}', "u", '{"m": {"t": "a"}, "m.t": "X"}'),
        ("m.t", "m.de", '{"m": {"t": "u"}, "n": 1}', "u", '{"m": {"t": "u", "de": "X"}, "n": 1}'),
    ],
)
def test_one_part_is_taken_and_changed(source, into, line, text, changed):
    taken, put = choose_field(source, into)(line, "line 7")
    assert taken == text and put("X") == changed
    if source == "t":
        found = json.loads(put("\n\t\x01"))
        assert found[into or source] == "\n\t\x01" and "\n" not in put("\n")


@pytest.mark.parametrize(
    ("places", "line", "changed"),
    [
        (["2", "3", "4"], "a\tb", "a\tb\tX\t-0.1235"),
        (["t", "de", "s"], '{"t": "u"}', '{"t": "u", "de": "X", "s": -0.1235}'),
        (["m.t", None, "m.s"], '{"m": {"s": 1, "t": "u"}}', '{"m": {"s": -0.1235, "t": "X"}}'),
        (["t", "de", "s"], '{"t": null, "de": "x"}', '{"t": null, "de": null, "s": null}'),
        (["1", "2", None], "", ""),
    ],
)
def test_scores_stand_beside_translations_and_blank_lines_and_nulls_stay(places, line, changed):
    taken, put = choose_field(*places)(line, "line 7")
    assert put("X", -0.12345) == changed
    assert taken == "" or "u" in line or taken == "b"


@pytest.mark.parametrize(
    ("places", "flags"),
    [
        (["1", "2", "02"], "--score-into 02"),
        (["1", "2", "s"], "--field 1 and --score-into s"),
        (["t", "3", None], "--field t and --into 3"),
    ],
)
def test_places_that_do_not_go_together_are_refused(places, flags):
    with pytest.raises(UserError, match=flags):
        choose_field(*places)


@pytest.mark.parametrize(
    ("source", "into", "line", "said"),
    [
        ("3", None, "a\tb", "--field 3"),
        ("1", "4", "a\tb", "--into 4"),
        ("t", None, "a\tt", "no JSON"),
        ("t", None, '{"a": "b", "\\n": 1}', "--field t, but a, \\n"),
        ("m.t", None, '{"m": {"a": "b"}, "t": ""}', "--field m.t, but m.a"),
    ],
)
def test_what_has_no_such_part_is_named(source, into, line, said):
    with pytest.raises(UserError, match=f"^a.tsv, line 7: .*{re.escape(said)}"):
        choose_field(source, into)(line, "a.tsv, line 7")
