"""From a teacher to a student: real teachers, real processes, a toy of everything."""

import http.server
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from cli.commands import ENVIRONMENT, RECIPE, ROOT, SIZES, assert_refused, load, run, words

from examples.student.teachers import make_teacher
from resmlp_mt import Translator
from resmlp_mt.errors import UserError

SCRIPT = ROOT / "examples" / "student" / "run.py"


def translate(teacher, lines, first=1):
    return list(teacher.translate(lines, first))


@pytest.fixture(scope="module")
def transformer(prepared, tmp_path_factory):
    """A checkpoint of fairseq's Transformer."""
    out = tmp_path_factory.mktemp("transformer")
    sizes = [s for s in SIZES if "mixing" not in s and s != "4"]
    train = ["fairseq-train", prepared, "--arch", "transformer", *sizes, *RECIPE]
    train += ["--encoder-attention-heads", 2, "--max-update", 40, "--save-dir", out]
    run(*train, "--no-epoch-checkpoints")
    return out / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def converted(transformer, prepared, tmp_path_factory):
    """The same as a folder of CTranslate2."""
    pytest.importorskip("ctranslate2", reason="the extra [benchmark] is not installed")
    out = tmp_path_factory.mktemp("converted") / "model"
    command = ["ct2-fairseq-converter", "--model_path", transformer, "--data_dir", prepared]
    command += ["--user_dir", ROOT / "resmlp_mt", "--output_dir", out]
    run(*command, "--source_lang", "en", "--target_lang", "de")
    shutil.copy(prepared / "spm.model", out)
    return out


@pytest.fixture
def lines(raw):
    return [*(raw / "test.en").read_text().splitlines(), "", "A dog."]


def test_ctranslate2_teaches_and_judges_as_fairseq_does_but_for_rounding(
    transformer, converted, lines, raw
):
    most = 40  # what comes so far ends there
    fairseq = make_teacher("checkpoint", models=[str(transformer)], beam=1, max_len_b=most)
    other = make_teacher("ctranslate2", model=str(converted), beam=1, max_decoding_length=most)
    pairs = list(zip(translate(fairseq, lines), translate(other, lines), strict=True))
    assert sum(a == b == [] for a, b in pairs) == 1
    same = sum(a[0][0] == b[0][0] for a, b in pairs if a)
    assert same >= len(lines) - 1 - 2  # two subwords may be as likely, and a sum rounds
    references = (raw / "test.de").read_text().splitlines()
    given = list(zip(lines, references, strict=False))
    assert list(other.score(given)) == pytest.approx(list(fairseq.score(given)), rel=1e-4)


def learn_subwords(text: str, size: int, out: Path) -> None:
    model, lines = io.BytesIO(), iter(text.splitlines())
    learn = sentencepiece.SentencePieceTrainer.train
    learn(sentence_iterator=lines, model_writer=model, vocab_size=size, minloglevel=2)
    out.write_bytes(model.getvalue())


def write_marian(folder: Path, tags: list[str], text: str) -> None:
    """The files of OPUS-MT, with random weights: Marian's, SentencePiece models, a vocabulary."""
    folder.mkdir()
    for side in ("source", "target"):
        learn_subwords(text, 120, folder / f"{side}.spm")
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    pieces = [model.id_to_piece(i) for i in range(3, len(model))]
    symbols = ["</s>", "<unk>", "<s>", *tags, *pieces]
    entries = (f"{json.dumps(s, ensure_ascii=False)}: {i}\n" for i, s in enumerate(symbols))
    (folder / "vocab.yml").write_text("".join(entries))
    (folder / "decoder.yml").write_text("models: [model.npz]\nvocabs: [vocab.yml, vocab.yml]\n")
    draw, width, hidden = np.random.default_rng(1), 8, 16
    weights = {"Wemb": (len(symbols), width), "decoder_ff_logit_out_b": (1, len(symbols))}
    for layer, *attentions in (("encoder_l1", "self"), ("decoder_l1", "self", "context")):
        for name in attentions:
            weights |= {f"{layer}_{name}_W{part}": (width, width) for part in "qkvo"}
            weights |= {f"{layer}_{name}_b{part}": (1, width) for part in "qkvo"}
        for name in (*(f"{name}_Wo" for name in attentions), "ffn_ffn"):
            weights |= {f"{layer}_{name}_ln_{part}": (1, width) for part in ("scale", "bias")}
        weights |= {f"{layer}_ffn_W1": (width, hidden), f"{layer}_ffn_b1": (1, hidden)}
        weights |= {f"{layer}_ffn_W2": (hidden, width), f"{layer}_ffn_b2": (1, width)}
    settings = {
        "type": "transformer", "enc-depth": 1, "dec-depth": 1, "transformer-heads": 2,
        "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
        "transformer-ffn-activation": "relu", "transformer-preprocess": "",
        "transformer-postprocess": "dan", "transformer-postprocess-emb": "d",
        "transformer-guided-alignment-layer": "last", "tied-embeddings-all": True,
        "tied-embeddings": False, "tied-embeddings-src": False, "transformer-train-position": False,
    }  # fmt: skip
    arrays = {name: draw.normal(0, 0.3, s).astype(np.float32) for name, s in weights.items()}
    told = (json.dumps(settings) + "\0").encode()
    arrays["special:model.yml"] = np.frombuffer(told, np.int8)
    np.savez(folder / "model.npz", **arrays)


