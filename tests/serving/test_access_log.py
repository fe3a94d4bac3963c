"""The access log where its file cannot be written."""

from dataclasses import replace

from resmlp_mt.serving.access_log import open_access_log
from resmlp_mt.serving.measure import Answered

ANSWERED = Answered("192.0.2.7", "GET", "/healthz", "1.1", "200", 65, 0.001)


def test_a_folder_that_goes_is_said_once_and_the_log_goes_on_when_it_is_back(tmp_path, capsys):
    log, away = tmp_path / "logs" / "access.log", tmp_path / "away"
    log.parent.mkdir()
    write = open_access_log(str(log))
    for _ in range(2):
        write(ANSWERED)
        log.parent.rename(away)
        write(ANSWERED)
        write(ANSWERED)
        said = f"--access-log {log}: No such file or directory; requests go unlogged\n"
        assert capsys.readouterr().err == said
        away.rename(log.parent)
    write(replace(ANSWERED, path="/last"))
    assert [line.split()[6] for line in log.read_text().splitlines()] == [
        *["/healthz"] * 2,
        "/last",
    ]


def test_a_client_that_names_itself_writes_no_line_of_its_own(tmp_path):
    write = open_access_log(str(tmp_path / "log"))
    for client in ("192.0.2.7", "2001:db8::7", "-", 'a - - [x] "GET /secret HTTP/1.1" 200\n'):
        write(replace(ANSWERED, client=client))
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["192.0.2.7", "2001:db8::7", "-", "-"]


def test_a_full_disk_is_said_in_a_line(capsys):
    write = open_access_log("/dev/full")
    write(ANSWERED)
    write(ANSWERED)
    said = "--access-log /dev/full: No space left on device; requests go unlogged\n"
    assert capsys.readouterr().err == said
