import os
import stat
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path

import pytest

from resmlp_mt.errors import UserError
from resmlp_mt.files.output import refuse_overwriting, whole_file, whole_folder


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "deep" / "x"
    with whole_file(target) as path:
        path.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    with pytest.raises(KeyboardInterrupt), whole_file(target) as path:
        path.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "new"
    assert [p.name for p in target.parent.iterdir()] == ["x"]


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o666])
def test_a_file_keeps_the_rights_of_the_one_it_replaces(tmp_path, mode):
    target = tmp_path / "x"
    target.write_text("old")
    target.chmod(mode)
    with whole_file(target) as path:
        path.write_text("new")
    assert stat.S_IMODE(target.stat().st_mode) == mode and target.read_text() == "new"


def test_links_are_followed(tmp_path):
    links = {"link": "there/x", "far": "link", "folder": "made"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    for text in ("made", "made anew"):
        with whole_file(tmp_path / "far") as path:
            path.write_text(text)
        with whole_folder(tmp_path / "folder", mark="mark") as folder:
            (folder / "mark").write_text(text)
        assert (tmp_path / "there/x").read_text() == (tmp_path / "made/mark").read_text() == text
    assert all((tmp_path / name).is_symlink() for name in links)
    assert len(list(tmp_path.iterdir())) == len(links) + 2


def test_a_pipe_is_written_through(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    with whole_file(tmp_path / "link") as path:
        path.write_text("text")
    reader.join(60)
    assert read == ["text"] and pipe.is_fifo()


APPENDS = """
from pathlib import Path
from resmlp_mt.files.output import whole_file
for text in ("first ", "second "):
    with whole_file(Path("/dev/stdout")) as path:
        path.write_text(text)
print("third")
"""


def test_standard_output_is_written_from_where_it_is(tmp_path):
    (tmp_path / "x").write_text("zeroth ")
    with open(tmp_path / "x", "a") as out:
        subprocess.run([sys.executable, "-c", APPENDS], stdout=out, check=True)
    assert (tmp_path / "x").read_text() == "zeroth first second third\n"


@pytest.mark.parametrize("name", ["/proc/x", "/proc/x/y", "file/x", "file/x/y", "link", "", "open"])
@pytest.mark.parametrize("whole", [whole_file, lambda path: whole_folder(path, mark="mark")])
def test_a_place_that_takes_no_files_is_named(name, whole, tmp_path):
    if name in ("", "open") and whole is not whole_file:
        return  # a folder may be made anew
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file/x")
    closed = os.open(tmp_path, os.O_RDONLY)
    os.close(closed)
    (tmp_path / "open").symlink_to(f"/dev/fd/{closed}")
    path = tmp_path / name
    with pytest.raises(UserError, match=f"^{path}: "), whole(path):
        raise AssertionError("the work was done")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "open"]


def test_a_source_is_not_overwritten(tmp_path):
    source, link = tmp_path / "source", tmp_path / "link"
    source.write_text("")
    link.symlink_to(source)
    refuse_overwriting(tmp_path / "new", [source, tmp_path / "missing", tmp_path])
    with open(source) as stream:
        for path, read in product((source, link), (source, link, stream.fileno(), tmp_path)):
            with pytest.raises(UserError, match="would be read and written"):
                refuse_overwriting(path, [tmp_path / "missing", read])


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "x"
    for text in ("first", "second"):
        with whole_folder(target, "mark", "first", "sec*") as folder:
            (folder / "mark").write_text(text)
            (folder / text).write_text("")
        assert sorted(p.name for p in target.iterdir()) == sorted(["mark", text])
    with pytest.raises(OSError, match="disk"), whole_folder(target, "mark", "second") as folder:
        (folder / "mark").write_text("third")
        raise OSError("disk full")
    assert (target / "mark").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("calls", [1, 2])
def test_an_interrupt_while_folders_change_places_keeps_the_old_one(tmp_path, monkeypatch, calls):
    with whole_folder(tmp_path / "x", mark="mark") as folder:
        (folder / "mark").write_text("old")
    rename, done = os.rename, []

    def rename_and_interrupt(source, target):
        done.append(target)
        if len(done) == calls == 2:
            raise KeyboardInterrupt  # before the new folder is in place
        rename(source, target)
        if len(done) == calls == 1:
            raise KeyboardInterrupt  # after the old one has left

    monkeypatch.setattr(os, "rename", rename_and_interrupt)
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "x", mark="mark") as folder:
        (folder / "mark").write_text("new")
    monkeypatch.undo()
    assert (tmp_path / "x" / "mark").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


KILLED = """
import os, sys
from pathlib import Path
from resmlp_mt.files.output import whole_folder

def stop():
    print("here", flush=True)
    sys.stdin.read()

rename = os.rename
if sys.argv[2] == "renaming":
    os.rename = lambda source, target: (rename(source, target), stop())
with whole_folder(Path(sys.argv[1]), mark="mark") as folder:
    (folder / "mark").write_text("new")
    if sys.argv[2] == "filling":
        stop()
"""


@pytest.mark.parametrize("moment", ["filling", "renaming"])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, moment):
    target = tmp_path / "x[1]"  # no pattern
    with whole_folder(target, mark="mark") as folder:
        (folder / "mark").write_text("old")
    command = [sys.executable, "-c", KILLED, target, moment]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"here\n"
        with pytest.raises(UserError, match="another run"), whole_folder(target, mark="mark"):
            raise AssertionError("the work was done")
        process.kill()
    with whole_folder(target, mark="mark") as folder:
        assert (target / "mark").read_text() == "old"
        (folder / "mark").write_text("newer")
    assert (target / "mark").read_text() == "newer"
    assert [*tmp_path.iterdir()] == [target]


@pytest.mark.parametrize("name", ["", "letter", "raw/mine.en"])
def test_what_another_made_is_not_replaced(tmp_path, name):
    """A file in the place of the folder; one without its mark; and what somebody put into it."""
    target = tmp_path / "x"
    for held in ("mark", "raw/a.en", name) if "/" in name else (name,):
        (target / held).parent.mkdir(parents=True, exist_ok=True)
        (target / held).write_text("old")
    with pytest.raises(UserError, match=name or "x"), whole_folder(target, "mark", "raw/a.*"):
        raise AssertionError("the work was done")
    assert (target / name).read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    (target / name).unlink()
    with whole_folder(target, "mark", "raw/a.*") as folder:
        (folder / "mark").write_text("new")
    assert [path.name for path in target.iterdir()] == ["mark"]


def test_a_card_that_somebody_wrote_stays(tmp_path):
    for text in ("first", "second"):
        with whole_folder(tmp_path / "x", "mark") as folder:
            (folder / "mark").write_text(text)
        (tmp_path / "x/README.md").write_text("# Mine")
    assert (tmp_path / "x/mark").read_text() == "second"
    assert (tmp_path / "x/README.md").read_text() == "# Mine"


@pytest.mark.parametrize("name", [".", "..", "../there"])
def test_the_working_folder_is_not_replaced(tmp_path, monkeypatch, name):
    (tmp_path / "there").mkdir()
    for folder in (tmp_path, tmp_path / "there"):
        (folder / "mark").write_text("old")
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(UserError, match="in use"), whole_folder(Path(name), "mark", "there"):
        raise AssertionError("the work was done")
    assert Path("mark").read_text() == "old"