def test_opus_mt_after_its_converter_is_a_teacher(raw, lines, tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra [benchmark] is not installed")
    write_marian(tmp_path / "opus", [">>deu<<", ">>nld<<"], (raw / "train.en").read_text())
    out = tmp_path / "model"
    run("ct2-opus-mt-converter", "--model_dir", tmp_path / "opus", "--output_dir", out)
    for side in ("source", "target"):
        shutil.copy(tmp_path / "opus" / f"{side}.spm", out)
    by_tag = [
        translate(make_teacher("ctranslate2", model=str(out), source_prefix=[tag]), lines[:5])
        for tag in (">>deu<<", ">>nld<<")
    ]
    assert by_tag[0] != by_tag[1]  # the tag is read
    with pytest.raises(UserError, match=">>fra<<.*>>deu<<"):
        make_teacher("ctranslate2", model=str(out), source_prefix=[">>fra<<"])
    # Other converters leave the end of the sentence to whoever asks.
    config = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(config | {"add_source_eos": False}))
    teacher = make_teacher("ctranslate2", model=str(out), source_prefix=[">>deu<<"])
    assert translate(teacher, lines[:5]) == by_tag[0]


PLUGIN = """
from fairseq.models import register_model_architecture
from fairseq.models.transformer import base_architecture
register_model_architecture("transformer", "toy_of_a_plugin")(base_architecture)
"""


def test_fairseq_checkpoints_of_plugins_and_exports_teach_together(
    trained, prepared, lines, tmp_path
):
    plugin = tmp_path / "plugin_of_test_student"
    plugin.mkdir()
    (plugin / "__init__.py").write_text(PLUGIN)
    sizes = [s for s in SIZES if "mixing" not in s and s != "4"]
    train = ["fairseq-train", prepared, "--user-dir", plugin, "--arch", "toy_of_a_plugin"]
    train += [*sizes, *RECIPE, "--encoder-attention-heads", 2, "--max-update", 1]
    run(*train, "--save-dir", tmp_path / "toy", "--no-epoch-checkpoints")
    toy, ours = str(tmp_path / "toy" / "checkpoint_last.pt"), str(trained / "checkpoint_best.pt")
    run("resmlp-mt", "export", trained, "--out", tmp_path / "exported")
    found, expected = (
        translate(make_teacher("checkpoint", models=[str(model)], nbest=2), lines[:6])
        for model in (tmp_path / "exported", ours)
    )
    texts = [[[text for text, _ in best] for best in each] for each in (found, expected)]
    assert texts[0] == texts[1]
    several = {"models": [ours, toy], "user_dir": str(plugin), "max_len_b": 20}
    together = translate(make_teacher("checkpoint", **several), lines[:6])
    options = {"max_len_b": 20, "recase": False}
    expected = Translator.from_pretrained([ours, toy]).translate(lines[:6], **options)
    assert [best[0][0] for best in together] == expected


