"""benchmark, on models just trained. Not the figures are tested, but what they are figures of."""

import csv
import sys

import pytest
import sacrebleu
from cli.commands import RECIPE, ROOT, SIZES, assert_refused, run, write_misfit_timm
from fairseq.checkpoint_utils import load_checkpoint_to_cpu, torch_persistent_save

from resmlp_mt.benchmark.image_models import ModelCase
from resmlp_mt.benchmark.translate import Case, list_rivals
from resmlp_mt.cli.parser import build_parser
from resmlp_mt.errors import UserError


def rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_translation_is_raced_with_the_scores_beside_the_speed(packed, raw, tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    run("resmlp-mt", "export", packed, "--out", tmp_path / "fast")
    flags = [
        "--input",
        raw / "test.en",
        "--reference",
        raw / "test.de",
        "--csv",
        tmp_path / "t.csv",
        "--tokenize",
        "char",
    ]
    models = ["--models", f"plain={packed}", f"fast={tmp_path / 'fast'}"]
    options = ["--batch-tokens", 0, 100, "--beam", 3, 1, "--rounds", 1, "--threads", 1]
    output = run("resmlp-mt", "benchmark", "translate", *flags, *models, *options).stdout
    options[1:3] = [100]
    run("resmlp-mt", "benchmark", "translate", *flags, *models[:2], *options)  # appends its row
    table = rows(tmp_path / "t.csv")
    found = [(row["rival"], row["batch_tokens"], row["beam"], row["threads"]) for row in table]
    races = [(n, t, b, "1") for t in ("0", "100") for b in "31" for n in ("plain", "fast")]
    assert found == races + [("plain", "100", b, "1") for b in "31"]
    references = (raw / "test.de").read_text().splitlines()
    for beam in "31":
        words = ["--model", packed, "--beam", beam, "--input", raw / "test.en"]
        text = run("resmlp-mt", "translate", *words).stdout
        score = sacrebleu.corpus_bleu(text.splitlines(), [references], tokenize="char").score
        assert {row["bleu"] for row in table if row["beam"] == beam} == {f"{score:.4g}"}
    for row in table:
        assert float(row["rate"]) > 0 and float(row["memory_mib"]) > 50
        assert bool(row["median_ms"]) == bool(row["p95_ms"]) == (row["batch_tokens"] == "0")
        assert row["ratio"] == "1.00" or row["rival"] == "fast"
        assert row["sentences"] == str(len(references)) and "onnxruntime" in row["versions"]
    assert output.startswith("rival") and output.count("\n") == 9


@pytest.fixture(scope="module")
def transformer(prepared, tmp_path_factory):
    """A checkpoint of fairseq's Transformer."""
    out = tmp_path_factory.mktemp("transformer")
    sizes = [s for s in SIZES if "mixing" not in s and s != "4"]
    # More updates than the file has bytes: fairseq writes them among the sizes of its own models.
    train = ["fairseq-train", prepared, "--arch", "transformer", *sizes, *RECIPE]
    train += ["--max-update", 10**9]
    run(*train, "--encoder-attention-heads", 2, "--max-epoch", 12, "--save-dir", out)
    return out / "checkpoint_last.pt"


def convert(checkpoint, prepared, out):
    """fairseq's Transformer -> a folder of CTranslate2."""
    command = ["ct2-fairseq-converter", "--model_path", checkpoint, "--data_dir", prepared]
    command += ["--user_dir", ROOT / "resmlp_mt", "--output_dir", out]
    run(*command, "--source_lang", "en", "--target_lang", "de")
    return out


def test_ctranslate2_is_raced_and_scores_as_the_model_it_was_made_of(
    transformer, prepared, raw, tmp_path
):
    pytest.importorskip("ctranslate2", reason="the extra [benchmark] is not installed")
    out = convert(transformer, prepared, tmp_path / "converted")
    flags = ["--input", raw / "test.en", "--reference", raw / "test.de", "--rounds", 1]
    models = ["--models", f"fairseq={transformer}", f"converted={out}"]
    flags += ["--batch-tokens", 0, 200, "--beam", 2, "--csv", tmp_path / "t.csv"]
    run("resmlp-mt", "benchmark", "translate", *models, *flags)
    bleu = {(row["rival"], row["batch_tokens"]): row["bleu"] for row in rows(tmp_path / "t.csv")}
    for tokens in ("0", "200"):
        ours, theirs = (float(bleu[name, tokens]) for name in ("fairseq", "converted"))
        # Rounding may turn a sentence in which two translations are nearly as good.
        assert theirs == pytest.approx(ours, abs=5) and theirs > 0


def test_ctranslate2_translates_no_longer_than_its_model_has_positions(
    transformer, prepared, raw, tmp_path
):
    pytest.importorskip("ctranslate2", reason="the extra [benchmark] is not installed")
    sources, references = ((raw / f"test.{side}").read_text().split("\n") for side in ("en", "de"))
    short = tmp_path / "short.pt"  # fewer positions than any of the sentences needs
    limits = {"max_source_positions": 5, "max_target_positions": 6}
    torch_persistent_save(load_checkpoint_to_cpu(str(transformer), limits), str(short))
    converted = convert(short, prepared, tmp_path / "converted")

    def race_with(first):
        models = {"fairseq": str(first), "converted": str(converted)}
        for rival in list_rivals(models, sources[:2], references[:2], threads=1):
            yield rival.build(**rival.arguments)(Case(batch_tokens=100, beam=2))["rate"]

    assert all(rate > 0 for rate in race_with(short))
    with pytest.raises(UserError, match=f"{converted}: .*positions"):
        list(race_with(transformer))


def test_without_ctranslate2_it_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "model.bin").touch()
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    rival = list_rivals({"one": "multi30k-en-de", "theirs": str(tmp_path)}, [], [], threads=1)[1]
    with pytest.raises(UserError, match=r"needs CTranslate2: .*pip install -e '\.\[benchmark\]'"):
        rival.build(**rival.arguments)


