import os
import stat

import pytest

from resmlp_mt.data.output import PartialText, whole_file, whole_folder
from resmlp_mt.errors import UserError


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


def test_a_file_has_the_rights_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    with whole_file(tmp_path / "whole") as path:
        path.write_text("")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "whole")]
    assert modes[0] == modes[1]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "x"
    for text in ("first", "second"):
        with whole_folder(target, mark="mark") as folder:
            (folder / "mark").write_text(text)
            (folder / text).write_text("")
        assert sorted(p.name for p in target.iterdir()) == sorted(["mark", text])
    with pytest.raises(OSError, match="disk"), whole_folder(target, mark="mark") as folder:
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


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_another_made_is_not_replaced(tmp_path, kind):
    target = tmp_path / "x"
    if kind == "file":
        target.write_text("letter")
    else:
        target.mkdir()
        (target / "letter").write_text("")
    with pytest.raises(UserError, match="holds something else"), whole_folder(target, mark="mark"):
        pass
    assert target.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_an_empty_folder_may_be_filled(tmp_path):
    with whole_folder(tmp_path, mark="mark") as folder:
        (folder / "mark").write_text("")
    assert (tmp_path / "mark").exists()


LINES = [f"line {i} ä\u2028" for i in range(20)]


def shout(part, lines, step=3, stop=None):
    """Write lines in capitals, a step at a time; `stop` of them later it is interrupted."""
    seen = []
    for line in part.follow(iter(lines)):
        seen.append(line)
        if stop is not None and len(seen) == stop:
            raise KeyboardInterrupt
        part.write(line.upper() + "\n")
        if len(seen) % step == 0:
            part.flush()
    return seen


@pytest.mark.parametrize("stop", range(1, len(LINES)))
def test_interrupted_text_goes_on_where_its_last_step_ended(tmp_path, stop):
    target = tmp_path / "x"
    with pytest.raises(KeyboardInterrupt), PartialText(target, {}, False) as part:
        shout(part, LINES, stop=stop)
    assert not target.exists() and (stop > 3) == (tmp_path / "x.part").exists()
    if stop > 3:
        with open(tmp_path / "x.part", "ab") as torn:
            torn.write(b"half a line that came after the last st")
    with PartialText(target, {}, True) as part:
        assert shout(part, LINES) == LINES[(stop - 1) // 3 * 3 :]
    assert target.read_text("utf-8") == "".join(line.upper() + "\n" for line in LINES)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.fixture
def stopped(tmp_path):
    with (
        pytest.raises(KeyboardInterrupt),
        PartialText(tmp_path / "x", {"--beam": 5}, False) as part,
    ):
        shout(part, LINES, stop=10)
    return tmp_path / "x"


def test_a_part_is_not_lost_by_starting_again(stopped):
    with pytest.raises(UserError, match="x.part: left by a run .* --resume"):
        PartialText(stopped, {"--beam": 5}, False)


def test_a_part_is_not_continued_with_other_options(stopped):
    with pytest.raises(UserError, match="begun with --beam 5, not 4"):
        PartialText(stopped, {"--beam": 4}, True)


@pytest.mark.parametrize("lines", [LINES[1:], LINES[:8], [*LINES[:8], "other"], []])
def test_a_part_is_not_continued_from_other_lines(stopped, lines):
    with (
        pytest.raises(UserError, match="other lines than the first 9 of"),
        PartialText(stopped, {"--beam": 5}, True) as part,
    ):
        shout(part, lines)
    with PartialText(stopped, {"--beam": 5}, True) as part:
        assert shout(part, LINES) == LINES[9:]


@pytest.mark.parametrize("state", ["", "[]", "{", '{"lines": 3}'])
def test_a_broken_state_is_named(stopped, state):
    stopped.with_name("x.part.json").write_text(state)
    with pytest.raises(UserError, match="x.part.json: broken"):
        PartialText(stopped, {"--beam": 5}, True)


def test_a_part_that_was_cut_is_named(stopped):
    os.truncate(stopped.with_name("x.part"), 5)
    with pytest.raises(UserError, match="shorter than it was"):
        PartialText(stopped, {"--beam": 5}, True)
