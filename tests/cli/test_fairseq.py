"""fairseq's own programs with the plugin, as a user runs them."""

import json
import re
import shutil
from itertools import pairwise

import pytest
import sentencepiece
import torch
from cli.commands import (
    CHUNKS,
    PLUGIN,
    RECIPE,
    ROOT,
    SIZES,
    assert_refused,
    entries,
    once,
    prepare,
    run,
    train,
)

STOCK = {"program": ("fairseq-generate",)}


def generate(prepared, path, *options, program=("resmlp-mt", "generate"), **run_options):
    """By our command, which starts faster here than fairseq's, and says the same."""
    plugin = PLUGIN if len(program) == 1 else []
    common = ["--path", path, "--post-process", "sentencepiece", "--batch-size", 8]
    return run(*program, prepared, *plugin, *common, *options, **run_options)


def hypotheses(output):
    """{(number, rank): text} of fairseq-generate's output."""
    found = {}
    for line in output.splitlines():
        if line.startswith("H-"):
            number, _, text = line.split("\t")
            found.setdefault(number, []).append(text)
    return found


def scores(output):
    """The scores of fairseq-generate's hypotheses, in its order."""
    return [float(line.split("\t")[1]) for line in output.splitlines() if line.startswith("H-")]


@pytest.fixture(scope="module")
def spoken(prepared, trained):
    return generate(prepared, trained / "checkpoint_best.pt", "--scoring", "sacrebleu", **STOCK)


@pytest.fixture(scope="module")
def plain(spoken):
    return spoken.stdout


def test_generate_ends_with_a_sacrebleu_score(plain):
    assert re.search(r"Generate test with beam=5: .*BLEU.* = [\d.]+ ", plain)
    assert len(hypotheses(plain)) == 30


def test_the_compiled_search_prints_the_scores_of_fairseq(prepared, trained, plain, monkeypatch):
    monkeypatch.setenv("RESMLP_CPU_ISA", "none")
    path = trained / "checkpoint_best.pt"
    own = generate(prepared, path, "--scoring", "sacrebleu", **STOCK).stdout
    assert hypotheses(own).keys() == hypotheses(plain).keys()
    assert scores(own) == pytest.approx(scores(plain), abs=1e-4)


SEARCHES = {
    "n-best, no repeats": ["--nbest", 3, "--no-repeat-ngram-size", 2, "--post-process", "none"],
    "sampling": ["--sampling", "--sampling-topp", 0.9, "--nbest", 2, "--beam", 2],
    "prefix": ["--prefix-size", 2, "--post-process", "none"],
    "alignment, small beam": ["--print-alignment", "hard", "--beam", 1],
}


@pytest.mark.parametrize("options", SEARCHES.values(), ids=SEARCHES.keys())
def test_searches_of_fairseq_run(prepared, trained, options):
    program = STOCK if "--sampling" in options else {}
    output = generate(prepared, trained / "checkpoint_best.pt", *options, **program).stdout
    found = hypotheses(output)
    count = options[options.index("--nbest") + 1] if "--nbest" in options else 1
    assert len(found) == 30 and all(len(texts) == count for texts in found.values())
    if "--no-repeat-ngram-size" in options:
        for text in (text for texts in found.values() for text in texts):
            pairs = list(pairwise(text.split()))
            assert len(pairs) == len(set(pairs))
    if "--prefix-size" in options:
        targets = dict(re.findall(r"^T-(\d+)\t(\S+ \S+)", output, flags=re.M))
        assert targets == dict(re.findall(r"^H-(\d+)\t\S+\t(\S+ \S+)", output, flags=re.M))
    if "--print-alignment" in options:
        assert len(re.findall(r"^A-\d+\t\d+-\d+", output, flags=re.M)) == 30


def test_lexical_constraints_are_kept(prepared, trained):
    command = ["fairseq-interactive", prepared, *PLUGIN, "--path", trained / "checkpoint_best.pt"]
    command += ["--bpe", "sentencepiece", "--sentencepiece-model", prepared / "spm.model"]
    command += ["--buffer-size", 2]
    lines = "The dog sleeps.\tHund\nThe old man sees the cat.\t\tHaus\n"
    for order in ("ordered", "unordered"):
        output = run(*command, "--constraints", order, stdin=lines, check=False).stdout
        texts = re.findall(r"^D-\d+\t\S+\t(.*)", output, flags=re.M)
        assert len(texts) == 2 and "Hund" in texts[0] and "Haus" in texts[1]
    short = run(*command, "--constraints", "--max-len-b", 1, stdin=lines, check=False)
    assert_refused(short, "--constraints: a translation has no room")


