from resmlp_mt.translating.places import Places


def test_lines_are_found_in_their_files_past_empty_ones():
    places = Places()
    assert places.find(3) == "line 3"
    for name, lines in {"a": "xy", "b": "", "c": "xyz", "d": ""}.items():
        assert "".join(places.follow(lines, name)) == lines
    found = [places.find(number) for number in range(1, 6)]
    assert found == ["a, line 1", "a, line 2", "c, line 1", "c, line 2", "c, line 3"]
