import os
import subprocess
import sys
from itertools import islice

import pytest
from cli.commands import ENVIRONMENT

from resmlp_mt.errors import UserError
from resmlp_mt.translating.lines import Arrivals, Lines, group, open_files, take_shard

READ = """
from resmlp_mt.translating.lines import STANDARD, Arrivals, group, open_files
arrivals = Arrivals(open_files([STANDARD]))
for lines in group(arrivals, 10, arrivals):
    print(*lines, flush=True)
"""


def test_standard_input_that_does_not_block_is_waited_for():
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    command = [sys.executable, "-c", READ]
    reader = subprocess.Popen(command, stdin=ours, stdout=subprocess.PIPE, env=ENVIRONMENT)
    os.close(ours)
    for line in (b"first\n", b"second\n"):
        os.write(theirs, line)
        assert reader.stdout.readline() == line  # before the next is written
    os.close(theirs)
    assert reader.communicate(timeout=1800)[0] == b"" and reader.returncode == 0


def test_the_end_of_a_file_does_not_wait_for_the_next(tmp_path):
    stored, late = tmp_path / "stored", tmp_path / "late"
    stored.write_text("One.\nTwo\n")
    os.mkfifo(late)
    arrivals = Arrivals(open_files([stored, late]))
    groups = group(arrivals, 10, arrivals)
    found = next(groups)
    while len(found) < 2:  # on a machine that is busy
        found += next(groups)
    assert found == ["One.", "Two"]
    late.write_text("Late.\n")
    assert list(groups) == [["Late."]]


def test_what_cannot_be_read_is_raised_in_its_place(tmp_path):
    (tmp_path / "broken").write_bytes(b"a\n\xff\n")
    arrivals = Arrivals(open_files([tmp_path / "broken", tmp_path / "none"]))
    lines = iter(arrivals)
    assert next(lines) == "a"
    with pytest.raises(UserError, match="broken, line 2"):
        next(lines)


def test_lines_are_found_in_their_files_past_empty_ones():
    texts = {"a": "xy", "b": "", "c": "xyz", "d": ""}
    lines = Lines((text, name) for name, text in texts.items())
    assert "".join(lines) == "xyxyz"
    found = [lines.find(number) for number in range(1, 6)]
    assert found == ["a, line 1", "a, line 2", "c, line 1", "c, line 2", "c, line 3"]
    list(unnamed := Lines([("abc", "")]))
    assert unnamed.find(3) == "line 3"


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 50])
def test_shards_are_even_and_together_the_lines(count, tmp_path):
    lines, paths = [f"line {i}" for i in range(8)], [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("\n".join(lines[:5]) + "\n")
    paths[1].write_text("\n".join(lines[5:]))
    parts, places = [], []
    for i in range(1, count + 1):
        found, start, stop = take_shard(paths, f"{i}/{count}")
        parts.append(list(islice(found, start, stop)))
        places += [found.find(number + 1) for number in range(start, stop)]
    assert sum(parts, []) == lines
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert places == [f"{paths[i > 4]}, line {i % 5 + 1}" for i in range(8)]
