"""fairseq's own programs with the plugin, as a user runs them."""

import json
import re
import shutil
from itertools import pairwise

import pytest
import sentencepiece
import torch
from cli.commands import CHUNKS, RECIPE, ROOT, SIZES, assert_refused, entries, prepare, run
from filelock import FileLock

from resmlp_mt.models.presets import PRESETS

PLUGIN = ["--user-dir", ROOT / "resmlp_mt"]


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


def test_own_command_fills_in_the_plugin(prepared, trained, plain):
    result = generate(prepared, trained / "checkpoint_best.pt", "--scoring", "sacrebleu")
    assert hypotheses(result.stdout) == hypotheses(plain)


def test_commands_say_nothing_needless(spoken):
    for word in ("Hydra", "hydra", "Warning", "deprecat"):
        assert word not in spoken.stderr + spoken.stdout


def test_padding_side_of_the_source_changes_nothing(prepared, trained, plain):
    # fairseq's flag is a switch that turns its default, left padding, off.
    result = generate(prepared, trained / "checkpoint_best.pt", "--left-pad-source")
    assert hypotheses(result.stdout) == hypotheses(plain)


SEARCHES = {
    "n-best, no repeats": ["--nbest", 3, "--no-repeat-ngram-size", 2, "--post-process", "none"],
    "sampling": ["--sampling", "--sampling-topp", 0.9, "--nbest", 2, "--beam", 2],
    "diverse beam": ["--diverse-beam-groups", 2, "--beam", 4],
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
    command += [
        "--bpe",
        "sentencepiece",
        "--sentencepiece-model",
        prepared / "spm.model",
        "--buffer-size",
        2,
    ]
    lines = "The dog sleeps.\tHund\nThe old man sees the cat.\t\tHaus\n"
    for order in ("ordered", "unordered"):
        output = run(*command, "--constraints", order, stdin=lines, check=False).stdout
        texts = re.findall(r"^D-\d+\t\S+\t(.*)", output, flags=re.M)
        assert len(texts) == 2 and "Hund" in texts[0] and "Haus" in texts[1]
    short = run(*command, "--constraints", "--max-len-b", 1, stdin=lines, check=False)
    assert_refused(short, "--constraints: a translation has no room")


def test_constraints_of_binarized_data_are_refused(prepared, trained):
    path = trained / "checkpoint_best.pt"
    for program in (("fairseq-generate",), ("resmlp-mt", "generate")):
        result = generate(prepared, path, "--constraints", program=program, check=False)
        assert_refused(result, "--constraints: binarized data holds no words")


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


def test_dropout_of_what_is_not_there_is_refused(prepared, trained):
    flags = ["--retain-dropout", "--retain-dropout-modules", "Nothing"]
    refused = generate(prepared, trained / "checkpoint_best.pt", *flags, check=False)
    assert_refused(refused, "--retain-dropout-modules")


def test_an_ensemble_of_one_model_twice_is_the_model(prepared, trained, plain):
    path = trained / "checkpoint_best.pt"
    assert hypotheses(generate(prepared, f"{path}:{path}").stdout) == hypotheses(plain)


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


def test_a_model_of_other_languages_is_warned_of(prepared, trained, spoken):
    swapped = ["-s", "de", "-t", "en", "--max-len-b", 2]
    result = generate(prepared, trained / "checkpoint_best.pt", *swapped)
    said = "was trained to translate from en to de, not from de to en"
    assert said in result.stderr + result.stdout
    assert "was trained to translate" not in spoken.stderr + spoken.stdout


def test_our_command_logs_where_and_as_fairseq_train_does(prepared, tmp_path):
    flags = ["--arch", "resmlp_tiny", *SIZES, *RECIPE, "--max-update", 2, "--log-interval", 1]
    shapes = []
    for program in (("fairseq-train", *PLUGIN), ("resmlp-mt", "train")):
        result = run(*program, prepared, *flags, "--save-dir", tmp_path / program[0])
        dated = re.findall(r"^\d{4}-\d\d-\d\d [\d:]{8} \| (\w+ \| \S+ \| \w+)", result.stdout, re.M)
        dated = [line for line in dated if "text_to_speech" not in line]
        assert not re.search("^INFO:", result.stdout + result.stderr, re.M)
        assert "imported" not in result.stdout + result.stderr
        shapes.append((dated, result.stderr))
    assert shapes[0] == shapes[1] and len(shapes[0][0]) > 20


def test_validate_gives_the_loss_of_training(prepared, trained):
    path = trained / "checkpoint_last.pt"
    command = ["resmlp-mt", "validate", prepared, "--path", path, "--max-tokens", 1000]
    result = run(*command, "--log-format", "json")
    loss = re.search(r'"valid_loss": "?([\d.]+)', result.stdout + result.stderr)
    logged = re.findall(r'"valid_loss": "([\d.]+)"', (trained / "train.log").read_text())
    assert float(loss[1]) == pytest.approx(float(logged[-1]), abs=2e-3)


def test_training_resumes_where_it_stopped(prepared, tmp_path):
    """With subwords sampled anew in every epoch it ends as a training that never stopped."""
    command = ["resmlp-mt", "train", prepared, "--arch", "resmlp_tiny", *SIZES, *RECIPE]
    command += ["--subword-sampling", 0.2, "--save-dir"]
    run(*command, tmp_path / "stopped", "--max-epoch", 1)
    first = torch.load(tmp_path / "stopped" / "checkpoint1.pt", weights_only=True)
    result = run(*command, tmp_path / "stopped", "--max-epoch", 2)
    second = torch.load(tmp_path / "stopped" / "checkpoint2.pt", weights_only=True)
    updates = [state["optimizer_history"][-1]["num_updates"] for state in (first, second)]
    assert updates[1] == 2 * updates[0]
    logged = re.findall(r'"num_updates": "(\d+)"', result.stdout + result.stderr)
    assert logged and all(int(number) > updates[0] for number in logged)
    # Blocks are computed again to the same weights.
    frugal = ["--num-workers", 1, "--checkpoint-activations"]
    run(*command, tmp_path / "whole", "--max-epoch", 2, *frugal)
    whole = torch.load(tmp_path / "whole" / "checkpoint2.pt", weights_only=True)
    assert all(torch.equal(whole["model"][k], tensor) for k, tensor in second["model"].items())


def test_validation_takes_the_training_text_as_it_was_prepared(prepared, tmp_path):
    command = ["resmlp-mt", "train", prepared, "--arch", "resmlp_tiny", *SIZES, *RECIPE]
    command += ["--subword-sampling", 0.3, "--max-update", 2, "--save-dir", tmp_path]
    run(*command, "--disable-validation")
    data = shutil.copytree(prepared, tmp_path / "data")
    for path in data.glob("train.*"):
        shutil.copy(path, path.with_name(path.name.replace("train", "valid9")))
    command = ["resmlp-mt", "validate", data, "--path", tmp_path / "checkpoint_last.pt"]
    command += ["--valid-subset", "train,valid9", "--skip-invalid-size-inputs-valid-test"]
    result = run(*command, "--max-tokens", 1000, "--log-format", "json")
    train, copy = (
        {name.partition("_")[2]: value for name, value in entry.items()}
        for subset in ("train", "valid9")
        for entry in entries(result.stdout + result.stderr, f"{subset}_loss")
    )
    assert train == copy and "loss" in train


def test_subwords_that_cannot_be_sampled_are_named(prepared, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(prepared, bare, ignore=shutil.ignore_patterns("spm*"))
    command = ["--arch", "resmlp_tiny", *SIZES, *RECIPE, "--save-dir", tmp_path]
    for data, alpha, said in ((bare, 0.1, "bare has no spm.en.model"), (prepared, 1.5, "below 1")):
        refused = run(
            "resmlp-mt", "train", data, *command, "--subword-sampling", alpha, check=False
        )
        assert_refused(refused, "--subword-sampling", said)


def test_a_training_goes_on_in_chunks_as_it_would_have(prepared, trained, tmp_path):
    command = ["fairseq-train", prepared, *PLUGIN, "--arch", "resmlp_plus_tiny", *SIZES, *RECIPE]
    command += [*CHUNKS, "--report-accuracy", "--max-epoch", 3, "--save-dir", tmp_path]
    shutil.copy(trained / "checkpoint2.pt", tmp_path / "checkpoint_last.pt")
    result = run(*command)
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


def test_adamw_trains_as_adam_does_and_resumes(prepared, tmp_path):
    losses = {}
    for name, ends in {"adam": [2], "adamw": [1, 2]}.items():
        command = ["resmlp-mt", "train", prepared, "--arch", "resmlp_tiny", *SIZES, *RECIPE]
        command += ["--optimizer", name, "--weight-decay", 0.01, "--adam-betas", "(0.9, 0.98)"]
        command += ["--save-dir", tmp_path / name, "--dropout", 0]
        outputs = [run(*command, "--max-epoch", epoch) for epoch in ends]
        text = "".join(result.stdout + result.stderr for result in outputs)
        losses[name] = [float(loss) for loss in re.findall(r'"train_loss": "([\d.]+)"', text)]
    assert len(losses["adam"]) == 2 and losses["adamw"] == pytest.approx(losses["adam"], abs=0.02)


@pytest.mark.parametrize("flags", ["--arch transformer", "--arch resmlp_tiny --bf16"])
def test_muon_takes_the_maps_of_every_model_and_resumes(flags, prepared, tmp_path):
    sizes = " ".join(SIZES).replace("--mixing-heads 4", "")
    command = ["fairseq-train", prepared, *PLUGIN, *flags.split(), *sizes.split(), *RECIPE]
    command += ["--optimizer", "muon", "--lr", 0.003, "--save-dir", tmp_path]
    outputs = [run(*command, "--max-epoch", epoch).stdout for epoch in (1, 2)]
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
    command = ["resmlp-mt", "train", data, "--arch", "resmlp_plus_tiny", *SIZES, *RECIPE]
    command += ["--dropout", 0, "--max-update", 6, "--log-interval", 1, "--save-dir", out]
    result = run(*command, *flags)
    return [float(entry["loss"]) for entry in entries(result.stdout + result.stderr, "ups")]


@pytest.fixture(scope="session")
def losses_of_fp32(shared, prepared):
    found = shared / "losses-of-fp32.json"
    with FileLock(found.with_suffix(".lock")):
        if not found.exists():
            found.write_text(json.dumps(first_losses(prepared, shared / "fp32")))
    return json.loads(found.read_text())


@pytest.mark.parametrize(
    "flags",
    [
        ["--bf16"],
        ["--bf16", *CHUNKS],
        ["--memory-efficient-bf16", *CHUNKS],
        ["--amp", *CHUNKS],
    ],
    ids=" ".join,
)
def test_the_first_losses_in_low_precision_are_those_of_fp32(
    flags, prepared, losses_of_fp32, tmp_path
):
    losses = first_losses(prepared, tmp_path, *flags)
    assert len(losses) == 6 and losses == pytest.approx(losses_of_fp32, abs=0.05)


def test_compilation_without_a_compiler_is_refused(prepared, tmp_path):
    command = ["resmlp-mt", "train", prepared, "--arch", "resmlp_tiny", *SIZES, *RECIPE]
    command += ["--torch-compile", "--save-dir", tmp_path / "model"]
    bare = {"PATH": "", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    assert_refused(run(*command, check=False, env=bare), "--torch-compile needs a C++ compiler")


def test_a_preset_holds_under_hydra_but_for_what_is_given(prepared, tmp_path):
    positions = {"max_source_positions": 60, "max_target_positions": 50}
    config = {
        "common": {"user_dir": str(ROOT / "resmlp_mt")},
        "task": {"_name": "translation", "data": str(prepared), **positions},
        "model": {"_name": "resmlp_plus_tiny", "encoder_layers": 2},
        "criterion": {"_name": "label_smoothed_cross_entropy"},
        "optimizer": {"_name": "adam"},
        "lr_scheduler": {"_name": "fixed"},
        "dataset": {"max_tokens": 500, "num_workers": 0},
        "optimization": {"max_update": 1, "lr": [0.01]},
        "checkpoint": {"save_dir": str(tmp_path), "no_epoch_checkpoints": True},
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(config))  # JSON is YAML
    flags = ["--config-dir", tmp_path, "--config-name", "mine", "+model.decoder_layers=1"]
    run("fairseq-hydra-train", *flags, cwd=tmp_path)
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    model = state["cfg"]["model"]
    expected = PRESETS["resmlp_plus_tiny"] | {"encoder_layers": 2, "decoder_layers": 1}
    assert {name: model[name] for name in expected} == expected
    assert model["max_target_positions"] == 50 and model["_name"] == "resmlp_plus_tiny"
    assert state["model"]["decoder.blocks.0.norm_1.weight"].shape == (128,)


def test_impossible_models_are_refused(prepared, tmp_path):
    command = ["resmlp-mt", "train", prepared, "--arch", "resmlp_tiny", *SIZES, *RECIPE]
    for flags, said in {
        ("--mixing-heads", 3): "3 mixing heads do not divide 16 channels",
        ("--decoder-layers", 0): "--decoder-layers must be at least 1, not 0",
        ("--max-source-positions", 2): "all of it is longer than --max-source-positions",
    }.items():
        assert_refused(run(*command, *flags, "--save-dir", tmp_path, check=False), said)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("--arch resmlp_tiny --token-mixer conv3x3", "--token-mixer conv3x3: --arch resmlp_tiny"),
        ("--arch resmlp_s12 --token-mixer toeplitz", "--token-mixer toeplitz: --arch resmlp_s12"),
        ("--arch resmlp_tiny --token-ffn-embed-dim 8", "--token-ffn-embed-dim"),
        ("--arch resmlp_s12 --task translation", "--arch resmlp_s12"),
        ("--arch resmlp_tiny --task image_classification", "--arch resmlp_tiny"),
        ("--arhc resmlp_tiny", "--arch"),
        ("--arch resmlp_plus_tin", "--arch resmlp_plus_tin"),
        ("--arch resmlp_tiny --optimizer adamm", "--optimizer adamm"),
        ("--arch resmlp_tiny --max-tokens x", "--max-tokens"),
        ("--arch resmlp_tiny --optimizer adam --fp16", "--bf16"),
    ],
)
@pytest.mark.parametrize("program", [("fairseq-train", *PLUGIN), ("resmlp-mt", "train")])
def test_presets_and_flags_that_are_not_there_are_refused_in_a_line(
    program, flags, named, tmp_path
):
    result = run(*program, tmp_path, *flags.split(), check=False)
    assert_refused(result, named)
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "kind", ["--arch resmlp_tiny", "--arch resmlp_s12 --task image_classification"]
)
def test_data_that_are_not_there_are_refused_before_a_folder_is_made(kind, tmp_path):
    flags = [*kind.split(), "--batch-size", 8, "--optimizer", "adam"]
    result = run("resmlp-mt", "train", "nowhere", *flags, check=False, cwd=tmp_path)
    assert_refused(result, "train: nowhere: no such file or folder")
    assert len(result.stderr.splitlines()) == 1 and not list(tmp_path.iterdir())


