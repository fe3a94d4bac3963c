"""The recipes of examples/iwslt14 and examples/wmt14, on small archives of the real form."""

import csv
import gzip
import http.server
import importlib.util
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from html import escape
from pathlib import Path

import pytest
import sacrebleu
import sentencepiece
import torch
from cli.commands import assert_refused
from cli.commands import run as run_command
from cli.zygote import find_commands
from fairseq import optim, options
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import FP16Optimizer, lr_scheduler
from torch.distributed.run import parse_args

import resmlp_mt.models  # noqa: F401  (registers the presets)
from resmlp_mt.cli.parser import build_parser
from resmlp_mt.models.presets import PRESETS
from resmlp_mt.nn.marks import mark_maps

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"

# Subject, verb, object: as many words on each side, so that no pair is an outlier.
WORDS = {
    "en": ("My friend|The doctor|Our teacher|A child", "reads|finds|wants|keeps|sees",
           "the book|a letter|this house|the answer|no reason|her garden"),
    "de": ("Mein Freund|Die Ärztin|Unsere Lehrerin|Ein Kind", "liest|findet|will|behält|sieht",
           "das Buch|einen Brief|dieses Haus|die Antwort|keinen Grund|ihren Garten"),
    "fr": ("Mon ami|La docteure|Notre professeure|Un enfant", "lit|trouve|veut|garde|voit",
           "le livre|une lettre|cette maison|la réponse|aucune raison|son jardin"),
}  # fmt: skip


def sentences(lang):
    subjects, verbs, objects = (words.split("|") for words in WORDS[lang])
    return [f"{s} {v} {o}." for s in subjects for v in verbs for o in objects]


def pairs(source, target):
    return list(zip(sentences(source), sentences(target), strict=True))


def pack(path, files):
    mode = "w:gz" if path.suffix == ".tgz" else "w"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder, parts of files too; breaks off after `limit` bytes of an answer."""

    limit, resumes = None, True

    def __init__(self, folder):
        self.folder, self.requests = folder, []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        wanted = self.headers.get("Range")
        self.server.requests.append((self.path, wanted))
        wanted = wanted if self.server.resumes else None
        path = self.server.folder / self.path.lstrip("/")
        if not path.is_file():
            return self.send_error(404)
        data = path.read_bytes()
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if wanted and start >= len(data):
            return self.send_error(416)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:][: self.server.limit])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    with Server(folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run(*command, **variables):
    """Run a command of the examples with this Python and this package."""
    path = f"{variables.pop('PATH', Path(sys.executable).parent)}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "no_proxy": "127.0.0.1"}
    environment |= {name: str(value) for name, value in variables.items()}
    command = [str(word) for word in command]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=ROOT, timeout=1800
    )


def script(path, body):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(0o755)


@pytest.fixture
def commands():
    """What PATH begins with, for the real commands of the package."""
    return f"{find_commands()}:{Path(sys.executable).parent}"


@pytest.fixture
def recorder(tmp_path):
    """recorder(script, *arguments): the commands that it gives, none of them run."""
    record = tmp_path / "record"
    body = f"""import json, os, sys
name = os.path.basename(sys.argv[0])
words = [name] * (name == "torchrun") + sys.argv[1:]
with open({str(record)!r}, "a") as file:
    file.write(json.dumps([os.getppid(), words]) + "\\n")
"""
    for name in ("resmlp-mt", "python", "torchrun"):
        script(tmp_path / "stub" / name, body)

    def call(name, *arguments, **variables):
        record.write_text("")
        variables |= {"PATH": tmp_path / "stub", "OUT": tmp_path / "out"}
        done = run("bash", EXAMPLES / name, *arguments, **variables)
        assert done.returncode == 0, done.stderr
        parents, commands = zip(*map(json.loads, record.read_text().splitlines()), strict=True)
        # In place of the script: a signal to it would else leave the training running.
        assert not name.endswith("/train.sh") or parents[-1] == os.getpid()
        return list(commands)

    return call


def load(path):
    specification = importlib.util.spec_from_file_location("_".join(path.parts[-2:])[:-3], path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def call(module, *arguments):
    """The status of a script's main(), in this process."""
    program, sys.argv = sys.argv, [module.__file__, *map(str, arguments)]
    try:
        return module.main()
    finally:
        sys.argv = program


def binarized(folder, split, source, target, lang):
    """The text of a binarized split, read with fairseq and SentencePiece alone."""
    words = Dictionary.load(str(folder / f"dict.{lang}.txt"))
    prefix = str(folder / f"{split}.{source}-{target}.{lang}")
    data = data_utils.load_indexed_dataset(prefix, words)
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    return [model.decode([words[i] for i in line[:-1].tolist()]) for line in data]


# IWSLT14

TALK = [
    ("<url>http://www.ted.com/talks/x.html</url>",) * 2,
    ("<keywords>talks, science</keywords>",) * 2,
    ("<speaker>Jane Doe</speaker>",) * 2,
    ("<talkid>7</talkid>",) * 2,
]
TITLES = [
    ("Jane Doe: Bücher & Gärten", "Jane Doe: Books & gardens"),
    ("Eine Rede über Gärten.", "A talk about gardens."),
]
# Words as anyone counts them who takes a full stop for one.
KEPT = [
    (" ".join(["Ja"] * 175), " ".join(["Yes"] * 175)),
    ("Ja doch .", "Yes ."),  # 3 : 2 is not too much
]
DROPPED = [
    ("", "Nothing ."),
    ("Nichts .", " "),
    (" ".join(["Ja"] * 176), " ".join(["Yes"] * 176)),
    ("Ja doch aber nein .", "Yes no ."),  # 5 : 3 is
    ("Nein .", "No , that is not true at all ."),
]
SETS = "TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"