def test_dropout_is_kept_where_it_is_asked_for(prepared, trained):
    def score(*flags):
        short = ["--beam", 1, "--max-len-b", 5]
        return scores(generate(prepared, trained / "checkpoint_best.pt", *short, *flags).stdout)

    kept = score("--retain-dropout", "--seed", 1)
    assert kept == score("--retain-dropout", "--seed", 1)
    encoder = ("--retain-dropout", "--retain-dropout-modules", "encoder", "--seed")
    drawn = kept, score("--retain-dropout", "--seed", 2), score(*encoder, 1), score(*encoder, 2)
    plain = score("--seed", 1)
    assert len({tuple(found) for found in (*drawn, plain)}) == 5
    assert score("--seed", 2) == plain


def test_interactive_answers_raw_text_with_the_subwords_of_the_data(prepared, trained, raw, plain):
    text = {"stdin": "".join((raw / "test.en").read_text().splitlines(True)[:4])}
    path = ["--path", trained / "checkpoint_best.pt"]
    own = run("resmlp-mt", "interactive", prepared, *path, **text)
    texts = re.findall(r"^D-(\d+)\t\S+\t(.*)", own.stdout, flags=re.M)
    assert {f"H-{number}": [text] for number, text in texts} == {
        f"H-{number}": hypotheses(plain)[f"H-{number}"] for number in range(4)
    }
    assert "subwords by" in own.stderr
    bpe = ["--bpe", "sentencepiece", "--sentencepiece-model", prepared / "spm.model"]
    told = run("fairseq-interactive", prepared, *PLUGIN, *path, *bpe, **text)
    assert re.findall(r"^D-.*", told.stdout, flags=re.M) == re.findall(
        r"^D-.*", own.stdout, flags=re.M
    )
    bpe = [f"--bpe={bpe[1]}", *bpe[2:]]
    told = run("resmlp-mt", "interactive", prepared, *path, *bpe, **text)
    assert "subwords by" not in told.stderr


def test_languages_whose_codes_have_hyphens_need_no_flags(raw, tmp_path):
    for split in ("train", "valid", "test"):
        shutil.copy(raw / f"{split}.en", tmp_path / f"{split}.pt-BR")
        shutil.copy(raw / f"{split}.de", tmp_path / f"{split}.zh-Hans")
    data, trained = tmp_path / "data", tmp_path / "trained"
    prepare(tmp_path, data, "-s", "pt-BR", "-t", "zh-Hans", "--separate")
    recipe = [flag for flag in RECIPE if flag != "--share-all-embeddings"]
    command = ["resmlp-mt", "train", data, "--arch", "resmlp_tiny", *SIZES, *recipe]
    run(*command, "--max-update", 2, "--save-dir", trained)
    path, (text, *_) = ["--path", trained], (raw / "test.en").read_text().splitlines(True)
    run("resmlp-mt", "validate", data, *path, "--batch-size", 8)
    said = run("resmlp-mt", "generate", data, *path, "--max-len-b", 5)
    assert len(hypotheses(said.stdout)) == 30 and "trained to translate" not in said.stderr
    said = run("resmlp-mt", "interactive", data, *path, "--max-len-b", 5, stdin=text)
    assert f"subwords by {data}/spm.pt-BR.model" in said.stderr and "H-0" in said.stdout
    translate = ["resmlp-mt", "translate", "--model"]
    assert run(*translate, trained / "checkpoint_last.pt", stdin=text).stdout.count("\n") == 1
    run("resmlp-mt", "pack", trained, "--out", tmp_path / "packed")
    refused = run("resmlp-mt", "interactive", tmp_path / "packed", *path, check=False)
    assert_refused(refused, "packed has no prepared text", "give --source-lang and --target-lang")


def test_validate_gives_the_loss_of_training(prepared, trained):
    path = trained / "checkpoint_last.pt"
    command = ["resmlp-mt", "validate", prepared, "--path", path, "--max-tokens", 1000]
    result = run(*command, "--log-format", "json")
    loss = re.search(r'"valid_loss": "?([\d.]+)', result.stdout + result.stderr)
    logged = re.findall(r'"valid_loss": "([\d.]+)"', (trained / "train.log").read_text())
    assert float(loss[1]) == pytest.approx(float(logged[-1]), abs=2e-3)


