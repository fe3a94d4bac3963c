"""What errors say, wherever they were raised."""

import pickle

from resmlp_mt.errors import LineError


def test_an_error_about_lines_names_them_where_they_stand_also_behind_a_process():
    error = pickle.loads(pickle.dumps(LineError([3, 7], "too long")))
    assert str(error) == "line 3 or line 7: too long"
    assert str(error.at("a.txt, line {}".format)) == "a.txt, line 3 or a.txt, line 7: too long"
    many = str(LineError(range(1, 9), "too long"))
    assert many == "line 1 or line 2 or line 3 or line 4 or line 5 or another: too long"
