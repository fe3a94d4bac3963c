"""What rows of races say of the code that they were measured with."""

import datetime
import subprocess
from pathlib import Path

import pytest

from resmlp_mt.benchmark import report
from resmlp_mt.errors import UserError


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Of somebody, with the code in a file of it."""
    monkeypatch.delenv("COMMIT", raising=False)
    code = tmp_path / "environment" / "report.py"
    code.parent.mkdir()
    code.touch()
    monkeypatch.setattr(report, "__file__", str(code))
    git("init", "--quiet", cwd=tmp_path)
    (tmp_path / "theirs").touch()
    git("add", "theirs", cwd=tmp_path)
    commit(tmp_path)
    return tmp_path


def git(*words, cwd):
    found = subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True, text=True)
    return found.stdout.strip()


def commit(folder):
    somebody = "-c", "user.name=A", "-c", "user.email=a@example.org"
    git(*somebody, "commit", "--quiet", "--message", "Work", cwd=folder)


def test_the_commit_is_that_of_the_code(repository):
    git("add", "environment", cwd=repository)
    commit(repository)
    assert report.describe_commit() == git("rev-parse", "--short", "HEAD", cwd=repository)


def test_changed_code_is_of_no_commit(repository):
    test_the_commit_is_that_of_the_code(repository)
    (repository / "environment" / "report.py").write_text("changed = True\n")
    assert (
        report.describe_commit() == git("rev-parse", "--short", "HEAD", cwd=repository) + "-dirty"
    )


def test_an_environment_within_a_repository_is_none_of_its_commits(repository):
    assert report.describe_commit() == ""


def test_the_variable_says_it_for_a_copy(repository, monkeypatch):
    monkeypatch.setenv("COMMIT", "abc")
    assert report.describe_commit() == "abc"


@pytest.mark.parametrize(("threads", "said"), [(1, "1 thread"), ("2", "2 threads")])
def test_a_processor_is_named_as_the_system_names_it(tmp_path, monkeypatch, threads, said):
    monkeypatch.setattr(report, "_CPUINFO", tmp_path / "cpuinfo")
    report._CPUINFO.write_text("processor\t: 0\nmodel name\t: A Fast One\nprocessor\t: 1\n")
    assert report.describe_processor(threads) == f"A Fast One, {said}"


def test_rows_come_from_a_machine_at_a_day_and_of_a_commit(monkeypatch):
    monkeypatch.setenv("COMMIT", "abc")
    origin = report.describe_origin("a machine")
    assert (origin["machine"], origin["commit"]) == ("a machine", "abc")
    datetime.date.fromisoformat(origin["date"])


def test_a_table_whose_rows_name_no_commit_is_refused_before_a_race(tmp_path):
    table = tmp_path / "races.csv"
    report.check_table(table)  # a new one
    for path, said in (
        (tmp_path, "a folder; name a file"),
        (Path("/dev/full"), "is no file that rows"),
    ):
        with pytest.raises(UserError, match=said):
            report.check_table(path)
    table.touch()
    report.check_table(table)
    table.write_text("rival,rate,commit\nours,1,abc\n")
    report.check_table(table)
    for columns in ("rival,rate", "rate,commit"):
        table.write_text(f"{columns}\nours,1\n")
        with pytest.raises(UserError, match="other columns"):
            report.check_table(table)


def test_a_table_of_another_race_is_refused_with_the_columns_that_differ(tmp_path):
    table = tmp_path / "races.csv"
    table.write_text("rival,size,rate,commit\nours,tiny,1,abc\n")
    report.check_table(table, ["size", "rival", "commit", "rate"])
    with pytest.raises(UserError, match="has no column text, beam; it is of another race"):
        report.check_table(table, ["rival", "size", "text", "beam"])
    with pytest.raises(UserError, match="needs a value of size, rate; it is of another race"):
        report.check_table(table, ["rival", "commit"])
