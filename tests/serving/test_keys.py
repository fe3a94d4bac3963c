"""API keys and their limits, at times that are given."""

import os
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Array
from threading import Lock

import pytest
from starlette.exceptions import HTTPException

from resmlp_mt.errors import UserError
from resmlp_mt.serving.buckets import Buckets
from resmlp_mt.serving.keys import Key, Keys, follow_keys, read_keys


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


def test_too_many_keys_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("resmlp_mt.serving.keys.MOST_KEYS", 2)
    path = tmp_path / "keys"
    path.write_text("a\nb\n")
    assert len(read_keys(path, 0)) == 2
    path.write_text("a\nb\nc\n")
    with pytest.raises(UserError, match="more than 2 keys"):
        read_keys(path, 0)


def ask(keys, key):
    """The status of a refusal and when to try again, or None."""
    try:
        keys.admit(key)
    except HTTPException as refused:
        return refused.status_code, (refused.headers or {}).get("Retry-After")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_each_key_has_its_requests_a_minute():
    clock = Clock()
    there = [Key("a", 3), Key("b", 0), Key("ö", 1)]
    keys = Keys(lambda: there, Buckets(clock=clock))
    assert ask(keys, "") == ask(keys, "c") == (403, None)
    assert [ask(keys, "a") for _ in range(4)] == [None, None, None, (429, "20")]
    assert [ask(keys, "b") for _ in range(9)] == [None] * 9 and ask(keys, "ö") is None
    clock.now += 19.5
    assert ask(keys, "a") == (429, "1") and ask(keys, "a") == (429, "1")
    clock.now += 1
    assert [ask(keys, "a") for _ in range(2)] == [None, (429, "20")]
    clock.now += 3600  # no more are saved than for a minute
    assert [ask(keys, "a") for _ in range(4)] == [None] * 3 + [(429, "20")]
    Keys().admit("")


def test_counts_that_stay_locked_keep_nobody_out():
    lock = Lock()
    there = [Key("a", 1)]
    keys = Keys(lambda: there, Buckets(lock=lock))
    lock.acquire()  # as by a worker that was killed at that moment
    for _ in range(3):
        keys.admit("a")
    lock.release()
    keys.admit("a")
    with pytest.raises(HTTPException):
        keys.admit("a")


@pytest.mark.parametrize("shared", [True, False])
def test_keys_come_and_go_with_the_file_and_the_others_keep_their_counts(tmp_path, shared):
    path, clock = tmp_path / "keys", Clock()
    path.write_text("a 2\nb 3\n")
    numbers = Array("d", 3 * 9).get_obj() if shared else []
    workers = [Keys(follow_keys(path, 0).read, Buckets(numbers, clock=clock)) for _ in "12"]

    def ask_each(key):
        return [ask(keys, key) for keys in workers]

    assert ask_each("a") == [None, None] and ask_each("b") == [None, None]
    path.write_text("c\nb 3\nd 2\na 2\n")
    assert ask_each("a") == [(429, "30")] * 2
    assert ask_each("b") == [None, (429, "20")]
    assert ask_each("c") == ask_each("d") == [None, None]
    path.write_text("d 2\n")
    assert ask_each("a") == ask_each("b") == [(403, None)] * 2
    assert ask_each("d") == [(429, "30")] * 2


def test_a_file_that_cannot_be_read_changes_nothing_and_that_is_said_once(tmp_path, caplog):
    path, away = tmp_path / "keys", tmp_path / "away"
    path.write_text("a\n")
    file = follow_keys(path, 5)

    def found():
        caplog.clear()
        for _ in range(3):
            keys = [key.secret for key in file.read()]
        return keys, caplog.messages

    assert found() == (["a"], [])
    for text, what in [("b b\n", ", line 1: not a key, or"), ("# none\n", ": holds no key;")]:
        path.write_text(text)
        keys, (said,) = found()
        assert keys == ["a"] and said.startswith(f"--api-keys {path}{what}")
        assert said.endswith("; the keys stay as they were")
    path.rename(away)
    assert found() == (["a"], [f"--api-keys {path}: no such file; the keys stay as they were"])
    path.mkdir()
    keys, (said,) = found()
    assert keys == ["a"] and "a folder, not a text file" in said
    path.rmdir()
    away.write_text("b\n")
    away.rename(path)
    assert found() == (["b"], [])
    path.unlink()
    path.symlink_to(path)
    keys, (said,) = found()
    assert keys == ["b"] and f"{path}: Too many levels" in said
    path.unlink()
    away.write_text("cc 7\n")
    away.rename(path)
    assert found() == (["cc"], []) and file.read() == [Key("cc", 7)]


def test_keys_from_a_pipe_are_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        pool.submit(path.write_text, "a\n")
        file = follow_keys(path, 0)
    assert file.read() is file.read() and file.read() == [Key("a", 0)]