def test_a_training_goes_on_in_chunks_as_it_would_have(prepared, trained, tmp_path):
    shutil.copy(trained / "checkpoint2.pt", tmp_path / "checkpoint_last.pt")
    result = train(prepared, tmp_path, *CHUNKS, "--report-accuracy", "--max-epoch", 3)
    logs = result.stdout + result.stderr, (trained / "train.log").read_text()
    for key in ("train_nll_loss", "valid_nll_loss"):
        found, expected = (entries(log, key)[-1] for log in logs)
        kind = key.split("_")[0]
        assert 0 <= float(found[f"{kind}_accuracy"]) <= 100
        for name in ("loss", "nll_loss", "ppl", "num_updates"):
            known = float(expected[f"{kind}_{name}"])
            assert float(found[f"{kind}_{name}"]) == pytest.approx(known, rel=1e-3)
    weights = [
        torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]
        for folder in (tmp_path, trained)
    ]
    for name, weight in weights[0].items():
        if not name.endswith("key.bias"):  # has no gradient but rounding, which Adam enlarges
            torch.testing.assert_close(weight, weights[1][name], rtol=1e-3, atol=1e-3)


def test_the_architecture_of_the_paper_trains_and_translates(prepared, tmp_path):
    """The command of the model's card, by the plugin's path as seen from where it is typed."""
    command = ["fairseq-train", prepared, "--user-dir", "resmlp_mt", "--arch", "resmlp_wmt_en_de"]
    command += ["--max-source-positions", 64, "--max-target-positions", 64]
    command += ["--optimizer", "adagrad", "--lr", 0.2, "--warmup-updates", 32000]
    command += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1]
    command += ["--share-all-embeddings", "--max-tokens", 100, "--max-update", 2]
    command += ["--disable-validation", "--no-epoch-checkpoints", "--no-save-optimizer-state"]
    run(*command, "--num-workers", 0, "--save-dir", tmp_path, cwd=ROOT)
    path = tmp_path / "checkpoint_last.pt"
    weights = torch.load(path, weights_only=True)["model"]
    embeddings = weights["encoder.embed.tokens.weight"].numel()
    shared = sum(tensor.numel() == embeddings for tensor in weights.values())
    parameters = sum(map(torch.Tensor.numel, weights.values())) - (shared - 1) * embeddings
    # As docs/open-questions.md counts them, with 64 positions for 256 and fewer subwords.
    smaller = 12 * (256 * 257 - 64 * 65) + 32768 * 512 - embeddings
    assert shared == 3 and parameters == 49_115_136 - smaller
    command = ["fairseq-generate", prepared, *PLUGIN, "--path", path]
    output = run(*command, "--max-len-b", 3, "--beam", 4, cwd=tmp_path).stdout
    assert len(hypotheses(output)) == 30


def test_muon_takes_the_maps_of_a_model_and_resumes(prepared, tmp_path):
    flags = ["--bf16", "--optimizer", "muon", "--lr", 0.003, "--max-epoch"]
    outputs = [
        train(prepared, tmp_path, *flags, epoch, arch="resmlp_tiny").stdout for epoch in (1, 2)
    ]
    logged = [entry for text in outputs for entry in entries(text, "train_loss")]
    losses = [float(entry["train_loss"]) for entry in logged]
    assert len(losses) == 2 and losses[1] < losses[0]
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    muon, adamw = state["last_optimizer_state"]["param_groups"]
    matrices = [name for name, weight in state["model"].items() if weight.dim() == 2]
    maps = [n for n in matrices if not any(word in n for word in ("embed", "output", "bias"))]
    assert len(muon["params"]) == len(maps) > 8 and "betas" in adamw


def test_a_training_that_diverges_ends_with_advice(prepared, tmp_path):
    command = ["fairseq-train", prepared, *PLUGIN, "--arch", "resmlp_tiny", *SIZES, *RECIPE]
    command += ["--lr", 1e30, "--save-dir", tmp_path, "--save-interval-updates", 1]
    assert_refused(run(*command, check=False), "diverged", "Nan/Inf. Train on", "--clip-norm 1")
    assert (tmp_path / "checkpoint_1_1.pt").exists()


def first_losses(data, out, *flags):
    """Train for six updates."""
    result = train(data, out, "--dropout", 0, "--max-update", 6, "--log-interval", 1, *flags)
    return [float(entry["loss"]) for entry in entries(result.stdout + result.stderr, "ups")]


