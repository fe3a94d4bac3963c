import gzip
import json
import os
import pty
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from cli.commands import PLUGIN, ROOT, assert_refused, call, refuse, run, start
from compat.written import write_checkpoint

from resmlp_mt import Translator
from resmlp_mt.compat.plugins import import_plugin

HOSTILE = [
    "",
    "   ",
    "\x01\x02",
    "\x1b[31m red",
    "\u2028",
    "😀 🇩🇪",
    "\ufffe",
    "x" * 3000,
    "\t the\tdog \t",
]


def translate(model, *options, **run_options):
    return run("resmlp-mt", "translate", "--model", model, *options, **run_options)


@pytest.fixture(scope="module")
def sources(raw):
    return (raw / "test.en").read_text().splitlines()


@pytest.fixture(scope="module")
def expected(packed, sources):
    return translate(packed, stdin="\n".join(sources) + "\n").stdout.splitlines()


def test_translations_are_those_of_fairseq_generate(trained, prepared, sources, expected):
    generate = ["fairseq-generate", prepared, *PLUGIN, "--batch-size", 7]
    generate += ["--path", trained / "checkpoint_best.pt", "--post-process", "sentencepiece"]
    output = run(*generate, "--unkpen", 1000).stdout.splitlines()
    lines = [line.split("\t") for line in output if line.startswith("D-")]
    assert len(lines) == len(sources)
    assert expected == [text for _, _, text in sorted(lines, key=lambda x: int(x[0][2:]))]


def test_arguments_files_python_and_any_batches_give_the_same(packed, raw, sources, expected):
    assert translate(packed, *sources).stdout.splitlines() == expected
    batches = ["--input", raw / "test.en", "--batch-tokens", 1, "--buffer-size", 4]
    assert translate(packed, *batches).stdout.splitlines() == expected
    assert Translator.from_pretrained(packed).translate(sources) == expected


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_lines_are_answered_as_they_come(packed, sources, expected, terminal):
    ours, theirs = pty.openpty() if terminal else os.pipe()[::-1]
    process = start("resmlp-mt", "translate", "--model", packed, stdin=theirs)
    if terminal:
        assert "Ctrl-D" in process.stdout.readline()
    answers = []
    for source in sources[:2]:
        os.write(ours, f"{source}\n".encode())
        # The next line is not written before the answer to this one has come.
        answers.append(process.stdout.readline().rstrip("\n"))
    if terminal:
        os.write(ours, b"\x04")
        assert process.stdout.read() == "" and process.wait(120) == 0
    else:
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "resmlp-mt translate: interrupted\n"
        assert process.wait(120) == 128 + signal.SIGINT
        os.close(ours)
    assert answers == expected[:2]


def test_a_buffer_of_one_line_answers_it_before_the_next_is_read(packed, sources, expected):
    lines = sources[0].encode() + b"\n\xff\n"
    result = translate(packed, "--buffer-size", 1, stdin=lines, check=False)
    assert_refused(result, "line 2: not UTF-8")
    assert result.stdout == expected[0] + "\n"


def test_scores_stand_beside_the_translations(packed, sources):
    scored = [translate(packed, "--json", text).stdout for text in sources[:3]]
    found = [json.loads(line)["translations"][0] for line in scored]
    flags = ["--field", 2, "--into", 3, "--score-into", 4]
    table = "".join(f"{i}\t{text}\n" for i, text in enumerate(sources[:3]))
    rows = [row.split("\t") for row in translate(packed, *flags, stdin=table).stdout.splitlines()]
    for i, (row, best) in enumerate(zip(rows, found, strict=True)):
        assert row[:3] == [str(i), sources[i], best["text"]]
        assert float(row[3]) == pytest.approx(best["score"], abs=2e-4)  # batches round otherwise