class Answers(http.server.BaseHTTPRequestHandler):
    """A server that is busy, broken and away before it answers."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        kind = self.server.plan.pop(0) if self.server.plan else "answer"
        if kind == "away":
            return self.connection.close()
        body = {"translatedText": asked["q"][kind == "short" :]}
        body["alternatives"] = [[text.upper()] for text in body["translatedText"]]
        self.send_response({"busy": 429, "broken": 503, "refusal": 400}.get(kind, 200))
        if kind == "busy":
            self.send_header("Retry-After", "0")
        self.end_headers()
        body = {"error": "too long"} if kind == "refusal" else body
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *said):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as served:
        served.asked, served.plan = [], []
        threading.Thread(target=served.serve_forever, daemon=True).start()
        served.url = f"http://127.0.0.1:{served.server_port}"
        yield served
        served.shutdown()


def test_a_server_is_asked_again_until_it_answers(server):
    server.plan = ["busy", "answer", "away", "broken"]
    ask = dict(kind="libretranslate", url=server.url, source="en", target="de", nbest=2, lines=2)
    found = translate(make_teacher(**ask, key="k"), ["a", "", "b", "c"])
    assert found == [[(x, None), (x.upper(), None)] if x else [] for x in ("a", "", "b", "c")]
    assert [asked["q"] for asked in server.asked] == [["a"], ["a"], *[["b", "c"]] * 3]
    assert server.asked[0] | {"q": 0} == {
        "q": 0, "source": "en", "target": "de", "format": "text", "alternatives": 1, "api_key": "k"
    }  # fmt: skip
    for plan, said in ((["refusal"], "400, too long"), (["short"], "not a translation")):
        server.plan = plan
        with pytest.raises(UserError, match=said):
            translate(make_teacher(**ask), ["a", "b"])
    server.plan = ["broken"]
    with pytest.raises(UserError, match="no answer in 0.1 seconds .503"):
        translate(make_teacher(**ask, patience=0.1), ["a"])


# Answers in capitals, and notes what it was asked; it ends at the line "end" once.
UPPER = """
import os, sys
for line in sys.stdin:
    line = line.rstrip()
    if line == "end" and not os.path.exists("ended"):
        open("ended", "w")
        sys.exit(3)
    with open("asked", "a") as asked:
        asked.write(line + "\\n")
    print("" if line == "nothing" else line.upper() + "\\t" + line.upper(), flush=True)
