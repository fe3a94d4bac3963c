"""`resmlp-mt translate --join-lines`: lines are put together before they are translated."""

import gzip
import json
import os

import pytest
from cli.commands import assert_refused, run, start


def translate(model, *options, **run_options):
    return run("resmlp-mt", "translate", "--model", model, *options, **run_options)


@pytest.fixture(scope="module")
def sources(raw):
    sources = (raw / "test.en").read_text().splitlines()[:8]
    assert all(source[-1] == "." and " " in source for source in sources)
    return sources


@pytest.fixture(scope="module")
def expected(packed, sources):
    return translate(packed, *sources).stdout.splitlines()


def wrap(sentence):
    return sentence.replace(" ", "\n")


def test_wrapped_text_is_translated_as_its_sentences(packed, sources, tmp_path):
    head, item = sources[0].rstrip("."), "- " + sources[1]
    lines = [*map(wrap, sources), "", head, "", "", wrap(head), item]
    whole = [*sources, "", head, "", "", head, item]
    (tmp_path / "wrapped.en").write_text("\n".join(lines) + "\n")
    apart = translate(packed, "--json", stdin="\n".join(whole)).stdout
    assert [json.loads(line)["source"] for line in apart.splitlines()] == whole
    for options in (["--buffer-size", 1], ["--buffer-size", 3], []):
        options += ["--join-lines", "--input", tmp_path / "wrapped.en"]
        assert translate(packed, *options, "--json").stdout == apart
    table = translate(packed, *options, "--nbest", 2).stdout.splitlines()
    assert {int(row.split("\t")[0]) for row in table} == set(range(1, len(whole) + 1))


def test_lines_of_two_files_or_two_arguments_stay_apart(packed, sources, tmp_path):
    begun = "The dog and"
    first, second = tmp_path / "1.en", tmp_path / "2.en.gz"
    first.write_text(f"{wrap(sources[0])}\n{wrap(begun)}")
    second.write_bytes(gzip.compress(wrap(sources[1]).encode()))
    options = ["--join-lines", "--json"]
    files = [*options, "--input", first, "-", second]
    said = translate(packed, *files, stdin=wrap(begun)).stdout.splitlines()
    assert [json.loads(line)["source"] for line in said] == [sources[0], begun, begun, sources[1]]
    texts = [wrap(sources[0]) + "\n" + wrap(begun), wrap(sources[1])]
    said = translate(packed, *options, *texts).stdout.splitlines()
    assert [json.loads(line)["source"] for line in said] == [sources[0], begun, sources[1]]


def test_blocks_of_code_stay(packed, sources, tmp_path):
    code = "```sh\nls  -l\n\n  # The dog sleeps.\n```"
    (tmp_path / "x.md").write_text(f"{wrap(sources[0])}\n{code}\n{wrap(sources[1])}\n~~~\nA dog.")
    whole = [sources[0], sources[1], "A dog."]
    first, second, open_ended = translate(packed, *whole).stdout.splitlines()
    options = ["--split-sentences", "--join-lines", "--input", tmp_path / "x.md"]
    said = translate(packed, *options).stdout
    assert said == "\n".join([first, code, second, "~~~", open_ended, ""])
    answers = translate(packed, *options, "--json").stdout.splitlines()
    assert [json.loads(line)["source"] for line in answers] == [
        sources[0], code, sources[1], "~~~", "A dog.",
    ]  # fmt: skip
    table = translate(packed, *options, "--nbest", 2, "--print-alignment").stdout.splitlines()
    rows = [row.split("\t") for row in table]
    assert {len(row) for row in rows} == {4}
    assert [row[2] for row in rows if row[0] == "2"] == code.split("\n") * 2


def test_sources_are_put_together_in_all_scripts(packed):
    lines = "वह|कहाँ है।|Ναι,|ίσως.|他来|了。|คน|ดี||هل|أنت؟|Да|ли?".split("|")
    options = ["--join-lines", "--json", "--quiet", "--beam", 1]
    answers = translate(packed, *options, stdin="\n".join(lines)).stdout.splitlines()
    assert [json.loads(line)["source"] for line in answers] == [
        "वह कहाँ है।", "Ναι, ίσως.", "他来了。", "คนดี", "", "هل أنت؟", "Да ли?",
    ]  # fmt: skip
    said = translate(packed, "--join-lines", stdin="\n".join(["The", "dog.", *lines])).stderr
    assert "line 2: the model never saw most characters of this (वह कहाँ" in said


def test_lines_of_a_pipe_are_answered_as_soon_as_they_are_whole(packed, sources):
    theirs, ours = os.pipe()
    options = ["--model", packed, "--join-lines", "--json"]
    process = start("resmlp-mt", "translate", *options, stdin=theirs)
    os.close(theirs)
    begun = sources[2].rstrip(".")
    for lines, whole in (
        (wrap(sources[0]), [sources[0]]),  # and the next is not written before this is answered
        (f"{wrap(sources[1])}\n{wrap(begun)}", [sources[1]]),
        ("- " + wrap(sources[3]), [begun, "- " + sources[3]]),
        ("", [""]),
        (f"{wrap(begun)}\n", [begun, ""]),
    ):
        os.write(ours, f"{lines}\n".encode())
        assert [json.loads(process.stdout.readline())["source"] for _ in whole] == whole
    os.write(ours, wrap(begun).encode())
    os.close(ours)
    assert json.loads(process.stdout.read())["source"] == begun and process.wait(120) == 0


def test_what_was_put_together_can_be_resumed(packed, sources, expected, tmp_path):
    text, out = tmp_path / "x.en", tmp_path / "x.de"
    options = ["--join-lines", "--input", text, "--output", out, "--buffer-size", 3]
    lines = [wrap(source).encode() for source in sources]
    text.write_bytes(b"\n".join([*lines[:-1], b"\xff"]))
    assert_refused(translate(packed, *options, check=False), "not UTF-8", "stopped half way")
    text.write_bytes(b"\n".join(lines))
    changed = translate(packed, *options[1:], "--resume", check=False)
    assert_refused(changed, "was begun with --join-lines on, not left out")
    translate(packed, *options, "--resume")
    assert out.read_text("utf-8").splitlines() == expected


@pytest.mark.parametrize(
    "options",
    [
        ["--tsv-column", 1],
        ["--field", "text", "--into", "de"],
        ["--shard", "1/2", "--input", "x"],
        ["--prefix-column", 2],
        ["--constraints"],
    ],
    ids=lambda options: options[0],
)
def test_what_goes_by_lines_is_refused(packed, options):
    refused = translate(packed, "--join-lines", *options, stdin="x\n", check=False)
    assert_refused(refused, options[0], "goes by the lines of the input, which --join-lines")


def test_output_may_be_standard_output(packed, sources, expected, tmp_path):
    result = translate(packed, *sources, "--output", "-", cwd=tmp_path)
    assert result.stdout.splitlines() == expected and not list(tmp_path.iterdir())
    resumed = translate(packed, "x", "--output", "-", "--resume", check=False, cwd=tmp_path)
    assert_refused(resumed, "--resume needs --output and the name of a file")
