"""The recipes of examples/iwslt14 and examples/wmt14, on small archives of the real form."""

import gzip
import http.server
import importlib.util
import io
import json
import os
import sys
import tarfile
import threading
from html import escape
from pathlib import Path

import pytest
import sacrebleu
import sentencepiece
import torch
from cli.commands import assert_refused, run
from fairseq import optim, options
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import FP16Optimizer, lr_scheduler
from torch.distributed.run import parse_args

import resmlp_mt.models  # noqa: F401  (registers the presets)
from resmlp_mt.cli.parser import build_parser
from resmlp_mt.errors import UserError
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


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a folder, parts of files too; breaks off after `limit` bytes of an answer."""

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
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.folder, server.requests = tmp_path / "served", []
        server.limit, server.resumes = None, True
        server.url = f"http://127.0.0.1:{server.server_port}"
        server.folder.mkdir()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run_example(name, *arguments, **variables):
    """Run a script of the examples."""
    variables = {key: str(value) for key, value in variables.items()} | {"no_proxy": "127.0.0.1"}
    return run("bash", EXAMPLES / name, *arguments, cwd=ROOT, env=variables, check=False)


def script(path, body):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(0o755)


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
        path = f"{tmp_path / 'stub'}:{os.environ['PATH']}"
        done = run_example(name, *arguments, PATH=path, OUT=tmp_path / "out", **variables)
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


def test_iwslt14_is_cleaned_and_split_as_in_the_literature(tmp_path, server):
    kept, test = iwslt14(server.folder / "de-en.tgz")
    checksums = tmp_path / "checksums"
    checksums.write_text(f"size {(server.folder / 'de-en.tgz').stat().st_size} de-en.tgz\n")
    out = tmp_path / "bin-data"
    flags = ["--raw", tmp_path / "raw", "--base-url", server.url, "--checksums", checksums]
    flags += ["--vocab-size", 150, "--workers", 1]
    done = run_example("iwslt14/prepare.sh", *flags, DATA=out)
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


def wmt14(folder, lang):
    """Write the archives; returns the training pairs in the order of the corpora."""
    body, trained = pairs("en", lang), []
    for number, (path, name) in enumerate(TRAINING.items()):
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


def test_wmt14_comes_out_in_the_order_of_the_corpora(tmp_path, capsys, recorder):
    lang = "fr"
    trained, raw, out = wmt14(tmp_path, lang), tmp_path / "raw", tmp_path / "bin"
    raw.mkdir()
    for path in tmp_path.glob("wmt1*/*"):
        path.rename(raw / path.name)
    fetch, unpack, prepare = recorder("wmt14/prepare.sh", lang, "--raw", raw, DATA=out)
    known = (EXAMPLES / "wmt14/checksums").read_text()
    assert {path.rpartition("/")[2] for path in fetch[7:]} == {path.name for path in raw.iterdir()}
    assert all(f" {path.name}\n" in known for path in raw.iterdir())
    main = load(ROOT / unpack[0])
    assert call(main, *unpack[1:]) == 0
    ends = {  # what the last line says: the file that it was in
        "valid": [f"test/newstest2013-src.{side}.sgm" for side in ("en", lang)],
        "test": [f"test-full/newstest2014-{lang}en-{end}.sgm" for end in ("src.en", f"ref.{lang}")],
    }
    expected = {split: [*((n, n) for n in NEWS), tuple(end)] for split, end in ends.items()}
    args = build_parser().parse_args(prepare)
    assert (args.out, args.max_length) == (out, 250)
    for split, lines in (expected | {"train": trained}).items():
        for side, code in enumerate(("en", lang)):
            text = Path(f"{getattr(args, split)}.{code}").read_text("utf-8")
            assert text.split("\n") == [*(pair[side] for pair in lines), ""]
    path = raw / "training-parallel-nc-v9.tgz"
    member = f"training/news-commentary-v9.{lang}-en."
    pack(path, {f"{member}en": "One.\nTwo.\n", f"{member}{lang}": "Eins.\n"})  # a line less
    assert call(main, raw, "--lang", lang, "--out", tmp_path / "new") == 2
    assert path.name in capsys.readouterr().err and not (tmp_path / "new").exists()


def test_iwslt14_refuses_what_is_not_the_archive(tmp_path, capsys):
    main, path = load(EXAMPLES / "iwslt14/prepare.py"), tmp_path / "de-en.tgz"
    iwslt14(path)
    uneven = {f"de-en/train.tags.de-en.{lang}": "One.\n" * n for lang, n in (("de", 2), ("en", 1))}
    for data in (path.read_bytes()[:-200], b"<html>", uneven):
        path.write_bytes(data) if isinstance(data, bytes) else pack(path, data)
        assert call(main, path, "--out", tmp_path / "out") == 2
        assert "de-en.tgz" in capsys.readouterr().err and not (tmp_path / "out").exists()


# Downloads


@pytest.fixture
def fetch(tmp_path, server, capsys):
    """fetch(): the status and the complaint of a download of a.tgz to `to`."""
    (tmp_path / "checksums").write_text("")
    module = load(ROOT / "scripts" / "fetch.py")

    def fetch(url=server.url, path="a.tgz"):
        flags = ["--base-url", url, "--to", tmp_path / "to"]
        status = call(module, *flags, "--checksums", tmp_path / "checksums", path)
        return status, capsys.readouterr().err

    return fetch


def test_an_interrupted_download_goes_on_and_is_never_taken_for_whole(tmp_path, server, fetch):
    data, to = bytes(range(256)) * 400, tmp_path / "to"
    (server.folder / "a.tgz").write_bytes(data)
    server.limit = 1000
    for _ in range(2):
        assert fetch()[0] == 2 and [path.name for path in to.iterdir()] == ["a.tgz.part"]
    server.limit = None
    assert fetch()[0] == 0 and (to / "a.tgz").read_bytes() == data
    assert [wanted for _, wanted in server.requests] == [None, "bytes=1000-", "bytes=2000-"]
    assert sorted(path.name for path in to.iterdir()) == ["a.tgz", "a.tgz.sha256"]
    # From a server that only sends all of a file, it begins anew. A whole .part that was never
    # renamed, or one of something longer, cannot be gone on from.
    for resumes, part in ((False, data), (True, data), (True, data + b"more")):
        server.resumes = resumes
        (to / "a.tgz").unlink()
        (to / "a.tgz.part").write_bytes(part)
        assert fetch()[0] == 0 and (to / "a.tgz").read_bytes() == data


@pytest.mark.parametrize("kind", ["sha256", "md5", "size"])
def test_a_download_that_is_not_what_was_expected_is_refused(tmp_path, server, fetch, kind):
    values = {  # of b"good", from sha256sum and md5sum
        "sha256": "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c",
        "md5": "755f85c2723bb39381c7379a604160d8",
        "size": "4",
    }
    known = f"# known\n{kind} {values[kind]} a.tgz\nsize 1 another.tgz\n"
    (tmp_path / "checksums").write_text(known)
    (server.folder / "a.tgz").write_bytes(b"goods" if kind == "size" else b"evil")
    status, said = fetch()
    assert status == 2 and values[kind] in said and not list((tmp_path / "to").iterdir())
    (server.folder / "a.tgz").write_bytes(b"good")
    assert fetch()[0] == 0


def test_the_first_checksum_seen_is_kept_to(tmp_path, server, fetch):
    path, archive = tmp_path / "to" / "a.tgz", server.folder / "a.tgz"
    archive.write_bytes(b"good")
    assert fetch()[0] == 0
    path.write_bytes(b"rots")
    assert fetch()[0] == 2
    path.unlink()
    archive.write_bytes(b"evil")
    assert fetch()[0] == 2 and not path.exists()
    archive.write_bytes(b"good")
    assert fetch()[0] == 0
    for record in ("", "770e60", "770e60  b.tgz\n"):
        path.with_name("a.tgz.sha256").write_text(record)
        status, said = fetch()
        assert status == 2 and "a.tgz.sha256" in said
    assert len(server.requests) == 3


def test_what_cannot_be_fetched_is_said(tmp_path, server, fetch):
    nobody = "http://127.0.0.1:9"
    for url, path, part in (
        (server.url, "x.tgz", "404"), (nobody, "x.tgz", nobody), ("example", "x.tgz", "example"),
    ):  # fmt: skip
        status, said = fetch(url, path)
        assert status == 2 and part in said
    (tmp_path / "checksums").write_text("sha1 abc a.tgz\n")
    assert fetch()[0] == 2
    flags = ["--raw", tmp_path, "--base-url", nobody]
    for name, *arguments in (("iwslt14",), ("wmt14", "de")):
        done = run_example(f"{name}/prepare.sh", *arguments, *flags)
        assert_refused(done, nobody)


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


def build_rates(args, *updates):
    """The learning rates at these updates, as fairseq's Trainer makes them."""
    cfg = convert_namespace_to_omegaconf(args)
    layer = torch.nn.Linear(3, 2)
    mark_maps(layer)
    weights = list(layer.parameters())
    optimizer = optim.build_optimizer(cfg.optimizer, weights)
    # To flatten the weights for fp16, fairseq needs a GPU; it then asks what is asked here.
    if cfg.common.bf16 or (cfg.common.fp16 and not optimizer.supports_flat_params):
        optimizer = FP16Optimizer.build_optimizer(cfg, weights)
    schedule = lr_scheduler.build_lr_scheduler(cfg.lr_scheduler, optimizer)
    return [schedule.step_update(update) for update in updates]