"""


def text_of(lines) -> str:
    return "".join(f"{line}\n" for line in lines)


def write_run(folder: Path, lines: list[str], more: str = "", **tables: str) -> list:
    """A configuration in a folder; returns the command."""
    (folder / "text.en").write_text(text_of(lines))
    (folder / "upper.py").write_text(UPPER)
    teacher = f'kind = "program"\ncommand = ["{sys.executable}", "upper.py"]'
    tables = {"teacher": teacher, "teach": 'nbest = 2\n[[teach.text]]\nsource = "text.en"'} | tables
    text = 'out = "run"\nlangs = ["en", "de"]\nrows = 5\n' + more
    text += "".join(f"[{name}]\n{table}\n" for name, table in tables.items())
    (folder / "run.toml").write_text(text)
    return ["python", SCRIPT, "run.toml"]


def test_a_teacher_that_ends_goes_on_where_it_ended(tmp_path):
    lines = ["a", "b", "", "c", "d", "e", "nothing", "end", "f", "g", "h", "i"]
    command = write_run(tmp_path, lines)
    stopped = run(*command, cwd=tmp_path, check=False)
    assert_refused(stopped, "0.given.jsonl, line 7: ", "status 3 after 1 lines of 5")
    assert run(*command, cwd=tmp_path).stdout.endswith("\n")
    asked = (tmp_path / "asked").read_text().split("\n")[:-1]
    assert sorted(asked) == sorted(filter(None, lines))  # nothing twice, nothing lost
    taught = [(tmp_path / "run/teach" / f"taught.{lang}").read_text() for lang in ("en", "de")]
    full = [line for line in lines if line not in ("", "nothing")]
    assert taught == [
        "".join(f"{line}\n" for line in full),
        "".join(f"{x.upper()}\n" for x in full),
    ]
    report = json.loads((tmp_path / "run/teach/step.json").read_text())["report"]
    assert report["empty"] == 1 and report["doubled"] == 10 and report["taught"] == 10
    assert "done before" in run(*command, cwd=tmp_path).stdout
    (tmp_path / "text.en").write_text("other\n")
    assert_refused(run(*command, cwd=tmp_path, check=False), "run/teach was begun")


def test_processes_that_are_killed_lose_and_repeat_nothing(tmp_path):
    """Two workers; the run is killed as soon as there are some answers."""
    lines = [f"line {i}" for i in range(400)]
    command = write_run(tmp_path, lines, "workers = 2\n")
    process = subprocess.Popen(words(command, own=False), cwd=tmp_path, env=ENVIRONMENT)
    while process.poll() is None and not (tmp_path / "asked").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while "at work" in (done := run(*command, cwd=tmp_path, check=False)).stderr:
        time.sleep(0.1)  # its workers see that it has ended, and end
    assert done.returncode == 0, done.stderr
    taught = (tmp_path / "run/teach/taught.de").read_text()
    assert taught == text_of(map(str.upper, lines))


def test_rays_actors_make_what_processes_make(tmp_path):
    pytest.importorskip("ray.data", reason="the extra [ray] is not installed")
    lines = list("abcdefghij")
    command = write_run(tmp_path, lines, 'ray = "local"\n')
    # Its actors work in folders of their own.
    text = (tmp_path / "run.toml").read_text().replace("upper.py", str(tmp_path / "upper.py"))
    (tmp_path / "run.toml").write_text(text)
    done = run(*command, cwd=tmp_path, env={"RAY_USAGE_STATS_ENABLED": "0"}, own=True, check=False)
    if "timed out during startup" in done.stderr:
        pytest.skip("Ray did not start on this machine")
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "run/teach/taught.de").read_text() == text_of(map(str.upper, lines))


def read_pairs(prefix: Path) -> list[tuple[str, str]]:
    sides = (prefix.with_suffix(f".{lang}").read_text().splitlines() for lang in ("en", "de"))
    return list(zip(*sides, strict=True))


def test_the_best_are_those_nearest_to_the_reference(tmp_path):
    (tmp_path / "text.de").write_text("der hund\nkatze\n\n")
    three = r"printf 'katze\tder hundd\tder hund\n%.0s' 1 2 3"
    (tmp_path / "three.sh").write_text(three)
    teach = 'nbest = 3\nbest = "chrf"\nkeep = 2\nreferences = true\n[[teach.text]]\n'
    teach += 'source = "text.en"\ntarget = "text.de"'
    teacher = 'kind = "program"\nnbest = 3\ncommand = ["sh", "three.sh"]'
    command = write_run(tmp_path, ["one", "two", "three"], teach=teach, teacher=teacher)
    run(*command, cwd=tmp_path)
    assert read_pairs(tmp_path / "run/teach/taught") == [
        ("one", "der hund"), ("one", "der hundd"),
        ("two", "katze"), ("two", "der hund"),
        ("three", "katze"), ("three", "der hundd"),
    ]  # fmt: skip


def test_clean_drops_what_filters_find_and_what_the_judge_doubts(raw, tmp_path):
    lines = (raw / "train.en").read_text().splitlines()[:40]
    clean = 'drop = 0.25\njudge = {kind = "checkpoint", models = ["en-de"]}'
    run(*write_run(tmp_path, [*lines, lines[0]], clean=clean), cwd=tmp_path)
    folder = tmp_path / "run" / "clean"
    report = json.loads((folder / "step.json").read_text())["report"]
    pairs = read_pairs(tmp_path / "run/teach/taught")[:-1]
    assert report["pairs"] == 41 and report["kept"] == 30
    assert report["dropped"]["the same pair came before"] == 1
    assert report["dropped"]["unlikely by the judge"] == 10
    for lang, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (tmp_path / lang).write_text(text_of(side))
    command = ["resmlp-mt", "score", tmp_path / "en", "--source", tmp_path / "de", "--per-subword"]
    nats = list(map(float, run(*command, "--model", "en-de").stdout.split()))
    ranks = np.argsort(np.argsort(nats, kind="stable"))
    assert read_pairs(folder / "clean") == [p for p, r in zip(pairs, ranks, strict=True) if r < 30]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"clean": "drops = 0.1"}, "drops"),
        ({"teach": 'best = "chrf"'}, "text"),
        ({"teacher": 'kind = "parrot"'}, "parrot"),
        ({"teacher": 'kind = "program"\ncommand = ["not-there"]'}, "not-there"),
        ({"clean": 'filters = ["$NOT_THERE"]'}, "NOT_THERE"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(tables, said, tmp_path):
    command = write_run(tmp_path, ["a"], **tables)
    assert_refused(run(*command, cwd=tmp_path, check=False), said)


def test_the_page_leads_from_download_to_translation(raw, tmp_path):
    """All its commands, with random weights for the teachers and a student of a few updates."""
    pytest.importorskip("ctranslate2", reason="the extra [benchmark] is not installed")
    page = (ROOT / "docs" / "student.md").read_text(encoding="utf-8")
    download, happen = re.findall(r"```bash\n(.*?)```", page, re.S)
    (table,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    for name, lang in (("teacher", "en"), ("judge", "de")):
        write_marian(tmp_path / name, [], (raw / f"train.{lang}").read_text())
        shutil.make_archive(tmp_path / f"{name}-archive", "zip", tmp_path / name)
        (tmp_path / name).rename(tmp_path / f"{name}-made")
    for direction, name in (("en-de", "teacher"), ("de-en", "judge")):
        url = f"https://object.pouta.csc.fi/OPUS-MT-models/{direction}/opus-2020-02-26.zip"
        assert url in download
        download = download.replace(url, (tmp_path / f"{name}-archive.zip").as_uri())
    for lang in ("en", "de"):
        lines = (raw / f"train.{lang}").read_text().splitlines(keepends=True)
        (tmp_path / f"text.{lang}").write_text("".join(lines[:80]))
        (tmp_path / f"valid.{lang}").write_text("".join(lines[80:90]))
        shutil.copy(raw / f"test.{lang}", tmp_path)
    small = f"resmlp_plus_student_small {' '.join(SIZES[:-4])}"  # but for positions
    shorter = {
        "resmlp_plus_student_small": small, "8000": "220",
        # Random weights say the same again and again.
        ', "duplicates", "repetitive", "wrong_language"': "",
        'model = "teacher"': 'model = "teacher"\nmax_decoding_length = 20',
        "updates = 50000": "updates = 2",
        # It ends within an epoch, of about four updates.
        "updates = 1000": "updates = 7", "--warmup-updates 100": "--max-tokens 1000",
        "tests = {mine": "rounds = 1\nlines = 2\ntests = {mine",
    }  # fmt: skip
    for written, short in shorter.items():
        assert written in table
        table = table.replace(written, short)
    (tmp_path / "student.toml").write_text(table)
    script = download + happen.replace("examples/student/run.py", str(SCRIPT))
    run("bash", "-euo", "pipefail", "-c", script, cwd=tmp_path)
    report = json.loads((tmp_path / "student/ship/step.json").read_text())["report"]
    assert [row["system"] for row in report["scores"]["mine"]] == ["teacher", "student-1"]
    assert {row["lines"] for row in report["race"]} == {"together", "alone"}
    assert all(row["sentences a second"] > 0 < row["memory in MiB"] for row in report["race"])
    assert report["mib"]["student-1"] > 0
    # The end of the training was taken, not that of an epoch.
    folder = tmp_path / "student/round/student-1"
    (epoch,) = folder.glob("checkpoint[0-9]*.pt")
    paths = folder / "model.pt", folder / "checkpoint_last.pt", epoch
    model, last, before = (load(path)["model"] for path in paths)
    assert all(torch.equal(weight, last[name]) for name, weight in model.items())
    assert not all(torch.equal(weight, before[name]) for name, weight in model.items())
    # In a race with a model that ships with the package.
    shutil.rmtree(tmp_path / "student/ship")
    shipped = 'teacher = {kind = "checkpoint", models = ["en-de"]}'
    (tmp_path / "student.toml").write_text(table.replace("shortlist = true", shipped))
    run("python", SCRIPT, "student.toml", "ship", cwd=tmp_path)
    report = json.loads((tmp_path / "student/ship/step.json").read_text())["report"]
    systems = [row["system"] for row in report["scores"]["mine"]]
    assert systems == ["teacher", "raced teacher", "student-1"]
    run("resmlp-mt", "export", "en-de", "--int8", "--out", tmp_path / "exported")
    size = sum(file.stat().st_size for file in (tmp_path / "exported").iterdir()) / 2**20
    assert report["mib"]["raced teacher"] == pytest.approx(size, abs=0.02)
