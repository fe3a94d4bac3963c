import json

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
        ("t", "d\ud83d", '{"t": "u" }', "u", '{"t": "u", "d\\ud83d": "X"}'),
        ("t", None, '{"n":1e400,"t":"u","l":[0.10,{"t":2}]}', "u", None),
        ("t", None, f' {{"n": {"12" * 3000}, "t" : "u"}} ', "u", None),
        ("t", None, '{"t": 1, "u": "\\u00fc\\"t", "t": "u"}', "u", None),
        ("t", "de", '{"t": "", "s": "\\ud83d"}', "", '{"t": "", "s": "\\ud83d", "de": "X"}'),
        ("m.t", None, '{"t": "a", "m": {"n": 0.10, "t": "u"}}', "u", None),
        ("m.n.t", None, '{"m":{"n":{"t":"u"},"t":"a"},"n":{"t":"b"}}', "u", None),
        ("m.t", None, '{"m": {"t": "a"}, "m.t": "u"}', "u", None),
        ("m.n.t", None, '{"m": {"n": "a", "n.t": "u"}}', "u", None),
        ("m.t", "m.de", '{"m": {"t": "u" }, "n": 1}', "u", '{"m": {"t": "u", "de": "X"}, "n": 1}'),
        ("m.t", "de", '{"m": {"t": "u"} }', "u", '{"m": {"t": "u"}, "de": "X"}'),
        ("m.t", "n.de", '{"m": {"t": "u"}, "n": { }}', "u", '{"m": {"t": "u"}, "n": {"de": "X"}}'),
        ("x.en", "x.de", '{"x.en": "u", "x": 1}', "u", '{"x.en": "u", "x": 1, "x.de": "X"}'),
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
    ("places", "line", "changed"),
    [
        (["2", "3", "4"], "a\tb", "a\tb\tX\t-0.1235"),
        (["2", None, "1"], "a\tb\tc", "-0.1235\tX\tc"),
        (["t", "de", "s"], '{"t": "u"}', '{"t": "u", "de": "X", "s": -0.1235}'),
        (["m.t", None, "m.s"], '{"m": {"s": 1, "t": "u"}}', '{"m": {"s": -0.1235, "t": "X"}}'),
        (["t", None, "s"], '{"t": null}', '{"t": null, "s": null}'),
        (["t", None, "s"], " ", " "),
    ],
)
def test_the_score_stands_beside_the_translation(places, line, changed):
    _, put = choose_field(*places).take(line, "line 7")
    assert put("X", -0.12345) == changed


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (["1", "2", "02"], "--score-into 02: the text is there"),
        (["t", None, "t"], "--score-into t: the text is there"),
        (["1", "2", "s"], "--field 1 and --score-into s: give two columns, or two names"),
        (["t", "de", "3"], "--field t and --score-into 3: give two columns, or two names"),
        (["1", "2", "0"], "count columns from 1"),
    ],
)
def test_places_that_do_not_go_together_are_refused(places, said):
    with pytest.raises(UserError, match=said):
        choose_field(*places)


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
        ("t", None, "a\tt", "no JSON .*; a column of a table is given by its number"),
        ("t", None, '{"t": ', r"no JSON .*\)$"),
        ("t", None, "[" * 99999, "no JSON "),
        ("t", None, '["t"]', "no JSON object"),
        ("t", None, "null", "no JSON object"),
        ("t", None, '{"a": "b", "\\n": 1}', r"there is no --field t, but a, \\n$"),
        ("t", None, "{}", "there is no --field t, but none"),
        ("t", None, '{"t": 3}', "--field t is no text"),
        ("t", None, '{"t": ["a"]}', "--field t is no text"),
        ("m.t", None, '{"m": {"a": "b"}, "t": ""}', r"there is no --field m.t, but m\.a$"),
        ("m.t", None, '{"m": "t", "t": ""}', "there is no --field m.t, but m, t$"),
    ],
)
def test_what_has_no_such_part_is_named(source, into, line, said):
    with pytest.raises(UserError, match=f"^a.tsv, line 7: {said}"):
        choose_field(source, into).take(line, "a.tsv, line 7")