def test_shards_together_are_the_whole_even_if_one_is_stopped(packed, raw, sources, tmp_path):
    first, second = tmp_path / "one.en", tmp_path / "two.en.gz"
    first.write_text("\n".join(sources))
    second.write_bytes(gzip.compress((raw / "valid.en").read_bytes()))
    # Samples and the table hang on the numbers of the lines.
    options = ["--input", first, second, "--nbest", 2, "--sampling", "--buffer-size", 7]
    options += ["--prefix-column", 2]
    whole = translate(packed, *options).stdout
    parts = [translate(packed, *options, "--shard", f"{i}/3").stdout for i in (1, 3)]
    assert all(part.count("\n") in (32, 34) for part in parts)
    cut = [*options, "--shard", "2/3", "--output", tmp_path / "2", "--resume"]
    first.write_text("\n".join([*sources[:-1], "x\t\u2603"]))  # which stops it on its way
    assert_refused(translate(packed, *cut, check=False), "line 30", "stopped half way")
    first.write_text("\n".join(sources))
    moved = [*cut, "--shard", "1/3"]
    assert_refused(translate(packed, *moved, check=False), "was begun with another --shard")
    assert json.loads((tmp_path / "2.part.json").read_text())["lines"] == 7
    translate(packed, *cut)
    assert parts[0] + (tmp_path / "2").read_text("utf-8") + parts[1] == whole


def test_text_that_the_model_never_saw_is_named_once_and_marked(packed, sources, tmp_path):
    lines = "\n".join([sources[0], "你好，世界", "Привет, мир", ""])
    result = translate(packed, "--json", stdin=lines, check=False)
    shares = [json.loads(line)["unknown"] for line in result.stdout.splitlines()]
    assert shares[0] == 0 and min(shares[1:]) > 0.5
    assert result.stderr.count("standard input, line 2: the model never saw most") == 1
    assert "line 3" not in result.stderr
    assert translate(packed, "--quiet", stdin=lines, check=False).stderr == ""
    for name in "ab":
        (tmp_path / name).write_text(lines, "utf-8")
    both = translate(packed, "--input", "b", "a", "--shard", "2/2", check=False, cwd=tmp_path)
    assert "resmlp-mt translate: a, line 2: the model never saw" in both.stderr


def test_output_to_a_file_is_that_to_standard_output(packed, raw, tmp_path, expected):
    options = ["--input", raw / "test.en", "--output", tmp_path / "new" / "test.de"]
    done = translate(packed, *options)
    said = f"resmlp-mt translate: made the folder {tmp_path / 'new'}\n"
    assert (done.stdout, done.stderr) == ("", said)
    assert (tmp_path / "new" / "test.de").read_text("utf-8").splitlines() == expected
    assert len(list((tmp_path / "new").iterdir())) == 1
    assert translate(packed, *options).stderr == ""
    options[-1] = tmp_path / "other" / "test.de"
    assert translate(packed, *options, "--quiet").stderr == "" and options[-1].exists()