def test_training_is_raced_by_the_trainer_of_fairseq(tmp_path):
    flags = ["--size", "tiny", "--length", 5, "--max-tokens", 40, "--updates", 1]
    short = "--max-source-positions 9 --max-target-positions 9"  # the usual ones take seconds
    flags += ["--flags", f"--dropout 0.2 {short}"]
    options = ["--rounds", 1, "--threads", 1, "--csv", tmp_path / "t.csv"]
    run("resmlp-mt", "benchmark", "train", *flags, *options)
    table = rows(tmp_path / "t.csv")
    rivals = ["transformer", "resmlp_tiny", "resmlp_plus_tiny"]
    assert [(row["rival"], row["length"]) for row in table] == [(r, "5") for r in rivals]
    for row in table:
        assert float(row["rate"]) > 0 and float(row["memory_mib"]) > 50
        assert row["flags"] == f"--dropout 0.2 {short}"
        assert (row["tokens"], row["updates"]) == ("40", "1")
        assert row["machine"].endswith(" cores")


@pytest.mark.parametrize("opponent", ["", "timm"])
def test_classifiers_are_raced_with_their_error_beside_the_speed(opponent, tmp_path, request):
    pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")
    flags = ["--arch", "resmlp_s12 --layers 3"]
    flags += ["--batch-size", 1, 2, "--images", 2, "--rounds", 1, "--threads", 1]
    rivals = ["unfolded", "exported", "exported int8"]
    if opponent:
        request.getfixturevalue("timm")
        flags.append("--timm")
        rivals = ["timm", "timm compiled", *rivals]
    # Compiling takes minutes, and is torch's.
    interpreted = {"TORCHDYNAMO_DISABLE": "1"} if opponent else {}
    run(
        "resmlp-mt",
        "benchmark",
        "images",
        *flags,
        "--csv",
        tmp_path / "t.csv",
        env=interpreted,
        own=bool(opponent),
    )
    table = rows(tmp_path / "t.csv")
    assert [(row["rival"], row["batch"]) for row in table] == [(r, b) for b in "12" for r in rivals]
    for row in table:
        assert row["batches"] == {"1": "2", "2": "1"}[row["batch"]]
        assert float(row["rate"]) > 0 and row["arch"] == "resmlp_s12 --layers 3"
        assert row["image_size"] == "224"
        bounds = {"unfolded": 0, "timm": 1e-6, "exported int8": 0.2}
        bound = bounds.get(row["rival"], 1e-4)
        assert float(row["error"]) <= bound


