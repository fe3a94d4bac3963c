"""examples/pnlp: its features are what loops say, and its commands train, score and classify."""

import csv
import lzma
import re
import shlex
import sys
from types import SimpleNamespace

import pytest
import torch
from cli.commands import ROOT, assert_refused, run
from fairseq.data import Dictionary
from test_docs import FENCE, shell, shorten
from torch.testing import assert_close

EXAMPLE = ROOT / "examples" / "pnlp"
sys.path.insert(0, str(EXAMPLE))
import pnlp_mixer  # noqa: E402
from pnlp_mixer import projection  # noqa: E402
from prepare import split  # noqa: E402

sys.path.pop(0)

SYMBOLS = ["▁the", "▁mixture", "d", "ing", "▁", "of", "▁of", "▁mix", "x"]
WORDS, HASHES, COUNTERS = 5, 7, 11
SIZES = dict(max_words=WORDS, hashes=HASHES, filter_size=COUNTERS, embed_dim=6, ffn_embed_dim=10)


@pytest.fixture(scope="module")
def dictionary():
    symbols = Dictionary()
    for symbol in SYMBOLS:
        symbols.add_symbol(symbol)
    return symbols


@pytest.fixture
def model(dictionary):
    cfg = pnlp_mixer.PNLPMixerConfig(**SIZES, token_ffn_embed_dim=8)
    found = pnlp_mixer.PNLPMixer.build_model(cfg, SimpleNamespace(source_dictionary=dictionary))
    found.register_classification_head("head", 3)
    return found.double().eval()


def batch(dictionary, *texts):
    rows = [dictionary.encode_line(text, add_if_not_exist=False).tolist() for text in texts]
    longest = max(map(len, rows))
    return torch.tensor([row + [dictionary.pad()] * (longest - len(row)) for row in rows])


def hash_words(texts):
    """Each text as a list of words, each word as the least values of the hash functions."""
    for text in texts:
        words = []
        for piece in text.split():
            if piece.startswith("▁"):
                words.append([])
            letters = piece.removeprefix("▁")
            parts = [letters]
            if piece.startswith("▁") and len(letters) > 3:
                parts = [letters[i : i + 3] for i in range(len(letters) - 2)]
            words[-1] += [part for part in parts if part]
        yield [
            [min(projection.hash_text(p, HASHES)[i].item() for p in word) for i in range(HASHES)]
            for word in words
        ]


@pytest.mark.parametrize("window", [0, 2])
def test_counts_are_those_of_a_loop(window, dictionary):
    special = {dictionary.bos(), dictionary.eos(), dictionary.pad()}
    project = projection.Projection(dictionary.symbols, special, WORDS, HASHES, COUNTERS, window)
    texts = ["▁the ▁mixture d", "▁mix x ing ▁ of ▁of ▁the ▁mixture", "▁of"]
    counts, there = project(batch(dictionary, *texts))
    expected = torch.zeros(len(texts), WORDS, 2 * window + 1, COUNTERS)
    for row, words in enumerate(hash_words(texts)):
        assert there[row].tolist() == [i < len(words) for i in range(WORDS)]
        for i in range(WORDS):
            for side in range(2 * window + 1):
                beside = i + side - window
                for value in words[beside] if 0 <= beside < len(words) else ():
                    expected[row, i, side, value % COUNTERS] += 1
    assert torch.equal(counts, expected.flatten(2)[there])
    assert project.features == counts.size(1)


def test_a_text_has_one_result_whatever_batch_it_sits_in(model, dictionary):
    texts = ["▁the ▁mixture d", "▁of", "▁mix x ing ▁the ▁of ▁mix ▁the"]
    together = model(batch(dictionary, *texts), classification_head_name="head")[0]
    for i, text in enumerate(texts):
        alone = model(batch(dictionary, text), classification_head_name="head")[0]
        assert_close(alone[0], together[i])
    nothing = model(batch(dictionary, ""), classification_head_name="head")[0]
    assert torch.equal(nothing[0], model.classification_heads["head"].bias)


def test_parameters_are_those_of_the_equations_and_each_gets_a_gradient(model, dictionary):
    bottleneck = 3 * COUNTERS * 6 + 6
    block = 2 * (6 + 6) + (WORDS * 8 + 8 + 8 * WORDS + WORDS) + (6 * 10 + 10 + 10 * 6 + 6)
    assert sum(p.numel() for p in model.parameters()) == bottleneck + 2 * block + 12 + 3 * 6 + 3
    tokens = batch(dictionary, "▁the ▁mixture d", "▁mix x ing ▁the ▁of ▁mix ▁the")
    scores = model(tokens, classification_head_name="head")[0]
    (scores * torch.rand_like(scores)).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