def find_writer(path) -> int:
    """The process that has the file open."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has ended, or is another user's
            if link.readlink() == path:
                return int(link.parts[2])
    raise AssertionError(f"nobody has {path} open")


def test_killed_and_resumed_the_output_is_the_same(packed, raw, tmp_path):
    source, target = tmp_path / "long.en", tmp_path / "long.de"
    source.write_text((raw / "test.en").read_text() * 5 + (raw / "valid.en").read_text())
    model = shutil.copytree(packed, tmp_path / "model")
    # Samples hang on the numbers of the lines, which go on where they were.
    options = ["--input", source, "--buffer-size", 7, "--nbest", 2, "--sampling"]
    command = ["resmlp-mt", "translate", "--model", model, *options]
    command += ["--output", target, "--resume"]
    state, done = tmp_path / "long.de.part.json", 0
    for end in (signal.SIGKILL, signal.SIGINT):
        process, before = start(*command), done
        # What was killed may have written a buffer more than it noted: that is no work of this one.
        while done <= before + 7:
            assert process.poll() is None
            time.sleep(0.02)
            if state.exists():
                done = json.loads(state.read_text())["lines"]
        writer = find_writer(tmp_path / "long.de.part")
        os.kill(writer, signal.SIGSTOP)  # or it may end meanwhile
        assert_refused(run(*command, check=False), "long.de.part: another run is at work on it")
        os.kill(writer, end)
        if end != signal.SIGKILL:
            os.kill(writer, signal.SIGCONT)
        said, _ = process.communicate()
    assert "long.de.part: stopped half way; the same command with --resume goes on" in said
    assert 0 < before < done < 170 and not target.exists()
    assert_refused(translate(model, *options, "--output", target, check=False), "--resume")
    with open(model / "dict.de.txt", "a") as dictionary:
        dictionary.write("\n")
    changed = translate(model, *options, "--output", target, "--resume", check=False)
    assert_refused(changed, "long.de.part was begun with another --model of SHA-256")
    shutil.copy(packed / "dict.de.txt", model)
    translate(model, *options, "--output", target, "--resume")
    assert target.read_text("utf-8") == translate(packed, *options).stdout
    again = translate(model, *options, "--output", target, "--resume", check=False)
    assert again.returncode == 0 and "long.de is finished" in again.stderr


@pytest.mark.parametrize(
    ("options", "given", "found", "said"),
    [
        ([], "a\nb\n", "A\n", "has 1 lines, and the input 2"),
        (["--shard", "2/2"], "a\nb\n", "A\nB\n", "has 2 lines, and the input 1"),
        ([], "a\nb\n", "A\nB\n", None),
        (["--shard", "2/2"], "a\nb\n", "B\n", None),
        (["--nbest", 2], "a\n", "A\nB\n", None),
    ],
)
def test_what_another_input_gave_is_not_taken_for_finished(options, given, found, said, tmp_path):
    (tmp_path / "x.en").write_text(given)
    (tmp_path / "x.de").write_text(found)
    files = ["--input", tmp_path / "x.en", "--output", tmp_path / "x.de", "--resume", *options]
    command = ["translate", "--model", "multi30k-en-de", *map(str, files)]
    if said:
        assert said in refuse(*command)
    else:
        call(*command)
    assert (tmp_path / "x.de").read_text() == found


def test_an_output_that_cannot_be_or_is_the_input_is_refused_first(raw, tmp_path):
    (source := tmp_path / "x.en").write_text("A dog.\n")
    (terms := tmp_path / "terms.tsv").write_text("dog\tHund\n")
    command = ["translate", "--model", "multi30k-en-de", "--input", source, "--glossary", terms]
    for output in (tmp_path, source, terms, "/proc/x"):
        assert refuse(*command, "--output", output).startswith(f"{output}: ")
    assert sorted(tmp_path.iterdir()) == sorted([source, terms])
    assert (source.read_text(), terms.read_text()) == ("A dog.\n", "dog\tHund\n")
    full = run("resmlp-mt", *command, "--output", "/dev/full", check=False)
    assert_refused(full, "/dev/full: No space left on device")


def test_a_part_goes_on_with_the_glossary_that_a_pipe_gave_it(tmp_path):
    (tmp_path / "x.en").write_bytes(b"A dog.\n\xff\n")
    command = ["resmlp-mt", "translate", "--model", "multi30k-en-de", "--buffer-size", 1]
    command += ["--input", "x.en", "--output", "x.de", "--resume", "--glossary"]
    process = start(*command, "/dev/stdin", stdin=subprocess.PIPE, cwd=tmp_path)
    assert "x.en, line 2: not UTF-8" in process.communicate("dog\tHund\n")[0]
    (terms := tmp_path / "terms.tsv").write_text("dog\tKatze\n")
    assert_refused(run(*command, terms, cwd=tmp_path, check=False), "begun with another --glossary")


def test_hostile_lines_keep_their_places(packed, sources, expected):
    places = sorted(random.Random(1).sample(range(len(sources)), len(HOSTILE)))
    lines, answers = list(sources), list(expected)
    for place, hostile in zip(places, HOSTILE, strict=True):
        lines.insert(place, hostile)
        answers.insert(place, None)
    lines.append(" ".join(random.Random(2).choices(" ".join(sources).split(), k=5000)))
    answers.append(None)
    output = translate(packed, stdin="\n".join(lines) + "\n").stdout.split("\n")[:-1]
    assert len(output) == len(lines)
    assert [o for o, a in zip(output, answers, strict=True) if a is not None] == expected
    blank = [lines.index(text) for text in HOSTILE[:3]]
    assert [output[i] for i in blank] == ["", "", ""]


def test_a_model_of_another_plugin_is_translated_with_that(prepared, tmp_path):
    plugin, model = ROOT / "examples/ablation/variants", tmp_path / "model.pt"
    import_plugin(plugin)
    flags = ["--arch", "resmlp_plus_tiny_variant", "--gate", "sigmoid", "--encoder-layers", 1]
    write_checkpoint(model, "--user-dir", plugin, *flags, "--decoder-layers", 1, data=prepared)
    said = translate(model, "--user-dir", plugin, stdin="a man\n\n").stdout
    assert said.splitlines()[1:] == [""]
    for flags, said in ([], "resmlp_plus_tiny_variant"), (["--user-dir", tmp_path], "--user-dir"):
        assert_refused(translate(model, *flags, stdin="a man\n", check=False), said)


def test_a_line_is_its_sentences_joined(packed, trained, prepared, sources, expected, tmp_path):
    line = "  ".join(sources)
    for model in (packed, trained):  # the one has a note of its data, the other finds it there
        assert translate(model, line).stdout == "  ".join(expected) + "\n"
    short = " ".join(sources[:2])
    alone = " ".join(expected[:2]) + "\n"
    assert translate(packed, short).stdout == alone
    assert translate(packed, short, "--no-split-sentences").stdout != alone
    # Without a note lines stay whole, as in fairseq.
    bare = shutil.copytree(packed, tmp_path / "bare")
    (bare / "text.json").unlink()
    assert translate(bare, short).stdout != alone
    assert translate(bare, short, "--split-sentences").stdout == alone
    for broken in ('{"split_sentences": "no"}', '{"split_sentences": true, "usual_length": 0}'):
        (bare / "text.json").write_text(broken)
        assert_refused(translate(bare, short, check=False), "text.json: broken")


def test_nbest_and_json_agree_and_are_sorted(packed, sources, expected):
    options = ["--nbest", 3, "--beam", 5]
    table = translate(packed, *options, *sources).stdout.splitlines()
    rows = [line.split("\t") for line in table]
    entries = [
        json.loads(line)
        for line in translate(packed, *options, "--json", *sources).stdout.splitlines()
    ]
    assert [entry["source"] for entry in entries] == sources
    flat = [(i, t) for i, e in enumerate(entries, 1) for t in e["translations"]]
    assert [(int(n), float(s), text) for n, s, text in rows] == [
        (i, t["score"], t["text"]) for i, t in flat
    ]
    for entry, best in zip(entries, expected, strict=True):
        scores = [t["score"] for t in entry["translations"]]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        assert entry["translations"][0]["text"] == best


def test_a_packed_model_can_be_moved_and_half_is_half_the_size(
    trained, packed, sources, expected, tmp_path
):
    elsewhere = shutil.copytree(packed, tmp_path / "elsewhere")
    assert translate(elsewhere, *sources, cwd=tmp_path).stdout.splitlines() == expected
    run("resmlp-mt", "pack", trained, "--half", "--out", tmp_path / "half")
    weights = [
        torch.load(p / "model.pt", weights_only=True)["model"] for p in (packed, tmp_path / "half")
    ]
    assert all(w.dtype == torch.float16 for w in weights[1].values())
    parameters = sum(p.numel() for p in {w.data_ptr(): w for w in weights[1].values()}.values())
    assert (tmp_path / "half" / "model.pt").stat().st_size < 2 * parameters + 60_000  # tied once
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor.half(), weights[1][name], rtol=0, atol=0)
    assert translate(tmp_path / "half", *sources).stdout


def test_the_reader_of_the_output_may_leave(packed, sources):
    lines = "\n".join(sources * 20)
    command = f"resmlp-mt translate --model {packed} --beam 1 --buffer-size 5"
    script = f"{command} | head -n 1; exit ${{PIPESTATUS[0]}}"
    result = run("bash", "-c", script, stdin=lines, check=False)
    assert result.returncode == 128 + signal.SIGPIPE and result.stderr == ""


def write(name: str, data: bytes):
    return lambda folder: (folder / name).write_bytes(data)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda folder: (folder / "model.pt").unlink(), "no checkpoint in this folder"),
        (lambda folder: (folder / "spm.model").unlink(), "must lie beside the checkpoint"),
        (write("model.pt", b"To whom it may concern"), "not a checkpoint"),
        (write("spm.model", b"no model"), "spm.model is another one"),
    ],
)
def test_a_broken_model_is_refused(packed, tmp_path, break_it, said):
    folder = shutil.copytree(packed, tmp_path / "model")
    break_it(folder)
    refused = refuse("translate", "--model", folder, "The dog sleeps.")
    assert str(folder) in refused and said in refused