def test_several_classifiers_are_raced_with_what_they_cost(tmp_path):
    sizes = "--patch-size 4 --embed-dim 8 --layers 2"
    archs = [f"resmlp_s12 --token-mixer 'mlp' {sizes}", f"'s2mlp_deep' {sizes}"]
    flags = ["--image-size", 8, "--num-classes", 3, "--batch-size", 2, "--rounds", 1]
    command = ["resmlp-mt", "benchmark", "images", *flags, "--csv", tmp_path / "t.csv", "--arch"]
    run(*command, *archs)
    table = rows(tmp_path / "t.csv")
    assert [(row["rival"], row["arch"]) for row in table] == [(arch, arch) for arch in archs]
    assert all(float(row["rate"]) > 0 and row["error"] == "0" for row in table)
    # Of 4 patches: the stem, 2 blocks of an MLP over 4N and one over 4C, and the head.
    products = 4 * 48 * 8 + 2 * (8 * 2 * 4 * 16 + 4 * 2 * 8 * 32) + 8 * 3
    assert table[0]["multiply_adds"] == str(products)
    run("resmlp-mt", "benchmark", "images", *flags[2:], "--csv", tmp_path / "own.csv", "--arch",
        "resmlp_cifar --layers 1", "resmlp_s12 --embed-dim 8 --layers 1")  # fmt: skip
    assert [row["image_size"] for row in rows(tmp_path / "own.csv")] == ["32", "224"]
    for archs, said in (
        (["vgg"], "--arch vgg: no preset for images; there are resmlp_s12, "),
        (["resmlp_s12 'x"], "--arch resmlp_s12 'x: No closing quotation"),
        ([""], "--arch : no preset for images"),
        (["mixer_s16 --pooling average"], "--arch: unrecognized arguments: --pooling average"),
        (["resmlp_s12", "s2mlp_deep"], "patches of 16 x 16"),
        (["resmlp_cifar", "s2mlp_deep", "--timm", "--image-size", 32], "--timm: timm's model is"),
    ):
        assert_refused(run(*command, *archs, check=False), said)


# Of the papers' tables, in billions; that of gMLP is counted otherwise there.
MULTIPLY_ADDS = {
    "resmlp_s12": 3.0,
    "resmlp_s24": 6.0,
    "resmlp_b24": 23.0,
    "resmlp_s12_14": 4.0,
    "resmlp_s12_8": 14.0,
    "resmlp_b24_8": 100.2,
    "resmlp_s12 --token-mixer none": 2.8,
    "resmlp_s12 --token-mixer conv3x3": 6.0,
    "resmlp_s12 --token-mixer separable3x3": 3.2,
    "s2mlp_wide": 14.0,
    "s2mlp_deep": 10.5,
    "poolformer_s12": 1.8,
    "poolformer_m36": 8.8,
    "cyclemlp_b1": 2.1,
    "bit_r50x1": 4.1,
    "cyclemlp_b2": 3.9,
}


@pytest.mark.parametrize("arch", MULTIPLY_ADDS)
def test_what_an_image_costs_is_what_the_papers_say(arch):
    assert round(ModelCase(arch).count()["multiply_adds"] / 1e9, 1) == MULTIPLY_ADDS[arch]