@pytest.fixture(scope="session")
def losses_of_fp32(shared, prepared):
    def make(path):
        path.write_text(json.dumps(first_losses(prepared, shared / "fp32")))

    return json.loads(once(shared / "losses-of-fp32.json", make).read_text())


@pytest.mark.parametrize(
    "flags",
    [["--bf16", *CHUNKS], ["--memory-efficient-bf16"], ["--amp", *CHUNKS]],
    ids=" ".join,
)
def test_the_first_losses_in_low_precision_are_those_of_fp32(
    flags, prepared, losses_of_fp32, tmp_path
):
    losses = first_losses(prepared, tmp_path, *flags)
    assert len(losses) == 6 and losses == pytest.approx(losses_of_fp32, abs=0.05)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("--arch resmlp_tiny --token-mixer conv3x3", "--token-mixer: invalid choice: 'conv3x3'"),
        ("--arch resmlp_s12 --task translation", "--arch resmlp_s12"),
        ("--arch resmlp_plus_tin", "resmlp_plus_tin"),
        ("--arch resmlp_tiny --optimizer adamm", "--optimizer: invalid choice: 'adamm'"),
        ("--arch resmlp_tiny --max-tokens x", "--max-tokens"),
        ("--arch resmlp_tiny --optimizer adam --fp16", "--bf16"),
    ],
)
def test_presets_and_flags_that_are_not_there_are_refused_in_a_line(flags, named, tmp_path):
    program = ["resmlp-mt", "train"] if "conv" in flags else ["fairseq-train", *PLUGIN]
    result = run(*program, tmp_path, *flags.split(), check=False)
    assert_refused(result, named)
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("program", ["generate", "interactive", "validate"])
def test_a_checkpoint_that_is_not_there_is_refused(prepared, program):
    result = run("resmlp-mt", program, prepared, "--path", "nope.pt", check=False)
    assert_refused(result, "nope.pt: no such model")


def test_validate_finds_the_task_and_the_model(prepared, trained):
    result = run("fairseq-validate", prepared, "--path", trained, "--batch-size", 16, *PLUGIN)
    assert "loss" in result.stdout + result.stderr
    assert_refused(
        run("resmlp-mt", "validate", prepared, check=False), "--path CHECKPOINT is missing"
    )


def test_a_source_longer_than_the_matrix_is_refused_with_its_line(raw, prepared, trained, tmp_path):
    command = ["resmlp-mt", "interactive", prepared, "--path", trained / "checkpoint_best.pt"]
    command += ["--bpe", "sentencepiece", "--sentencepiece-model", prepared / "spm.model"]
    text = "The dog sleeps.\n" + "the dog " * 60 + "\n"
    result = run(*command, "--buffer-size", 2, stdin=text, check=False)
    assert_refused(result, "line 2", "60")
    longest = int(re.search(r"model takes \((\d+)", result.stderr)[1])
    result = run(*command, "--buffer-size", 2, "--truncate-source", stdin=text)
    read = [line.split("\t")[1].split() for line in result.stdout.splitlines() if line[:2] == "S-"]
    cut = sentencepiece.SentencePieceProcessor(model_file=str(prepared / "spm.model"))
    pieces = [cut.encode(line, out_type=str) for line in text.splitlines()]
    assert read == [pieces[0], pieces[1][: longest - 1]]
    assert result.stdout.count("\nD-") == 2


def test_input_that_is_no_text_is_refused(prepared, trained, tmp_path):
    (tmp_path / "a.en").write_bytes(b"A dog.\n\xff\xfe\n")
    command = ["resmlp-mt", "interactive", prepared, "--path", trained / "checkpoint_best.pt"]
    refused = run(*command, "--input", tmp_path / "a.en", check=False)
    assert_refused(refused, "the input is no UTF-8: byte 0xff; convert it with iconv")


def test_data_of_another_dictionary_is_refused(raw, prepared, trained, tmp_path):
    prepare(raw, tmp_path / "other", "--vocab-size", 200)
    path = trained / "checkpoint_best.pt"
    state = torch.load(path, weights_only=False) | {"task_state": {}}
    torch.save(state, tmp_path / "old.pt")  # as older versions wrote it
    for model, said in (path, "not trained on text as"), (tmp_path / "old.pt", "a dictionary of"):
        refusal = run("resmlp-mt", "generate", tmp_path / "other", "--path", model, check=False)
        assert_refused(refusal, f"{model}: ", said, "prepare --like")