def segments(lines, head=""):
    body = "\n".join(
        f'<seg id="{number}"> {escape(line, quote=False)} </seg>'
        for number, line in enumerate(lines, 1)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<doc docid="1">\n{head}{body}\n</doc>\n'


def iwslt14(path):
    """Write an archive; returns its pairs that are to be kept, and those of the test set."""
    body = pairs("de", "en")
    first, second = body[:60], body[60:]
    title, description = TITLES
    about = [
        tuple(f"<title>{text}</title>" for text in title),
        tuple(f"<description>{text}</description>" for text in description),
    ]
    talks = [*TALK, *about, *first, *DROPPED, *KEPT, *TALK, *second]
    test = [
        (f"Das ist „{name}“ & mehr, nicht\u00a0wahr?", f"This is “{name}” & more, isn’t it <no>?")
        for name in SETS
        for _ in range(2)
    ]
    files = {"de-en/README": "The terms.", "de-en/train.en": "A decoy.\n"}
    for side, lang in enumerate(("de", "en")):
        files[f"de-en/train.tags.de-en.{lang}"] = "".join(f"{pair[side]}\n" for pair in talks)
        for number, name in enumerate(SETS):
            lines = [pair[side] for pair in test[2 * number : 2 * number + 2]]
            text = segments(lines, head="<title>No sentence</title>\n<talkid>7</talkid>\n")
            files[f"de-en/IWSLT14.{name}.de-en.{lang}.xml"] = text
    pack(path, files)
    return [*TITLES, *first, *KEPT, *second], test


def test_iwslt14_is_cleaned_and_split_as_in_the_literature(tmp_path, server, commands):
    kept, test = iwslt14(server.folder / "de-en.tgz")
    checksums = tmp_path / "checksums"
    checksums.write_text(f"size {(server.folder / 'de-en.tgz').stat().st_size} de-en.tgz\n")
    out = tmp_path / "bin-data"
    flags = ["--raw", tmp_path / "raw", "--base-url", server.url, "--checksums", checksums]
    flags += ["--vocab-size", 150, "--workers", 1]
    done = run("bash", EXAMPLES / "iwslt14/prepare.sh", *flags, PATH=commands, DATA=out)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {"train": [], "valid": [], "test": test}
    for number, pair in enumerate(kept):
        expected["valid" if number in (22, 45, 68, 91, 114) else "train"].append(pair)
    assert (len(kept), len(expected["valid"])) == (124, 5)
    for side, lang in enumerate(("de", "en")):
        for split, lines in expected.items():
            lines = [pair[side] for pair in lines]
            text = tmp_path / "raw" / "text" / f"{split}.{lang}"
            assert text.read_text("utf-8").split("\n") == [*lines, ""]
            if split == "test":
                assert (out / "raw" / f"test.{lang}").read_text("utf-8") == text.read_text("utf-8")
            else:
                assert binarized(out, split, "de", "en", lang) == lines
    assert f"{len(kept) + len(DROPPED):,} pairs, {len(kept):,} after cleaning" in done.stdout


# WMT14

NEWS = ["The fire brigade’s well-known house & garden.", "No\u00a0one knows <why>.", "It is 5 < 6."]
TRAINING = {
    "wmt13/training-parallel-europarl-v7.tgz": "training/europarl-v7.{lang}-en.{side}",
    "wmt13/training-parallel-commoncrawl.tgz": "commoncrawl.{lang}-en.{side}",
    "wmt13/training-parallel-un.tgz": "un/undoc.2000.{lang}-en.{side}",
    "wmt14/training-parallel-nc-v9.tgz": "training/news-commentary-v9.{lang}-en.{side}",
    "wmt10/training-giga-fren.tar": "giga-fren.release2.fixed.{side}.gz",
}
FOR_FRENCH = "wmt13/training-parallel-un.tgz", "wmt10/training-giga-fren.tar"


def wmt14(folder, lang):
    """Write the archives; returns the training pairs in the order of the corpora."""
    body, trained = pairs("en", lang), []
    for number, (path, name) in enumerate(TRAINING.items()):
        if lang == "de" and path in FOR_FRENCH:
            continue
        corpus = body[number * 24 : number * 24 + 24]
        files = {"training/europarl-v7.cs-en.en": "Another pair of languages.\n"}
        for side, code in enumerate(("en", lang)):
            # No line end at the end: the next corpus must not go on in that line.
            text = "\n".join(pair[side] for pair in corpus).encode()
            member = name.format(lang=lang, side=code)
            files[member] = gzip.compress(text) if member.endswith(".gz") else text
        pack(folder / path, files)
        trained += corpus
    for path, template, role in (
        ("wmt13/test.tgz", "test/newstest2013-{role}.{side}.sgm", "src"),
        ("wmt14/test-full.tgz", "test-full/newstest2014-" + lang + "en-{role}.{side}.sgm", "ref"),
    ):
        names = [template.format(role=r, side=s) for r, s in (("src", "en"), (role, lang))]
        decoy = {template.format(role="src", side="cs"): segments(["No."])}
        pack(folder / path, decoy | {name: segments([*NEWS, name]) for name in names})
    return trained


def test_wmt14_english_french_comes_out_binarized(tmp_path, server, commands):
    trained = wmt14(server.folder, "fr")
    # In Europarl, and an outlier by the number of its subwords: out of training.
    assert len(trained) == len(pairs("en", "fr"))
    path = server.folder / "wmt13/training-parallel-europarl-v7.tgz"
    outliers = [("Yes.", "Oui, je le veux, et tout de suite, s'il vous plaît."), ("Yes.", "")]
    files = {}
    for side, code in enumerate(("en", "fr")):
        lines = [pair[side] for pair in [*trained[:24], *outliers]]
        files[f"training/europarl-v7.fr-en.{code}"] = "\n".join(lines) + "\n"
    pack(path, files)
    (tmp_path / "checksums").write_text("# none\n")
    flags = ["--raw", tmp_path / "raw", "--base-url", server.url, "--workers", 1]
    flags += ["--checksums", tmp_path / "checksums", "--vocab-size", 150]
    out = tmp_path / "bin-data"
    done = run("bash", EXAMPLES / "wmt14/prepare.sh", "fr", *flags, PATH=commands, DATA=out)
    assert done.returncode == 0, done.stdout + done.stderr
    for side, lang in enumerate(("en", "fr")):
        assert binarized(out, "train", "en", "fr", lang) == [pair[side] for pair in trained]
        news = [*NEWS, "test-full/newstest2014-fren-" + ("src.en.sgm", "ref.fr.sgm")[side]]
        assert (out / "raw" / f"test.{lang}").read_text("utf-8").split("\n") == [*news, ""]
        assert len(binarized(out, "valid", "en", "fr", lang)) == 4
    report = json.loads((out / "report.json").read_text())
    assert report["train"]["kept"] == 120
    dropped = {"a side is empty": 1, "a side is more than 1.5 times as long as the other": 1}
    assert report["train"]["dropped"] == dropped
    # Of every archive something is known, and what is known has the right form.
    known = {}
    for line in (EXAMPLES / "wmt14/checksums").read_text().splitlines():
        if not line.startswith("#"):
            kind, value, name = line.split()
            known.setdefault(name, {})[kind] = value
    assert known.keys() == {path.rpartition("/")[2] for path, _ in server.requests}
    for checks in known.values():
        assert len(checks.get("sha256", "")) == 64 or len(checks.get("md5", "")) == 32


def test_wmt14_english_german_comes_out_in_the_order_of_the_corpora(tmp_path, capsys):
    trained = wmt14(tmp_path, "de")
    for path in tmp_path.glob("wmt1*/*"):
        path.rename(tmp_path / path.name)
    main, out = load(EXAMPLES / "wmt14/prepare.py"), tmp_path / "out"
    assert call(main, tmp_path, "--lang", "de", "--out", out) == 0
    expected = {"train": trained}
    expected["valid"] = [(n, n) for n in NEWS]
    expected["valid"] += [("test/newstest2013-src.en.sgm", "test/newstest2013-src.de.sgm")]
    expected["test"] = [(n, n) for n in NEWS]
    expected["test"] += [("test-full/newstest2014-deen-src.en.sgm",
                          "test-full/newstest2014-deen-ref.de.sgm")]  # fmt: skip
    for split, lines in expected.items():
        for side, lang in enumerate(("en", "de")):
            text = (out / f"{split}.{lang}").read_text("utf-8")
            assert text.split("\n") == [*(pair[side] for pair in lines), ""]
    capsys.readouterr()
    # One line less on one side, a file that is not there, an archive cut short.
    path = tmp_path / "training-parallel-nc-v9.tgz"
    member = "training/news-commentary-v9.de-en."
    whole = path.read_bytes()
    for files, said in (
        ({f"{member}en": "One.\nTwo.\n", f"{member}de": "Eins.\n"}, "has 2 lines and"),
        ({f"{member}en": "One.\n"}, f"there is no {member}de in it"),
        (None, "not a whole archive"),
    ):
        pack(path, files) if files else path.write_bytes(whole[: len(whole) // 2])
        assert call(main, tmp_path, "--lang", "de", "--out", tmp_path / "new") == 2
        error = capsys.readouterr().err
        assert "training-parallel-nc-v9.tgz" in error and said in error
        assert not (tmp_path / "new").exists()


def test_iwslt14_refuses_what_is_not_the_archive(tmp_path, capsys):
    main, path = load(EXAMPLES / "iwslt14/prepare.py"), tmp_path / "de-en.tgz"
    iwslt14(path)
    whole = path.read_bytes()
    for data, said in ((whole[:-200], "not the archive"), (b"<html>", "not the archive")):
        path.write_bytes(data)
        assert call(main, path, "--out", tmp_path / "out") == 2
        error = capsys.readouterr().err
        assert "de-en.tgz" in error and said in error and not (tmp_path / "out").exists()
    pack(path, {f"de-en/train.tags.de-en.{lang}": text for lang, text in
                (("de", "Eins.\nZwei.\n"), ("en", "One.\n"))})  # fmt: skip
    assert call(main, path, "--out", tmp_path / "out") == 2
    assert "2 sentences in de and 1 in en" in capsys.readouterr().err


# Downloads


def fetch(server_url, to, checksums, *paths):
    flags = ["--base-url", server_url, "--to", to, "--checksums", checksums]
    return run(sys.executable, ROOT / "scripts" / "fetch.py", *flags, *paths)


def test_an_interrupted_download_goes_on_and_is_never_taken_for_whole(tmp_path, server):
    data = bytes(range(256)) * 400
    (server.folder / "a.tgz").write_bytes(data)
    (tmp_path / "checksums").write_text("")
    to = tmp_path / "to"
    server.limit = 1000
    for part in (1000, 2000):
        done = fetch(server.url, to, tmp_path / "checksums", "a.tgz")
        assert_refused(done, f"only {part:,} of 102,400 bytes", "run again")
        assert [path.name for path in to.iterdir()] == ["a.tgz.part"]
    server.limit = None
    assert fetch(server.url, to, tmp_path / "checksums", "a.tgz").returncode == 0
    assert (to / "a.tgz").read_bytes() == data
    assert [wanted for _, wanted in server.requests] == [None, "bytes=1000-", "bytes=2000-"]
    assert sorted(path.name for path in to.iterdir()) == ["a.tgz", "a.tgz.sha256"]
    # From a server that only sends all of a file, it begins anew.
    server.resumes = False
    (to / "a.tgz").rename(to / "a.tgz.part")
    assert fetch(server.url, to, tmp_path / "checksums", "a.tgz").returncode == 0
    assert (to / "a.tgz").read_bytes() == data
    server.resumes = True
    # A whole .part that was never renamed, or one of something longer, cannot be gone on from.
    for extra in (b"", b"more"):
        (to / "a.tgz").unlink()
        (to / "a.tgz.part").write_bytes(data + extra)
        assert fetch(server.url, to, tmp_path / "checksums", "a.tgz").returncode == 0
        assert (to / "a.tgz").read_bytes() == data


@pytest.mark.parametrize("kind", ["sha256", "md5", "size"])
def test_a_download_that_is_not_what_was_expected_is_refused(tmp_path, server, kind):
    values = {  # of b"good", from sha256sum and md5sum
        "sha256": "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c",
        "md5": "755f85c2723bb39381c7379a604160d8",
        "size": "4",
    }
    checksums, to = tmp_path / "checksums", tmp_path / "to"
    checksums.write_text(f"# known\n{kind} {values[kind]} a.tgz\nsize 1 another.tgz\n")
    (server.folder / "a.tgz").write_bytes(b"goods" if kind == "size" else b"evil")
    done = fetch(server.url, to, checksums, "a.tgz")
    assert_refused(done, f"a.tgz: its {kind} is", f"{checksums} says {values[kind]}")
    assert not list(to.iterdir())
    (server.folder / "a.tgz").write_bytes(b"good")
    assert fetch(server.url, to, checksums, "a.tgz").returncode == 0


def test_the_first_checksum_seen_is_kept_to(tmp_path, server):
    checksums, to = tmp_path / "checksums", tmp_path / "to"
    checksums.write_text("")
    (server.folder / "a.tgz").write_bytes(b"good")
    assert fetch(server.url, to, checksums, "a.tgz").returncode == 0
    (to / "a.tgz").write_bytes(b"rots")
    assert_refused(fetch(server.url, to, checksums, "a.tgz"), "a.tgz.sha256 says", "Delete it")
    (to / "a.tgz").unlink()
    (server.folder / "a.tgz").write_bytes(b"evil")
    assert_refused(fetch(server.url, to, checksums, "a.tgz"), "a.tgz.sha256 says", "Not kept")
    assert [path.name for path in to.iterdir()] == ["a.tgz.sha256"]
    (server.folder / "a.tgz").write_bytes(b"good")
    assert fetch(server.url, to, checksums, "a.tgz").returncode == 0
    assert len(server.requests) == 3


def test_a_broken_record_of_a_checksum_is_refused(tmp_path, server):
    (tmp_path / "none").write_text("")
    (server.folder / "a.tgz").write_bytes(b"good")
    for record in ("", "770e60", "770e60  b.tgz\n"):
        (tmp_path / "a.tgz.sha256").write_text(record)
        done = fetch(server.url, tmp_path, tmp_path / "none", "a.tgz")
        assert_refused(done, "a.tgz.sha256", "SHA256  a.tgz")
    (tmp_path / "file").write_text("")
    assert_refused(fetch(server.url, tmp_path / "file", tmp_path / "none", "a.tgz"), "file")
    assert not server.requests


def test_what_cannot_be_fetched_is_said(tmp_path, server):
    (tmp_path / "checksums").write_text("sha1 abc a.tgz\n")
    (tmp_path / "none").write_text("")
    nobody = "http://127.0.0.1:9"
    assert_refused(fetch(server.url, tmp_path, tmp_path / "none", "x.tgz"), "x.tgz", "404")
    assert_refused(fetch(nobody, tmp_path, tmp_path / "none", "x.tgz"), nobody, "refused")
    assert_refused(fetch("example", tmp_path, tmp_path / "none", "x.tgz"), "example/x.tgz")
    assert_refused(fetch(server.url, tmp_path, tmp_path / "checksums", "x.tgz"), "sha1")
    flags = ["--raw", tmp_path, "--base-url", nobody]
    for name, *arguments in (("iwslt14",), ("wmt14", "de")):
        done = run("bash", EXAMPLES / name / "prepare.sh", *arguments, *flags)
        assert_refused(done, nobody, "refused")
    assert_refused(run("bash", EXAMPLES / "wmt14/prepare.sh", "cs"), "de or fr, not cs")


# Training and evaluation: the commands are read by the parsers that they are for.


def trained(words):
    """The flags of a training, with the number of its workers."""
    workers = None
    if words[0] == "torchrun":
        launched = parse_args(words[1:])
        assert launched.no_python and launched.training_script == "resmlp-mt"
        workers = int(launched.nnodes.split(":")[0]) * int(launched.nproc_per_node)
        words = launched.training_script_args
    assert words[0] == "train"
    args = options.parse_args_and_arch(options.get_training_parser(), words[1:])
    args.distributed_world_size = workers or args.distributed_world_size
    return args


def built(args):
    """The optimizer and the schedule of a training, as fairseq's Trainer makes them."""
    cfg = convert_namespace_to_omegaconf(args)
    layer = torch.nn.Linear(3, 2)
    mark_maps(layer)
    weights = list(layer.parameters())
    optimizer = optim.build_optimizer(cfg.optimizer, weights)
    # To flatten the weights for fp16, fairseq needs a GPU; it then asks what is asked here.
    if cfg.common.bf16 or (cfg.common.fp16 and not optimizer.supports_flat_params):
        optimizer = FP16Optimizer.build_optimizer(cfg, weights)
    return optimizer, lr_scheduler.build_lr_scheduler(cfg.lr_scheduler, optimizer)


def tokens(args):
    return args.max_tokens * args.update_freq[0] * args.distributed_world_size


WRITTEN = re.compile(r"((?:[A-Z_]+=\S+ )*)bash examples/(\w+/train\.sh (?!\.\.\.)[^`#\n]+)")
IWSLT14 = "resmlp_iwslt_de_en", "resmlp_plus_iwslt_de_en", "transformer_iwslt_de_en"
SIZES = "embed_dim", "ffn_embed_dim", "layers"


def sizes(args):
    return [getattr(args, f"{side}_{name}") for side in ("encoder", "decoder") for name in SIZES]


@pytest.mark.parametrize("model", IWSLT14)
def test_training_on_iwslt14(recorder, model):
    for gpus in (1, 8):
        command = "iwslt14/train.sh", model, 3, 40, "--bf16"
        args = trained(*recorder(*command, GPUS=gpus, DATA="somewhere"))
        built(args)
        assert (args.data, args.arch, args.seed, args.max_update) == ("somewhere", model, 3, 40)
        assert tokens(args) == 4096 and args.distributed_world_size == gpus and args.bf16
    assert sizes(args) == [512, 1024, 6] * 2
    assert args.share_decoder_input_output_embed and args.dropout == 0.3
    assert (args.optimizer, args.lr, args.warmup_updates) == ("adam", [5e-4], 4000)
    assert (args.max_source_positions, args.max_target_positions) == (256, 256)


@pytest.mark.parametrize(
    ("variables", "workers"),
    [
        ({"GPUS": 1, "TOKENS": 16384}, 1),
        ({"GPUS": 8}, 8),
        ({"GPUS": 8, "NODES": 2, "FIRST": "node1:29500", "TOKENS": 2048}, 16),
        ({"GPUS": 8, "TOKENS": 3584, "UPDATE_TOKENS": 458752}, 8),
    ],
)
def test_an_update_on_wmt14_has_the_same_tokens_on_any_gpus(recorder, variables, workers):
    args = trained(*recorder("wmt14/train.sh", "resmlp_6", "de", 3, 40, "--fp16", **variables))
    assert tokens(args) == variables.get("UPDATE_TOKENS", 32768) and args.fp16
    assert args.distributed_world_size == workers


@pytest.mark.parametrize("more", ["--bf16", "--seed=1"])
def test_flags_that_follow_reach_the_training_on_wmt14(recorder, more):
    args = trained(*recorder("wmt14/train.sh", "resmlp_6", "de", 3, 40, more))
    assert (args.bf16, args.seed) == ((True, 3) if more == "--bf16" else (False, 1))
    built(args)  # in that precision


@pytest.mark.parametrize(
    ("model", "lang"),
    [
        ("resmlp_6", "de"),
        ("resmlp_6", "fr"),
        ("resmlp_12", "fr"),
        ("resmlp_plus", "de"),
        ("transformer", "fr"),
    ],
)
def test_training_on_wmt14(recorder, model, lang):
    args = trained(*recorder("wmt14/train.sh", model, lang, 3, 40, "--fp16"))
    assert tokens(args) == 32768 and args.fp16 and args.distributed_world_size == 1
    assert (args.data, args.seed, args.max_update) == (f"data-bin/wmt14-en-{lang}", 3, 40)
    assert sizes(args) == [512, 2048, 12 if model == "resmlp_12" else 6] * 2
    assert args.share_all_embeddings and args.label_smoothing == 0.1
    assert (args.max_source_positions, args.max_target_positions) == (256, 256)
    optimizer, schedule = built(args)
    rates = [schedule.step_update(update) for update in (4000, 16000, 32000, 100_000)]
    if model in ("resmlp_6", "resmlp_12"):
        assert args.arch.endswith(f"wmt_en_{lang}") and args.arch in PRESETS
        assert args.dropout == {"de": 0.15, "fr": 0.1}[lang] and args.layer_scale_init == 0.2
        assert args.optimizer == "adagrad"
        assert rates == pytest.approx([0.025, 0.1, 0.2, 0.2], rel=1e-3)
        defaults = {"lr_decay": 0, "initial_accumulator_value": 0, "eps": 1e-10}
        assert defaults.items() <= optimizer.optimizer.defaults.items()
    else:
        assert (args.optimizer, args.dropout) == ("adam", 0.1)
        assert rates == pytest.approx([5e-4, 2.5e-4, 5e-4 / 8**0.5, 1e-4])


def test_the_commands_that_are_written_down_train(recorder):
    seen = []
    for path in sorted(EXAMPLES.glob("*14/README.md")):
        text = re.sub(r" *\\\n +", " ", path.read_text("utf-8")).replace("$lr", "1e-3")
        for assigned, command in WRITTEN.findall(text):
            variables = dict(word.split("=") for word in assigned.split())
            args = trained(*recorder(*command.split(), **variables))
            assert tokens(args) == int(variables.get("UPDATE_TOKENS", tokens(args)))
            seen.append((args.arch, args.distributed_world_size, args.lr[0]))
    assert len(seen) == 10 and ("transformer_wmt_en_de", 16, 5e-4) in seen
    assert ("resmlp_plus_wmt_en_de", 8, 1e-3) in seen


@pytest.mark.parametrize(
    "command", ["ende-mix/train.sh resmlp_plus tiny 3 40", "multi30k/train.sh resmlp_tiny 3 40"]
)
def test_training_on_less_text(recorder, command):
    args = trained(*recorder(*command.split()))
    assert (args.seed, args.max_update, args.warmup_updates) == (3, 40, 10)
    assert args.arch in PRESETS and args.distributed_world_size == 1
    built(args)


@pytest.mark.parametrize(
    "command",
    [
        "adafc/train.sh s 3",
        "cifar10/train.sh resmlp 3 40",
        "cifar10/pretrain.sh 3 40",
        "pnlp/train.sh pnlp_mixer_short 3 40",
    ],
)
def test_other_trainings_take_one_gpu(recorder, tmp_path, command):
    for name in ("data/label/dict.txt", "out/dino-seed3/probe.csv", "out/dino-seed3/initial.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    # What a training leaves that made all of its updates.
    (tmp_path / "out/dino-seed3/train.log").write_text('{"train_num_updates": "40"}\n')
    files = {"DATA": tmp_path / "data", "RESULTS": tmp_path / "results.csv"}
    trainings = [words for words in recorder(*command.split(), **files) if words[0] == "train"]
    for words in trainings:
        assert words[words.index("--distributed-world-size") + 1] == "1"
    assert len(trainings) == (2 if "pretrain" in command else 1)


def test_a_model_of_base_size_is_trained_and_scored(recorder, tmp_path):
    commands = recorder("benchmarks/base_size.sh", "like", "raw", tmp_path / "b", UPDATES=90)
    names = [Path(words[0]).name for words in commands]
    assert names == ["prepare", "train", "preview.py", "weight_bits.py"]
    args = trained(commands[1])
    assert (args.arch, args.max_update) == ("resmlp_plus_wmt_en_de", 90) and args.bf16
    _, schedule = built(args)
    rates = [schedule.step_update(update) for update in (30, 60, 90)]
    assert rates == pytest.approx([5e-3, 5e-3, 0.03 * 5e-3])


@pytest.mark.parametrize("size", ["base", "tiny"])
def test_races_are_between_models_of_the_same_dimensions(recorder, size):
    made, raced = recorder("benchmarks/generate.sh", size, "data", "--max-len-b", 15)
    assert Path(made[0]).name == "untrained.py" and Path(raced[0]).name == "generate.py"
    assert raced[-2:] == ["--max-len-b", "15"]
    ours, theirs = (trained(["train", "data", "--arch", *arch.split()]) for arch in made[3:])
    assert (ours.arch, theirs.arch) in {
        ("resmlp_plus_wmt_en_de", "transformer"),
        ("resmlp_plus_tiny", "transformer"),
    }
    assert sizes(ours) == sizes(theirs)
    assert ours.decoder_attention_heads == theirs.decoder_attention_heads


SCRIPTS = [*(ROOT / "scripts").glob("*.sh"), *EXAMPLES.glob("*/*.sh")]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_names_the_variables_that_it_reads(path):
    head, _, body = path.read_text("utf-8").partition("\n\n")
    head = "\n".join(line for line in head.splitlines() if line.startswith("#"))
    sourced = re.findall(r"^\. (scripts/\w+\.sh)$", path.read_text("utf-8"), re.M)
    body = "\n".join([body, *((ROOT / name).read_text("utf-8") for name in sourced)])
    read = set(re.findall(r"\$\{?([A-Z][A-Z_0-9]+)", re.sub(r"(?m)^ *#.*", "", body)))
    named = set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", head))
    assert read - {"PWD", "PYTHONPATH"} <= named


def test_training_refuses_what_it_does_not_know(tmp_path):
    for command, said, variables in (
        (("iwslt14/train.sh", "resmlp"), "unknown model resmlp", {}),
        (("iwslt14/train.sh", IWSLT14[0]), "GPUS=3", {"GPUS": 3}),
        (("wmt14/train.sh", "resmlp", "de"), "unknown model resmlp", {}),
        (("wmt14/train.sh", "resmlp_6", "cs"), "de or fr, not cs", {}),
        (("wmt14/train.sh", "resmlp_6", "de"), "3 x 1 x 4096", {"GPUS": 3}),
        (("wmt14/train.sh", "resmlp_6", "de"), "NODES=0", {"NODES": 0}),
        (("wmt14/train.sh", "resmlp_6", "de"), "FIRST=NAME:PORT", {"NODES": 2, "FIRST": "node1"}),
        (("wmt14/train.sh", "resmlp_6", "de"), "GPUS=0", {"GPUS": 0}),
        (("wmt14/train.sh", "resmlp_6", "de"), "GPUS=two", {"GPUS": "two"}),
        (("wmt14/train.sh", "resmlp_6", "de"), "TOKENS=128", {"TOKENS": 128}),
    ):
        done = run("bash", EXAMPLES / command[0], *command[1:], OUT=tmp_path / "out", **variables)
        assert_refused(done, said)
    assert not (tmp_path / "out").exists()


HYPOTHESES = ["It's a well-known fact.", "He keeps the book & the letter in the old house."]
REFERENCES = ["It’s a well-known fact.", "He keeps the book & the letter in this old house."]
# As Moses splits them, written by hand.
WORDS_OF = {
    "hypotheses": [
        "It &apos;s a well-known fact .",
        "He keeps the book &amp; the letter in the old house .",
    ],
    "references": [
        "It &apos;s a well-known fact .",
        "He keeps the book &amp; the letter in this old house .",
    ],
}
LOG = """2026-01-01 00:00:00 | INFO | x | num. shared model params: 1,234 (num. trained: 1,234)
2026-01-01 00:00:01 | INFO | valid | {"valid_nll_loss": "4.5", "valid_num_updates": "40"}
2026-01-01 00:00:02 | INFO | x | done training in 12.3 seconds
"""


def test_the_seconds_of_a_training_that_was_stopped_are_those_of_all_its_epochs(tmp_path):
    part = "2026-01-01 00:00:00 | INFO | x | num. shared model params: 1,234 (num. trained: 1)"
    walls = [(1, 50), (2, 3), (2, 52), (3, 40)]  # the second was gone on with
    epochs = [
        f'2026-01-01 00:00:01 | INFO | train | {{"epoch": {epoch}, "train_train_wall": "{wall}"}}'
        for epoch, wall in walls
    ]
    done = "2026-01-01 00:00:02 | INFO | x | done training in 44.0 seconds"
    (tmp_path / "log").write_text("\n".join([part, *epochs[:2], part, *epochs[2:], done]))
    command = [sys.executable, ROOT / "scripts/append_row.py", tmp_path / "rows.csv"]
    subprocess.run([*command, "--log", tmp_path / "log"], input="{}", text=True, check=True)
    with open(tmp_path / "rows.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["train_seconds"], row["parameters"]) == ("142", "1234")


ROW = ("model,parameters,bleu,train_seconds,commit,date,machine", "a,5,1,2,c,d,m")


def append_row(folder, figures, *logs, **options):
    """Appends to folder/rows.csv, which has a row."""
    (folder / "rows.csv").write_text("\n".join(ROW))  # without the last line's end
    words = [sys.executable, ROOT / "scripts/append_row.py", folder / "rows.csv"]
    words += ["--log", *logs] if logs else []
    return subprocess.run(
        list(map(str, words)), input=figures, capture_output=True, text=True,
        env=os.environ | {"COMMIT": "abc", "OMP_NUM_THREADS": "1"}, **options,
    )  # fmt: skip


def test_a_row_is_added_with_the_commit_that_is_named(tmp_path):
    (tmp_path / "log").write_text(LOG)
    figures = {"bleu": "4.5", "model": "b, c", "parameters": None}
    done = append_row(tmp_path, json.dumps(figures), tmp_path / "log")
    assert done.returncode == 0, done.stderr
    first, second = csv.DictReader((tmp_path / "rows.csv").read_text().splitlines())
    assert list(first.values()) == ROW[1].split(",")
    assert (second["model"], second["bleu"], second["commit"]) == ("b, c", "4.5", "abc")
    assert (second["parameters"], second["train_seconds"]) == ("1234", "12")
    assert json.loads(done.stdout) == second
    assert second["machine"].endswith(", 1 thread")
    on_gpus = f'{LOG}training on 2 devices (GPUs/TPUs)\n{{"update": 0.1, "gb_free": "70.3"}}\n'
    (tmp_path / "log").write_text(on_gpus)
    assert '"machine": "2 x ' in append_row(tmp_path, json.dumps(figures), tmp_path / "log").stdout
    (tmp_path / "log").write_text(LOG)
    several = json.dumps([figures | {"bleu": bleu} for bleu in "78"])
    assert append_row(tmp_path, several, tmp_path / "log").returncode == 0
    _, *rows = csv.DictReader((tmp_path / "rows.csv").read_text().splitlines())
    assert [(row["bleu"], row["parameters"]) for row in rows] == [("7", "1234"), ("8", "1234")]


@pytest.mark.parametrize(
    ("figures", "log", "said"),
    [
        ("", LOG, "standard input is no JSON: Expecting value"),
        ("[]", LOG, "no figures by their names"),
        ('{"model": "b", "bleu": 1, "chrf": 2, "ter": 3}', LOG, "has no column chrf, ter;"),
        ('{"model": "b"}', LOG, "needs a value of bleu;"),
        ('{"model": "b", "bleu": 1, "parameters": null}', None, "no value of parameters: name the"),
        ('{"model": "b", "bleu": 1}', "nothing\n", "log: no log of a training"),
        ('{"model": "b", "bleu": 1}', "", "log: no log of a training"),
        ('{"model": "b", "bleu": 1}', "none", "nolog: no such file"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(tmp_path, figures, log, said):
    logs = [] if log is None else [tmp_path / ("nolog" if log == "none" else "log")]
    (tmp_path / "log").write_text(log or "")
    done = append_row(tmp_path, figures, *logs)
    assert_refused(done, said)
    assert done.stderr.startswith("append_row.py: ") and done.stderr.count("\n") == 1
    assert (tmp_path / "rows.csv").read_text() == "\n".join(ROW) and not done.stdout


def test_a_row_for_which_there_is_no_room_leaves_nothing(tmp_path):
    (tmp_path / "log").write_text(LOG)
    size = len("\n".join(ROW)) + 10

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    figures = json.dumps({"model": "b", "bleu": 1})
    done = append_row(tmp_path, figures, tmp_path / "log", preexec_fn=limit)
    assert_refused(done, "rows.csv: File too large; nothing was added")
    assert (tmp_path / "rows.csv").read_text() == "\n".join(ROW)


@pytest.mark.parametrize("example", ["iwslt14", "wmt14"])
def test_evaluation_scores_and_appends_a_row(tmp_path, recorder, monkeypatch, capsys, example):
    model, *lang = ("resmlp_6", "de") if example == "wmt14" else IWSLT14[:1]
    out = tmp_path / "out" / "-".join([model, *lang, "seed3"])
    (out / "data" / "raw").mkdir(parents=True)
    for number in range(1, 5):
        (out / f"checkpoint{number}.pt").touch()
    command = (f"{example}/evaluate.sh", model, *lang, 3)
    given = recorder(*command, DATA=out / "data", RESULTS=tmp_path / "results.csv")
    check, average, generate, read, score = given[:5]
    assert check == ["-c", "import sacremoses"]
    averaged = build_parser().parse_args(average)
    assert averaged.inputs == [out] and averaged.last == (5 if lang else 4)
    averaged.out.touch()  # fairseq's flags name what is there
    args = options.parse_args_and_arch(options.get_generation_parser(), generate[1:])
    assert generate[0] == "generate" and args.path == str(averaged.out)
    assert (args.beam, args.lenpen) == ((4, 0.6) if lang else (5, 1))
    hypotheses, references = read[-1], out / "data" / "raw" / f"test.{lang[0] if lang else 'en'}"
    scored = build_parser().parse_args(score)
    assert scored.hypotheses == [Path(hypotheses)] and scored.ref == [references]

    Path(hypotheses).write_text("\n".join(HYPOTHESES) + "\n")
    references.write_text("\n".join(REFERENCES) + "\n")
    (out / "train.log").write_text(LOG)
    (out / "command").write_text("examples/x/train.sh x\n")
    (figures,) = [words for words in given if words[0].endswith("figures.py")]
    (append,) = [words for words in given if words[0].endswith("append_row.py")]
    module = load(ROOT / figures[0])
    call(module, *figures[1:])
    printed = capsys.readouterr()
    shutil.copy(EXAMPLES / example / "results.csv", tmp_path)
    appended = subprocess.run(
        [sys.executable, *append], input=printed.out, text=True, cwd=ROOT, capture_output=True
    )
    assert appended.returncode == 0, appended.stderr
    with open(tmp_path / "results.csv", newline="") as file:
        *published, row = csv.DictReader(file)
    assert all(entry["published"] or not entry["source"] for entry in published)
    assert not any(entry["bleu"] for entry in published) and None not in row
    assert (row["model"], row["pair"]) == (model, "en-de" if lang else "de-en")
    assert (row["parameters"], row["updates"], row["seed"]) == ("1234", "40", "3")
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert row["bleu"] == f"{bleu:.2f}" and float(row["bleu_tokenized"]) > 0
    # Without sacremoses nothing is done, rather than all for a row with a gap.
    script(tmp_path / "stub" / "python", "import sys; sys.exit(1)")
    refused = run(
        "bash", EXAMPLES / command[0], *command[1:], PATH=tmp_path / "stub", OUT=tmp_path / "out"
    )
    assert_refused(refused, "pip install sacremoses")
    monkeypatch.setattr(module, "MosesTokenizer", None)
    with pytest.raises(SystemExit, match="2"):
        call(module, *figures[1:])


def test_the_scores_of_the_literature(tmp_path, capsys):
    (tmp_path / "hypotheses.en").write_text("\n".join(HYPOTHESES) + "\n")
    (tmp_path / "test.en").write_text("\n".join(REFERENCES) + "\n")
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / "command").write_text("examples/x/train.sh x\n")
    files = ["--hypotheses", tmp_path / "hypotheses.en", "--references", tmp_path / "test.en"]
    module = load(ROOT / "scripts" / "translation_figures.py")
    call(module, tmp_path, "model=x", *files, "--moses", "en", "--split-compounds")
    figures = json.loads(capsys.readouterr().out)
    split = {
        name: [line.replace("well-known", "well ##AT##-##AT## known") for line in lines]
        for name, lines in WORDS_OF.items()
    }
    for name, words in (("bleu_tokenized", WORDS_OF), ("bleu_split", split)):
        bleu = sacrebleu.corpus_bleu(
            words["hypotheses"], [words["references"]], tokenize="none", force=True
        )
        assert figures[name] == f"{bleu.score:.2f}"
    assert figures["bleu"] != figures["bleu_tokenized"] != figures["bleu_split"]

    call(module, tmp_path, *files, "--moses", "en", "--lowercase")
    words = [[line.lower() for line in lines] for lines in WORDS_OF.values()]
    bleu = sacrebleu.corpus_bleu(words[0], [words[1]], tokenize="none", force=True)
    assert json.loads(capsys.readouterr().out)["bleu_tokenized"] == f"{bleu.score:.2f}"


@pytest.mark.parametrize("flags", [["--lowercase"], ["--split-compounds"], ["model"]])
def test_figures_that_make_no_sense_are_refused(flags, tmp_path):
    files = ["--hypotheses", tmp_path / "a", "--references", tmp_path / "b"]
    script = ROOT / "scripts" / "translation_figures.py"
    columns = [flag for flag in flags if not flag.startswith("--")]
    rest = [flag for flag in flags if flag.startswith("--")]
    command = ["python", script, tmp_path, *columns, *files, *rest]
    assert_refused(run_command(*command, check=False), "error: ")
