"""Models of Hugging Face, converted for CTranslate2, judge pairs as they do in transformers."""

import io
import json
from pathlib import Path

import pytest
import sentencepiece
import torch
from cli.commands import run

from examples.student.teachers import make_teacher

pytest.importorskip("ctranslate2", reason="the extra [benchmark] is not installed")
transformers = pytest.importorskip("transformers", reason="transformers<5 is not installed")
if transformers.__version__ >= "5":
    pytest.skip("ctranslate2 4.8.5 converts with transformers<5", allow_module_level=True)


def learn_subwords(texts: list[str], out: Path) -> None:
    model = io.BytesIO()
    learn = sentencepiece.SentencePieceTrainer.train
    learn(sentence_iterator=iter(texts), model_writer=model, vocab_size=120, minloglevel=2)
    out.write_bytes(model.getvalue())


def make_nllb(texts: list[str], out: Path) -> tuple:
    """One like NLLB, with random weights: its tokenizer and model; tags before the subwords."""
    learn_subwords(texts, out / "sentencepiece.bpe.model")
    names = dict(src_lang="eng_Latn", tgt_lang="deu_Latn")
    tokenizer = transformers.NllbTokenizer(str(out / "sentencepiece.bpe.model"), **names)
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
        decoder_ffn_dim=24, max_position_embeddings=256, init_std=0.3,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return tokenizer, transformers.M2M100ForConditionalGeneration(config)


def make_marian(texts: list[str], out: Path) -> tuple:
    """One like OPUS-MT."""
    for side in ("source", "target"):
        learn_subwords(texts, out / f"{side}.spm")
    read = sentencepiece.SentencePieceProcessor(model_file=str(out / "source.spm"))
    pieces = ["</s>", "<unk>", *(read.id_to_piece(i) for i in range(3, len(read))), "<pad>"]
    (out / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    files = [str(out / name) for name in ("source.spm", "target.spm", "vocab.json")]
    tokenizer = transformers.MarianTokenizer(*files)
    config = transformers.MarianConfig(
        vocab_size=len(pieces), d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
        decoder_ffn_dim=24, max_position_embeddings=256, init_std=0.3, eos_token_id=0,
        forced_eos_token_id=0, pad_token_id=len(pieces) - 1, decoder_start_token_id=len(pieces) - 1,
    )  # fmt: skip
    return tokenizer, transformers.MarianMTModel(config)


@pytest.mark.parametrize(
    ("make", "files", "tags", "left_out"),
    [
        (
            make_nllb,
            ["sentencepiece.bpe.model"],
            {"source_prefix": ["eng_Latn"], "target_prefix": ["deu_Latn"]},
            None,
        ),
        # Its converter drops a symbol that transformers gives a probability.
        (make_marian, ["source.spm", "target.spm"], {}, "<pad>"),
    ],
)
def test_a_converted_model_finds_pairs_as_likely(make, files, tags, left_out, raw, tmp_path):
    texts = [(raw / f"train.{lang}").read_text().splitlines() for lang in ("en", "de")]
    published, out = tmp_path / "published", tmp_path / "model"
    published.mkdir()
    torch.manual_seed(1)
    tokenizer, model = make(texts[0] + texts[1], published)
    model.eval().save_pretrained(published)
    tokenizer.save_pretrained(published)
    command = ["ct2-transformers-converter", "--model", published, "--output_dir", out]
    run(*command, "--copy_files", *files, own=True)
    pairs = list(zip(*(side[:20] for side in texts), strict=True))
    found = make_teacher("ctranslate2", model=str(out), **tags).score(pairs)
    wanted = []
    for source, target in pairs:
        given = tokenizer(source, text_target=target, return_tensors="pt")
        with torch.no_grad():
            logits = model(**given).logits
        if left_out:
            logits[..., tokenizer.convert_tokens_to_ids(left_out)] = -torch.inf
        log_p = logits.log_softmax(-1)
        likely = log_p.gather(-1, given["labels"][..., None])[0, :, 0]
        # The tag of the language is given.
        wanted.append(-likely[len(tags.get("target_prefix", [])) :].mean().item())
    assert list(found) == pytest.approx(wanted, rel=1e-4)
