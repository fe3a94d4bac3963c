"""API keys and their limits, at times that are given."""

import sqlite3
from types import SimpleNamespace

import pytest
from starlette.exceptions import HTTPException

from resmlp_mt.errors import UserError
from resmlp_mt.serving import keys as keys_module
from resmlp_mt.serving.keys import Keys, read_keys


def test_a_file_of_keys_is_read(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# ours\nalpha\n\nbeta 5 # five\n  # more\np4#Xw9 7 #8\n")
    assert read_keys(path, 60) == {"alpha": 60, "beta": 5, "p4#Xw9": 7}


@pytest.mark.parametrize("text", ["# none\n", "a\nb many\n", "a 1 2\n", "a\na 2\n"])
def test_what_is_wrong_with_a_file_is_said(tmp_path, text):
    (tmp_path / "keys").write_text(text)
    with pytest.raises(UserError, match="keys"):
        read_keys(tmp_path / "keys", 0)


def ask(keys, key):
    """The status of a refusal and when to try again, or None."""
    try:
        keys.admit(key)
    except HTTPException as refused:
        return refused.status_code, (refused.headers or {}).get("Retry-After")


@pytest.mark.parametrize("shared", [True, False])
def test_each_key_has_its_requests_a_minute(tmp_path, monkeypatch, shared):
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(keys_module.time, "time", lambda: clock.now)
    folder = tmp_path if shared else None
    workers = [Keys({"a": 3, "b": 0, "ö": 1}, folder) for _ in range(1 + shared)]

    def ask_any(key, times):
        return [ask(workers[i % len(workers)], key) for i in range(times)]

    assert ask_any("", 1) == ask_any("c", 1) == [(403, None)]
    assert ask_any("a", 4) == [None, None, None, (429, "60")]
    assert ask_any("b", 9) == [None] * 9 and ask_any("ö", 2) == [None, (429, "60")]
    clock.now += 45.5
    assert ask_any("a", 1) == [(429, "15")]
    clock.now += 14.5
    assert ask_any("a", 4) == [None, None, None, (429, "60")]
    again = Keys({"a": 3}, folder)  # a worker that takes the place of another
    assert ask(again, "a") == ((429, "60") if shared else None)


def test_where_no_key_is_needed_all_may_ask():
    assert ask(Keys(), "") is None


def test_counts_that_stay_locked_keep_nobody_out(tmp_path):
    keys = Keys({"a": 1}, tmp_path)
    other = sqlite3.connect(tmp_path / "keys.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert [ask(keys, "a") for _ in range(3)] == [None] * 3
    other.execute("ROLLBACK")
    assert [ask(keys, "a") is None for _ in range(2)] == [True, False]