def test_impossible_races_are_refused(packed, raw, tmp_path):
    text = ["--input", raw / "test.en", "--reference", raw / "test.de", "--rounds", 1]
    (tmp_path / "short.de").write_text("ein Satz\n")
    (tmp_path / "other.csv").write_text("model,score\n")
    (tmp_path / "train.csv").write_text("rival,size,flags,length,rate,versions,commit\n")
    columns = "rival,text,sentences,batch_tokens,beam,rate,bleu,median_ms,p95_ms,memory_mib,ratio"
    columns += ",least,most,rounds,threads,versions,machine,date,commit"
    (tmp_path / "older.csv").write_text(columns.replace(",p95_ms", "") + "\n")
    (tmp_path / "newer.csv").write_text(columns + ",weight\n")
    command = ["resmlp-mt", "benchmark", "translate"]
    for flags, said in (
        ([*text, "--models", packed], "NAME=MODEL"),
        ([*text, "--models", f"a={packed}", "b=/none"], "b: /none: no such model"),
        (
            ["--input", raw / "test.en", "--reference", tmp_path / "short.de", "--models", "a=b"],
            "1",
        ),
        ([*text, "--models", f"a={packed}", "--csv", tmp_path / "other.csv"], "other columns"),
        (
            [*text, "--models", f"a={packed}", "--csv", tmp_path / "train.csv"],
            "train.csv has no column text, sentences, batch_tokens, beam",
        ),
        ([*text, "--models", f"a={packed}", "--csv", tmp_path / "older.csv"], "no column p95_ms;"),
        ([*text, "--models", f"a={packed}", "--csv", tmp_path / "newer.csv"], "value of weight;"),
        ([*text, "--models", f"a={packed}", "--tokenize", "x"], "SacreBLEU has 13a, "),
        ([*text, "--models", f"a={packed}", "--beam", 10**6], "a: beam 1000000 must be less than"),
    ):
        assert_refused(run(*command, *flags, check=False), said)
    flags = ["train", "--flags=--criterion nonsense", "--rounds", 1]
    result = run("resmlp-mt", "benchmark", *flags, check=False)
    assert_refused(result, "--criterion nonsense: there is none of that name")
    assert "usage:" not in result.stderr
    flags = ["images", "--timm", "--rounds", 1, "--images", 1, "--batch-size", 1]
    misfit = {"PYTHONPATH": f"{write_misfit_timm(tmp_path)}:{ROOT}"}
    said = "timm is installed and cannot be imported"
    assert_refused(run("resmlp-mt", "benchmark", *flags, env=misfit, own=True, check=False), said)
    assert (tmp_path / "other.csv").read_text() == "model,score\n"


def test_a_race_is_warned_of_a_tokenizer_that_takes_sentences_for_words(tmp_path):
    (tmp_path / "text").write_text("猫坐在垫子上。\n", "utf-8")
    text = ["--input", tmp_path / "text", "--reference", tmp_path / "text", "--models", "a=/none"]
    arguments = build_parser().parse_args(["benchmark", "translate", *map(str, text)])
    with pytest.warns(UserWarning, match="--tokenize 13a"), pytest.raises(UserError, match="/none"):
        arguments.run(arguments)


@pytest.mark.parametrize(
    "line, said",
    [
        ("translate --models a=b --input x --reference y --rounds 0", "--rounds"),
        ("translate --models a=b --input x --reference y --batch-tokens 0 -1", "--batch-tokens"),
        ("train --length 16 0", "--length must be at least 1"),
        ("train --updates 0", "--updates must be at least 1"),
        ("train --size tiny --length 8 1025", "--length 1025 .* --max-source-positions, 1024"),
        (
            "train --size tiny --length 1024 --flags=--max-target-positions=16",
            "--length 1024 .* --max-target-positions, 16",
        ),
        ("translate --models a=b a=c --input x --reference y", "two models are called a"),
        ("train --flags=--update-freq=2", "takes no --update-freq=2"),
        ("train --flags=--source-lang=fr", "takes no --source-lang=fr"),
        ("train --flags='--user-dir", "No closing quotation; mend its quotes"),
        ("images --threads 4097", "--threads must be at most 4,096, not 4,097"),
        ("images --image-size 65536", "--image-size is at most 65535, not 65536"),
        ("images --batch-size 0", "--batch-size must be at least 1"),
        ("images --images 0", "--images must be at least 1"),
        ("images --image-size 0", "--image-size must be at least 1"),
    ],
)
def test_impossible_numbers_are_refused(line, said):
    arguments = build_parser().parse_args(["benchmark", *line.split()])
    with pytest.raises(UserError, match=said):
        arguments.run(arguments)


def test_a_training_is_measured_with_each_allocator(prepared, tmp_path):
    script = ROOT / "examples" / "benchmarks" / "allocators.py"
    command = ["python", script, prepared, "--updates", 1, "--csv", tmp_path / "a.csv"]
    missing = run(*command).stderr.count("is not installed")
    found = {row["rival"]: row for row in rows(tmp_path / "a.csv")}
    assert {"glibc", "glibc, memory kept"} <= set(found) and len(found) + missing == 5
    assert found["glibc"]["ratio"] == "1.00"
    for row in found.values():
        assert 0 < float(row["system"]) < float(row["processor_seconds"])
        assert float(row["memory_mib"]) > 100  # torch takes more
    failing = run(*command, "--flags=--arch=nothing", check=False, forks=True)
    assert failing.returncode == 1 and "failed" in failing.stderr
