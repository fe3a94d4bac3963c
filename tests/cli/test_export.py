"""export and translate with what it wrote, on a model just trained and on the shipped one."""

import gzip
import json
import shutil

import numpy as np
import pytest
import sacrebleu
from cli.commands import IMAGE_SIZES, assert_refused, refuse, run
from compat.written import write_checkpoint
from safetensors.numpy import load

CAPTIONS = """A man rides a bike.
Two dogs play in the snow.
A woman in a red dress is standing in front of a large building.
Three children are sitting on a bench and eating ice cream.
An old man with a white beard reads a newspaper in the park.
The girl jumps into the swimming pool.
People are walking down a busy street at night.
A young boy throws a ball to his brown dog on the beach.
"""


def translate(model, *options, **run_options):
    return run("resmlp-mt", "translate", "--model", model, *options, **run_options)


@pytest.fixture(scope="module")
def exported(packed, raw, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "model"
    text = [raw / "train.en", raw / "train.de"]
    flags = ["--shortlist", *text, "--preview", *text]
    output = run("resmlp-mt", "export", packed, "--out", out, *flags).stdout
    assert f"wrote {out}" in output and "mixing.safetensors" in output
    return out


def test_an_exported_model_translates_as_its_checkpoint(packed, exported, raw):
    options = ["--input", raw / "test.en", "--nbest", 3, "--beam", 4, "--lenpen", 0.6]

    def said_by(model, *more, isa=""):
        result = translate(model, *options, *more, env={"RESMLP_CPU_ISA": isa})
        rows = [line.split("\t") for line in result.stdout.splitlines()]
        # Engines round differently, so that the last digit of a score may differ.
        return [(n, text) for n, _, text in rows], [float(score) for _, score, _ in rows]

    texts, scores = said_by(packed)
    assert len(texts) > 3 * 10
    for isa, *more in ([""], ["", "--threads", 1, "--batch-tokens", 1], ["Plain"]):
        found, found_scores = said_by(exported, "--no-shortlist", *more, isa=isa)
        assert found == texts and found_scores == pytest.approx(scores, abs=2e-4)
    listed, listed_scores = said_by(exported)
    # Of fewer subwords each is likelier; the first of a line is the best of its own.
    assert [n for n, _ in listed] == [n for n, _ in texts] and listed_scores != scores


def test_weights_of_fewer_bits_take_less_room(tmp_path):
    kinds = {"float": [], "8 bits": ["--int8"]}
    kinds |= {f"to {bits}": ["--int8", "--weight-bits", bits] for bits in (8, 6)}
    # Both sides of the list are English, so nothing comes out in German.
    (tmp_path / "text").write_text(CAPTIONS)
    kinds["to 8"] += ["--shortlist", *2 * [tmp_path / "text"], "--shortlist-first", 20]
    weights, sizes, tables, translations, listed = {}, {}, {}, {}, {}
    for kind, flags in kinds.items():
        out = tmp_path / kind
        run("resmlp-mt", "export", "multi30k-en-de", "--out", out, *flags)
        (file,) = out.glob("weights.*")
        data = file.read_bytes()
        sizes[kind] = len(data)
        # Python's own gzip reads what was compressed.
        weights[kind] = load(gzip.decompress(data) if "to" in kind else data)
        names = json.loads((out / "export.json").read_text())["decoder"]["output"]
        tables[kind] = [names[part] and weights[kind][names[part]] for part in ("weight", "scales")]
        translations[kind] = translate(out, "--no-shortlist", stdin=CAPTIONS).stdout
        listed[kind] = translate(out, stdin=CAPTIONS).stdout
    assert [kind for kind in kinds if listed[kind] != translations[kind]] == ["to 8"]
    assert sizes["8 bits"] < 0.35 * sizes["float"]
    assert sizes["to 8"] < 0.95 * sizes["8 bits"]
    assert sizes["to 6"] < 0.75 * sizes["8 bits"]
    assert translations["to 8"] == translations["8 bits"]
    for name, plain in weights["8 bits"].items():
        np.testing.assert_array_equal(weights["to 8"][name], plain)
    for kind, most in (("to 8", 127), ("to 6", 31)):
        rows, scales = tables[kind]
        assert np.abs(rows).max() == most and rows.dtype == np.int8
        # What is rounded is off by half a step at most.
        off = np.abs(rows * scales[:, None] - tables["float"][0])
        assert (off.max(1) <= 0.501 * scales).all()
    near, exact = (translations[kind].splitlines() for kind in ("to 6", "8 bits"))
    assert sacrebleu.corpus_bleu(near, [exact]).score > 70


def test_a_model_exported_anew_takes_the_place_of_the_old_one(exported, packed, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(exported, copy)
    (copy / "stray").write_text("somebody's")
    command = ["resmlp-mt", "export", packed, "--out", copy]
    assert_refused(run(*command, check=False), f"{copy} would be made anew, and loses stray;")
    assert (copy / "stray").read_text() == "somebody's"
    (copy / "stray").unlink()
    run(*command)
    # Without a shortlist and a preview, those of the old one go too.
    left = {path.name for path in exported.iterdir()} - {path.name for path in copy.iterdir()}
    assert left == {"shortlist.safetensors", "preview.safetensors"}


def test_what_has_no_export_is_refused(exported, prepared, tmp_path):
    assert f"{exported}: exported" in refuse("export", exported, "--out", tmp_path / "out")
    for arch, layers, said in (
        ("transformer_iwslt_de_en", 1, "no export of a TransformerModel"),
        ("resmlp_tiny", 0, "--encoder-layers 0"),
    ):
        flags = ["--arch", arch, "--encoder-layers", layers, "--decoder-layers", 1]
        write_checkpoint(tmp_path / "model.pt", *flags, data=prepared)
        assert said in refuse("export", tmp_path / "model.pt", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "flags",
    [[], ["--int8", "--weight-bits", 8]],
    ids=["float", "compressed"],
)
def test_an_exported_classifier_names_the_same(flags, classifier, pictures, tmp_path):
    run("resmlp-mt", "export", classifier, "--out", tmp_path / "fast", *flags)
    plain, fast = (
        json.loads(run("resmlp-mt", "classify", model, pictures / "val", "--json").stdout)
        for model in (classifier, tmp_path / "fast")
    )
    assert len(plain) == len(fast) > 10
    for expected, found in zip(plain, fast, strict=True):
        assert found["path"] == expected["path"]
        ours, theirs = (
            {guess["class"]: guess["probability"] for guess in entry["predictions"]}
            for entry in (found, expected)
        )
        assert max(ours, key=ours.get) == max(theirs, key=theirs.get)
        assert ours == pytest.approx(theirs, abs=0.1 if flags else 1e-4)


def test_a_classifier_that_cannot_be_folded_has_no_fewer_bits(pictures, tmp_path):
    flags = ["--task", "image_classification", *IMAGE_SIZES, "--token-mixer", "depthwise3x3"]
    write_checkpoint(tmp_path / "model.pt", *flags, data=pictures)
    command = ["export", tmp_path / "model.pt", "--out", tmp_path / "small", "--int8"]
    assert "--weight-bits" in refuse(*command, "--weight-bits", 6)


def test_an_export_of_one_kind_is_not_taken_for_the_other(exported, classifier, pictures, tmp_path):
    run("resmlp-mt", "export", classifier, "--out", tmp_path / "fast")
    assert "exported classifier" in refuse("translate", "--model", tmp_path / "fast", "a")
    assert "exported translator" in refuse("classify", exported, pictures / "val")
    (tmp_path / "fast" / "weights.safetensors").write_bytes(b"torn")
    assert "weights.safetensors" in refuse("classify", tmp_path / "fast", pictures / "val")


def test_what_an_export_cannot_do_is_refused(exported):
    for flag, value in ("--device", "cuda"), ("--threads", 0):
        assert refuse("translate", "--model", exported, "a", flag, value)
    for isa, said in (("sse2", "avx512, avxvnni, avx2"), ("none", "compiled code")):
        wrong = translate(exported, "a", env={"RESMLP_CPU_ISA": isa}, check=False)
        assert_refused(wrong, f"RESMLP_CPU_ISA={isa}", said)