def test_sets_to_validate_on_that_nobody_asks_for_are_named(prepared, tmp_path):
    data = shutil.copytree(prepared, tmp_path / "data", ignore=shutil.ignore_patterns("raw"))
    for path in list(data.glob("valid.*")):
        shutil.copy(path, data / path.name.replace("valid", "valid1"))
    command = ["resmlp-mt", "train", data, "--arch", "resmlp_tiny", *SIZES, *RECIPE]
    refused = run(*command, "--save-dir", tmp_path, check=False)
    assert_refused(refused, "valid1", "--ignore-unused-valid-subsets")


@pytest.mark.parametrize("program", ["generate", "interactive", "validate"])
def test_a_checkpoint_that_is_not_there_is_refused(prepared, program):
    for path in "nope.pt", f"{prepared}:nope.pt":
        result = run("resmlp-mt", program, prepared, "--path", path, check=False)
        assert_refused(result, "no such model" if path == "nope.pt" else "no checkpoint in this")


def test_validate_finds_the_task_and_the_model(prepared, trained, pictures):
    limits = ["--batch-size", 16, "--user-dir", ROOT / "resmlp_mt"]
    result = run("fairseq-validate", prepared, "--path", trained, *limits, check=False)
    assert result.returncode == 0 and "loss" in result.stdout + result.stderr
    # A model that comes with the package, by its name; its pictures have other classes than ours.
    result = run("resmlp-mt", "validate", pictures, "--path", "cifar10", *limits, check=False)
    assert_refused(result, "classes")
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