def tokens(args):
    return args.max_tokens * args.update_freq[0] * args.distributed_world_size


SIZES = "embed_dim", "ffn_embed_dim", "layers"


def sizes(args):
    return [getattr(args, f"{side}_{name}") for side in ("encoder", "decoder") for name in SIZES]


RECIPES = [
    ("iwslt14/train.sh", "resmlp_iwslt_de_en"),
    ("wmt14/train.sh", "resmlp_6", "fr"),
    ("ende-mix/train.sh", "resmlp_plus", "tiny"),
    ("multi30k/train.sh", "resmlp_tiny"),
    ("adafc/train.sh", "s"),
    ("cifar10/train.sh", "resmlp"),
    ("pnlp/train.sh", "pnlp_mixer_short"),
]


@pytest.mark.parametrize("command", RECIPES, ids="-".join)
def test_a_recipe_is_a_command_that_fairseq_takes(recorder, tmp_path, command):
    (tmp_path / "label").mkdir()  # the texts and classes of pnlp
    (tmp_path / "label" / "dict.txt").touch()
    updates = () if "adafc" in command[0] else (40,)
    (words,) = recorder(*command, 3, *updates, "--bf16", DATA=tmp_path)
    args = trained(words)
    assert (args.data, args.seed, args.bf16) == (str(tmp_path), 3, True)
    assert words[words.index("--distributed-world-size") + 1] == "1"
    assert args.max_update == 40 or not updates
    assert len(build_rates(args, 1, 40)) == 2


