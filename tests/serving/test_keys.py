"""API keys and their limits, at times that are given."""

from threading import Lock

import pytest
from starlette.exceptions import HTTPException

from resmlp_mt.errors import UserError
from resmlp_mt.serving.keys import Key, Keys, read_keys


def test_a_file_of_keys_is_read(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# ours\nalpha\n\nbeta 5 # five\n  # more\np4#Xw9 7 #8\n")
    assert read_keys(path, 60) == [Key("alpha", 60), Key("beta", 5), Key("p4#Xw9", 7)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# none\n", "holds no key"),
        ("a\nb many\n", "line 2: not a key"),
        ("a 1 2\n", "line 1: not a key"),
        ("a\na 2\n", "line 2: this key came before"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, text, said):
    (tmp_path / "keys").write_text(text)
    with pytest.raises(UserError, match=said):
        read_keys(tmp_path / "keys", 0)


def test_each_key_has_its_requests_a_minute():
    now = 1000.0
    keys = Keys([Key("a", 3), Key("b", 0), Key("ö", 1)], clock=lambda: now)

    def ask(key):
        try:
            keys.admit(key)
        except HTTPException as refused:
            return refused.status_code, (refused.headers or {}).get("Retry-After")

    assert ask("") == ask("c") == (403, None)
    assert [ask("a") for _ in range(4)] == [None, None, None, (429, "20")]
    assert [ask("b") for _ in range(9)] == [None] * 9 and ask("ö") is None
    now += 19.5
    assert ask("a") == (429, "1") and ask("a") == (429, "1")
    now += 1
    assert [ask("a") for _ in range(2)] == [None, (429, "20")]
    now += 3600  # no more are saved than for a minute
    assert [ask("a") for _ in range(4)] == [None] * 3 + [(429, "20")]
    Keys().admit("")


def test_counts_that_stay_locked_keep_nobody_out():
    lock = Lock()
    keys = Keys([Key("a", 1)], lock=lock)
    lock.acquire()  # as by a worker that was killed at that moment
    for _ in range(3):
        keys.admit("a")
    lock.release()
    keys.admit("a")
    with pytest.raises(HTTPException):
        keys.admit("a")