def test_a_plugin_that_is_not_there_is_named(prepared):
    refused = run("resmlp-mt", "train", prepared, "--user-dir", "nowhere", check=False)
    assert_refused(refused, "nowhere: no such file or folder")


def test_paths_that_are_not_there_are_named():
    model = ROOT / "resmlp_mt/pretrained/multi30k-en-de"
    whole = {"--path": model / "model.pt", "--input": ROOT / "README.md"}
    for name, flag in (("resmlp-mt", "--path"), ("resmlp-mt", "--input"), ("fairseq", "--input")):
        flags = [x for pair in (whole | {flag: "nope"}).items() for x in pair]
        command = [name, "interactive"] if name == "resmlp-mt" else ["fairseq-interactive", *PLUGIN]
        languages = ["--source-lang", "en", "--target-lang", "de"]
        assert_refused(run(*command, model, *languages, *flags, check=False), "nope: ")
    result = run("resmlp-mt", "generate", model, "--path", "nope", *languages, check=False)
    assert_refused(result, "nope: no such model", "multi30k-en-de")
    assert "cifar10" not in result.stderr


def test_data_of_another_dictionary_is_refused(raw, prepared, trained, tmp_path):
    prepare(raw, tmp_path / "other", "--vocab-size", 200)
    path = trained / "checkpoint_best.pt"
    state = torch.load(path, weights_only=False) | {"task_state": {}}
    torch.save(state, tmp_path / "old.pt")  # as older versions wrote it
    for model, said in (path, "not trained on text as"), (tmp_path / "old.pt", "a dictionary of"):
        refusal = run("resmlp-mt", "generate", tmp_path / "other", "--path", model, check=False)
        assert_refused(refusal, f"{model}: ", said, "prepare --like")