@pytest.mark.parametrize(
    ("variables", "workers"),
    [
        ({"GPUS": 1, "TOKENS": 16384}, 1),
        ({"GPUS": 8, "NODES": 2, "FIRST": "node1:29500", "TOKENS": 2048}, 16),
        ({"GPUS": 8, "TOKENS": 3584, "UPDATE_TOKENS": 458752}, 8),
    ],
)
def test_an_update_on_wmt14_has_the_same_tokens_on_any_gpus(recorder, variables, workers):
    args = trained(*recorder("wmt14/train.sh", "resmlp_6", "de", 3, 40, "--fp16", **variables))
    assert tokens(args) == variables.get("UPDATE_TOKENS", 32768) and args.fp16
    assert args.distributed_world_size == workers


def test_the_recipe_on_wmt14_is_that_of_the_paper(recorder):
    for model, lang in (("resmlp_6", "de"), ("resmlp_12", "fr")):
        args = trained(*recorder("wmt14/train.sh", model, lang))
        assert args.arch.endswith(f"wmt_en_{lang}") and args.arch in PRESETS
        assert sizes(args) == [512, 2048, 12 if model == "resmlp_12" else 6] * 2
        assert args.dropout == {"de": 0.15, "fr": 0.1}[lang] and args.layer_scale_init == 0.2
        assert args.optimizer == "adagrad" and args.label_smoothing == 0.1
        rates = build_rates(args, 4000, 16000, 32000, 100_000)
        assert rates == pytest.approx([0.025, 0.1, 0.2, 0.2], rel=1e-3)
    args = trained(*recorder("wmt14/train.sh", "transformer", "de"))
    rates = build_rates(args, 4000, 16000, 32000, 100_000)
    assert rates == pytest.approx([5e-4, 2.5e-4, 5e-4 / 8**0.5, 1e-4])


@pytest.mark.parametrize(
    ("command", "variables", "said"),
    [
        ("iwslt14/train.sh resmlp", {}, "resmlp"),
        ("wmt14/prepare.sh cs", {}, "cs"),
        ("wmt14/train.sh resmlp_6 de", {"GPUS": 3}, "3 x 1 x 4096"),
        ("wmt14/train.sh resmlp_6 de", {"NODES": 2, "FIRST": "node1"}, "FIRST"),
    ],
)
def test_scripts_refuse_what_they_do_not_know(tmp_path, command, variables, said):
    name, *arguments = command.split()
    done = run_example(name, *arguments, OUT=tmp_path / "out", **variables)
    assert_refused(done, said)
    assert not (tmp_path / "out").exists()


