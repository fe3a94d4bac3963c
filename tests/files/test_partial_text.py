import gzip
import lzma
import multiprocessing
import os
import resource

import pytest

from resmlp_mt.errors import UserError
from resmlp_mt.files import partial_text
from resmlp_mt.files.partial_text import PartialText, TextStream, is_finished, open_text

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


@pytest.mark.parametrize(
    ("beam", "resume", "lines", "said"),
    [
        (5, False, LINES, "--resume"),
        (4, True, LINES, "--beam"),
        *(
            (5, True, lines, "first 9 of")
            for lines in (LINES[1:], LINES[:8], [*LINES[:8], "x"], [])
        ),
    ],
)
def test_a_part_is_not_continued_otherwise_than_it_was_begun(stopped, beam, resume, lines, said):
    with (
        pytest.raises(UserError, match=said),
        PartialText(stopped, {"--beam": beam}, resume) as part,
    ):
        shout(part, lines)
    with PartialText(stopped, {"--beam": 5}, True) as part:
        assert shout(part, LINES) == LINES[9:]


@pytest.mark.parametrize("spoil", ["", "[]", "{", '{"lines": 3}', None, "cut"])
def test_what_is_no_part_of_the_text_is_not_lost(stopped, spoil):
    """It may be somebody else's, of the same name."""
    part, state = stopped.with_name("x.part"), stopped.with_name("x.part.json")
    if spoil is None:
        state.unlink()
    elif spoil == "cut":
        os.truncate(part, 5)
    else:
        state.write_text(spoil)
    before = part.read_bytes()
    for resume in (False, True):
        with pytest.raises(UserError, match="x.part: in the way"):
            PartialText(stopped, {"--beam": 5}, resume)
    assert part.read_bytes() == before


def test_the_state_of_a_part_that_was_removed_counts_for_nothing(stopped):
    stopped.with_name("x.part").unlink()
    with pytest.raises(KeyboardInterrupt), PartialText(stopped, {"--beam": 4}, False) as part:
        shout(part, LINES, stop=1)
    assert list(stopped.parent.iterdir()) == []


def hold(target, pipe):
    """Make text of two lines, and wait to be told to go on after each."""
    with PartialText(target, {}, False) as part:
        for line in part.follow(["a", "b"]):
            part.write(line)
            part.flush()
            pipe.send("wrote")
            pipe.recv()


@pytest.mark.parametrize("end", ["finished", "killed"])
def test_a_second_run_is_refused_while_the_first_is_at_work(tmp_path, end):
    target = tmp_path / "x"
    processes = multiprocessing.get_context("fork")
    pipe, others = processes.Pipe()
    first = processes.Process(target=hold, args=(target, others))
    first.start()
    pipe.recv()
    for resume in (False, True):
        with pytest.raises(UserError, match="x.part: another run is at work on it"):
            PartialText(target, {}, resume)
    if end == "killed":
        first.kill()
    else:
        pipe.send("on")
        pipe.send("on")
    first.join()
    with PartialText(target, {}, resume=True) as part:
        assert part.lines == (1 if end == "killed" else 0)
        assert len(list(part.follow(["a", "b"]))) == (1 if end == "killed" else 2)


@pytest.mark.parametrize(("suffix", "unpack"), [(".gz", gzip), (".xz", lzma)])
def test_compressed_text_goes_on_too(tmp_path, suffix, unpack, monkeypatch):
    monkeypatch.setattr(partial_text, "_SHORT", 1)
    target = tmp_path / f"x{suffix}"
    with open_text(tmp_path / f"whole{suffix}", {}, False) as part:
        shout(part, LINES)
    with pytest.raises(KeyboardInterrupt), open_text(target, {}, False) as part:
        shout(part, LINES, stop=10)
    with open_text(target, {}, True) as part:
        assert shout(part, LINES) == LINES[9:]
    text = unpack.decompress(target.read_bytes()).decode()
    assert text == "".join(line.upper() + "\n" for line in LINES)
    assert target.read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    with open_text(target, {}, False) as part:
        shout(part, [])
    assert unpack.decompress(target.read_bytes()) == b""


def test_what_is_finished_is_told_from_what_is_made_anew(tmp_path):
    target = tmp_path / "x"
    assert not is_finished(target)
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    assert is_finished(target) and is_finished(tmp_path / "link")
    with open_text(tmp_path / "link", {}, False) as part:
        assert not is_finished(target) and not is_finished(tmp_path / "link")
        part.write("new")
    assert target.read_text() == "new" and (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o666])
def test_what_takes_the_place_of_a_file_has_its_rights_from_the_start(tmp_path, mode):
    target = tmp_path / "x"
    target.write_text("old")
    target.chmod(mode)
    with pytest.raises(KeyboardInterrupt), PartialText(target, {}, False) as part:
        assert not (tmp_path / "x.part").stat().st_mode & ~(mode | 0o600) & 0o777
        shout(part, LINES, stop=10)
    with PartialText(target, {}, True) as part:
        shout(part, LINES)
    assert target.stat().st_mode & 0o777 == mode and target.read_text("utf-8") != "old"


@pytest.mark.parametrize("name", ["x", "/dev/full"])
def test_a_full_disk_is_named_and_what_is_there_stays(tmp_path, name):
    # The limit on the size of a file stands for a full disk.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(OSError) as error, open_text(tmp_path / name, {}, False) as part:
            shout(part, LINES * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error.value.filename == str(tmp_path / name)
    if name == "x":
        with open_text(tmp_path / name, {}, True) as part:
            assert 0 < len(shout(part, LINES * 10)) < 200
        assert (tmp_path / name).read_text("utf-8").count("\n") == 200


def test_a_pipe_gets_the_text_as_it_is_made_and_cannot_be_resumed(tmp_path):
    reader, writer = os.pipe()
    name = tmp_path / "pipe"
    name.symlink_to(f"/dev/fd/{writer}")
    with pytest.raises(UserError, match="no regular file"), open_text(name, {}, resume=True):
        raise AssertionError("the work was done")
    with open_text(name, {}, resume=False) as out:
        assert type(out) is TextStream and list(out.follow(LINES)) == LINES and out.lines == 0
        for text in ("first", "second"):
            out.write(text)
            out.flush()
            assert os.read(reader, 99).decode() == text
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)