def test_logs_are_json(trained):
    lines = [
        line for line in (trained / "train.log").read_text().splitlines() if "num_updates" in line
    ]
    assert lines and all(json.loads(line[line.index("{") :]) for line in lines)


def test_toeplitz_matrices_take_longer_sentences_than_in_training(tmp_path):
    folder = ROOT / "resmlp_mt" / "pretrained" / "multi30k-en-de"
    flags = [folder, "--path", folder / "model.pt", "--user-dir", ROOT / "resmlp_mt"]
    flags += ["--bpe", "sentencepiece", "--sentencepiece-model", folder / "spm.model"]
    flags += ["--source-lang", "en", "--target-lang", "de", "--max-len-b", 20]
    text = "A man rides a bike.\n" + "A man rides a bike. " * 40 + "\n"
    overrides = (ROOT / "docs" / "open-questions.md").read_text().split('--model-overrides "')[1]
    flags += ["--model-overrides", overrides.split('"')[0]]
    found = run("fairseq-interactive", *flags, stdin=text).stdout
    translations = [line.split("\t")[2] for line in found.splitlines() if line.startswith("D-")]
    short = run("resmlp-mt", "translate", "--model", "multi30k-en-de", stdin=text).stdout
    assert translations[0] == short.splitlines()[0] and len(translations[1].split()) > 5