def test_what_does_not_fit_is_refused(model, dictionary):
    with pytest.raises(ValueError, match="--max-words"):
        model.extract_features(batch(dictionary, "▁of " * 6))
    task = SimpleNamespace(source_dictionary=dictionary)
    for flags, said in ((dict(hashes=0), "--hashes"), (dict(window=-1), "--window")):
        with pytest.raises(ValueError, match=said):
            pnlp_mixer.PNLPMixer.build_model(pnlp_mixer.PNLPMixerConfig(**flags), task)


def test_sets_are_apart_and_what_has_two_answers_is_in_none():
    rows = [(f"text {i}", ("a-1", "a-2", "b")[i % 3]) for i in range(60)]
    rows += [("Both.", "a-1"), ("both", "b"), ("TEXT 0!", "a-1"), ("?", "b")]
    sets = split(rows, 15, {"valid": 3, "test": 4})
    assert {name: len(rows) for name, rows in sets.items()} == {"valid": 6, "test": 8, "train": 28}
    texts = [text for rows in sets.values() for text, _ in rows]
    assert len(set(texts)) == len(texts) == 42 and not {"Both.", "both", "?"} & set(texts)
    assert {domain for rows in sets.values() for _, domain in rows} == {"a", "b"}


@pytest.fixture(scope="module")
def mix(tmp_path_factory):
    """Two kinds of sentences, as examples/ende-mix has them, some longer than others."""
    folder = tmp_path_factory.mktemp("mix")
    nouns = ["file", "window", "horse", "river", "table", "button", "garden", "menu", "city"]
    texts = [
        f"click the {a} to open {b} {c}" if i % 2 else f"a {a} stands by the {b} of {c} and waits"
        for i, (a, b, c) in enumerate((a, b, c) for a in nouns for b in nouns for c in nouns)
    ]
    for name, lines in (("en", texts), ("domain", ["scene-x", "help-y"] * len(texts))):
        with lzma.open(folder / f"train.{name}.xz", "wt", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in lines[: len(texts)])
    return folder


def test_the_example_trains_scores_and_classifies(mix, tmp_path):
    """The commands of its README, on less data for less time."""
    readme = (EXAMPLE / "README.md").read_text("utf-8")
    commands, classify = (text for kind, text in FENCE.findall(readme) if kind == "bash")
    trained = re.search(r"bash examples/pnlp/train.sh (\S+) (\d)", commands)
    small = f"--raw {mix} --out {tmp_path}/domains --vocab-size 120 --per-domain 100"
    tiny = "--filter-size 64 --hashes 16 --embed-dim 16 --batch-size 16"
    commands = shorten(
        commands,
        ("--raw DIR --out data-bin/domains", small),
        (trained[0], f"{trained[0]} 30 {tiny}"),
        ("data-bin/domains", f"{tmp_path}/domains"),
        ("examples/pnlp/results.csv", f"{tmp_path}/results.csv"),
    )
    variables = {"DATA": f"{tmp_path}/domains", "OUT": f"{tmp_path}/out"}
    variables["RESULTS"] = f"{tmp_path}/results.csv"
    first, _, others = commands.partition("\n")
    run(*shlex.split(first, comments=True), cwd=ROOT)
    shell(others, ROOT, **variables)
    with open(tmp_path / "results.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["model"] for row in rows] == [trained[1], "bag of subwords"]
    for row in rows:
        assert int(row["kilobytes"]) == round(int(row["parameters"]) / 250)
        assert float(row["accuracy"]) > 90 and 0 <= float(row["accuracy_first_words"]) <= 100
    with open(EXAMPLE / "results.csv", newline="") as stream:
        assert next(csv.reader(stream)) == list(rows[0])
    script, checkpoint = classify.split()[-2:]
    assert checkpoint == f"checkpoints/domains/{trained[1]}-seed{trained[2]}/checkpoint_best.pt"
    checkpoint = checkpoint.replace("checkpoints/domains", f"{tmp_path}/out")
    script = ROOT / script, checkpoint, "--data", tmp_path / "domains"
    texts = "click the horse to open table file\na file stands by the city of menu and waits\n"
    said = run("python", *script, stdin=texts).stdout.splitlines()
    assert [re.sub(r"\t[01]\.\d\d$", "", line) for line in said] == ["help", "scene"]
    refused = run("python", *script, stdin="a\n" + "word " * 40, check=False)
    assert_refused(refused, "line 2", "--max-words")
