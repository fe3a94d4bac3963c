"""Two processes and a folder."""

import multiprocessing
import os
import signal

from resmlp_mt.files.claim import claim_folder


def fork(function):
    """The result of a function in a child, and the child, which waits to be told to end."""
    here, there = multiprocessing.Pipe()
    if child := os.fork():
        return here.recv(), child
    there.send(function())
    there.recv()  # never comes
    os._exit(0)


def end(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_folder_is_of_one_process_until_that_is_killed(tmp_path):
    link = tmp_path / "link"
    (tmp_path / "folder").mkdir()
    link.symlink_to(tmp_path / "folder")
    took_it, owner = fork(lambda: claim_folder(tmp_path / "folder"))
    assert took_it and not claim_folder(link)
    end(owner)
    assert claim_folder(link)
    assert claim_folder(tmp_path / "folder")  # its own
    assert not list((tmp_path / "folder").iterdir())


def test_a_child_that_lives_on_does_not_keep_the_folder(tmp_path):
    def begin():
        return claim_folder(tmp_path), fork(lambda: None)[1]

    (took_it, grandchild), owner = fork(begin)
    end(owner)
    assert took_it and claim_folder(tmp_path)
    os.kill(grandchild, signal.SIGKILL)