HYPOTHESES = ["It's a well-known fact.", "He keeps the book & the letter in the old house."]
REFERENCES = ["It’s a well-known fact.", "He keeps the book & the letter in this old house."]
# As Moses splits them, written by hand.
WORDS_OF = [
    ["It &apos;s a well-known fact .", "He keeps the book &amp; the letter in the old house ."],
    ["It &apos;s a well-known fact .", "He keeps the book &amp; the letter in this old house ."],
]
LOG = """2026-01-01 00:00:00 | INFO | x | num. shared model params: 1,234 (num. trained: 1,234)
2026-01-01 00:00:01 | INFO | valid | {"valid_nll_loss": "4.5", "valid_num_updates": "40"}
2026-01-01 00:00:02 | INFO | x | done training in 12.3 seconds
"""


def test_a_row_has_what_its_log_says_and_the_commit_that_is_named(tmp_path, monkeypatch):
    module = load(ROOT / "scripts" / "append_row.py")
    monkeypatch.setenv("COMMIT", "abc")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    on_gpus = f'{LOG}training on 2 devices (GPUs/TPUs)\n{{"update": 0.1, "gb_free": "70.3"}}\n'
    for log, machine in ((LOG, ", 1 thread"), (on_gpus, "2 x ")):
        (tmp_path / "log").write_text(log)
        figures = [{"bleu": bleu, "parameters": None} for bleu in "48"]
        rows = module.build_rows(json.dumps(figures), [tmp_path / "log"])
        assert [row["bleu"] for row in rows] == ["4", "8"] and machine in rows[0]["machine"]
        names = "parameters", "train_seconds", "commit"
        assert [rows[1][name] for name in names] == [1234, 12, "abc"]
    with pytest.raises(UserError, match="parameters"):
        module.build_rows(json.dumps(figures), [])


def test_evaluation_averages_generates_and_scores(tmp_path, recorder):
    example, model, lang = "wmt14", "resmlp_6", ["de"]
    out = tmp_path / "out" / "-".join([model, *lang, "seed3"])
    out.mkdir(parents=True)
    for number in range(1, 5):
        (out / f"checkpoint{number}.pt").touch()
    command = (f"{example}/evaluate.sh", model, *lang, 3)
    _, average, generate, read, score, *figures = recorder(*command, DATA="data")
    averaged = build_parser().parse_args(average)
    assert averaged.inputs == [out] and averaged.last == 5
    averaged.out.touch()  # fairseq's flags name what is there
    args = options.parse_args_and_arch(options.get_generation_parser(), generate[1:])
    assert generate[0] == "generate" and args.path == str(averaged.out)
    assert (args.beam, args.lenpen) == (4, 0.6)
    scored = build_parser().parse_args(score)
    assert scored.hypotheses == [Path(read[-1])]
    assert {Path(words[0]).name for words in figures} == {"translation_figures.py", "append_row.py"}
    # Without sacremoses nothing is done, rather than all for a row with a gap.
    script(tmp_path / "stub" / "python", "import sys; sys.exit(1)")
    path = f"{tmp_path / 'stub'}:{os.environ['PATH']}"
    assert_refused(run_example(*command, PATH=path, OUT=tmp_path / "out"), "sacremoses")


def test_the_scores_of_the_literature(tmp_path, capsys):
    (tmp_path / "hypotheses.en").write_text("\n".join(HYPOTHESES) + "\n")
    (tmp_path / "test.en").write_text("\n".join(REFERENCES) + "\n")
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / "command").write_text("examples/x/train.sh x\n")
    files = ["--hypotheses", tmp_path / "hypotheses.en", "--references", tmp_path / "test.en"]
    module = load(ROOT / "scripts" / "translation_figures.py")

    def score(edit):
        sides = [[edit(line) for line in lines] for lines in WORDS_OF]
        bleu = sacrebleu.corpus_bleu(sides[0], [sides[1]], tokenize="none", force=True)
        return f"{bleu.score:.2f}"

    call(module, tmp_path, "model=x", *files, "--moses", "en", "--split-compounds")
    figures = json.loads(capsys.readouterr().out)
    assert figures["bleu_tokenized"] == score(str)
    split = score(lambda line: line.replace("well-known", "well ##AT##-##AT## known"))
    assert figures["bleu_split"] == split
    call(module, tmp_path, *files, "--moses", "en", "--lowercase")
    assert json.loads(capsys.readouterr().out)["bleu_tokenized"] == score(str.lower)
    for flags in (["--lowercase"], ["--split-compounds"], ["model"]):
        with pytest.raises(SystemExit) as refused:
            call(module, tmp_path, *flags, *files)
        assert refused.value.code == 2
