"""The messages of errors, wherever they were raised."""

import pickle

from resmlp_mt.errors import LineError


def test_an_error_about_lines_names_them_where_they_stand_also_behind_a_process():
    error = LineError([3, 7], "too long")
    assert str(error) == "line 3 or line 7: too long"
    placed = error.at("a.txt, line {}".format)
    assert str(placed) == "a.txt, line 3 or a.txt, line 7: too long"
    for one in (error, placed):
        assert str(pickle.loads(pickle.dumps(one))) == str(one)
    assert str(error.at("a.txt".format)) == "a.txt: too long"
    many = str(LineError(list(range(1, 9)), "too long"))
    assert many == "line 1 or line 2 or line 3 or line 4 or line 5 or another: too long"
