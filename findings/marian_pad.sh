#!/usr/bin/env bash
# CTranslate2 4.8.5 drops Marian's <pad> as it converts, and transformers 4.57.6 gives it a
# probability: a pair has another score in each.
#
# Two random models, one Marian and one M2M-100, are saved by transformers, converted by
# ct2-transformers-converter, and asked for the log-probabilities of the same 12 tokens. One would
# guess that each gets the same in both, but for rounding. M2M-100 does, to 0.0001. Marian does not:
# each token is likelier in CTranslate2, by -log(1 - p), where p is what <pad> has in transformers
# (0.012 to 0.017 seen). The converter removes the row of <pad> from the output layer; searches are
# the same, since transformers bars <pad> there.
# Installs torch: on Linux its file from PyPI has gigabytes. Exits with 1 where they do otherwise.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/try.py" <<'END'
import io
import json
import subprocess
import sys
from pathlib import Path

import ctranslate2
import sentencepiece
import torch
import transformers

sizes = dict(
    d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24,
    max_position_embeddings=64, init_std=0.3,
)
text = ["a small dog runs over the green field", "two men sit at a table and read"]
learned = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(text * 9), model_writer=learned, vocab_size=28, minloglevel=2
)
read = sentencepiece.SentencePieceProcessor(model_proto=learned.getvalue())
names = [read.id_to_piece(i) for i in range(3, len(read))]


def make(kind):
    folder = Path(kind)
    folder.mkdir()
    for name in ("source.spm", "target.spm", "sentencepiece.bpe.model"):
        (folder / name).write_bytes(learned.getvalue())
    if kind == "marian":
        symbols = ["</s>", "<unk>", *names, "<pad>"]
        (folder / "vocab.json").write_text(json.dumps({s: i for i, s in enumerate(symbols)}))
        files = [str(folder / f) for f in ("source.spm", "target.spm", "vocab.json")]
        tokenizer = transformers.MarianTokenizer(*files)
        special = dict(
            eos_token_id=0, forced_eos_token_id=0, pad_token_id=len(symbols) - 1,
            decoder_start_token_id=len(symbols) - 1,
        )
        config = transformers.MarianConfig(vocab_size=len(symbols), **sizes, **special)
        model = transformers.MarianMTModel(config)
    else:
        tokenizer = transformers.NllbTokenizer(str(folder / "sentencepiece.bpe.model"))
        special = dict(
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id, decoder_start_token_id=tokenizer.eos_token_id,
        )
        config = transformers.M2M100Config(vocab_size=len(tokenizer), **sizes, **special)
        model = transformers.M2M100ForConditionalGeneration(config)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    convert = Path(sys.executable).with_name("ct2-transformers-converter")
    subprocess.run([convert, "--model", kind, "--output_dir", f"{kind}-ct2"], check=True)
    return tokenizer, model, ctranslate2.Translator(f"{kind}-ct2")


def compare(kind):
    """Log-probabilities in CTranslate2 less those in transformers; and of <pad> in the latter."""
    torch.manual_seed(1)
    tokenizer, model, other = make(kind)
    source, target = names[:10] + ["</s>"], names[10:21] + ["</s>"]
    ids = [torch.tensor([tokenizer.convert_tokens_to_ids(side)]) for side in (source, target)]
    with torch.no_grad():
        log_p = model(input_ids=ids[0], labels=ids[1]).logits.log_softmax(-1)[0]
    # What CTranslate2 adds itself is left out.
    config = json.loads(Path(f"{kind}-ct2", "config.json").read_text())
    given = source[:-1] if config["add_source_eos"] else source
    scored = torch.tensor(other.score_batch([given], [target[:-1]])[0].log_probs)
    return scored - log_p.gather(-1, ids[1][0, :, None])[:, 0], log_p[:, tokenizer.pad_token_id]


same, _ = compare("m2m")
apart, pad = compare("marian")
print("M2M-100:", f"{same.abs().max():.6f} apart at most")
print("Marian: ", " ".join(f"{value:.4f}" for value in apart))
print("-log(1 - p of <pad>): ", " ".join(f"{value:.4f}" for value in -torch.log1p(-pad.exp())))
told = same.abs().max() < 1e-4 < 1e-3 < apart.min()
sys.exit(not (told and torch.allclose(apart, -torch.log1p(-pad.exp()), atol=1e-4)))
END
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 sentencepiece==0.2.3 \
    transformers==4.57.6 ctranslate2==4.8.5 protobuf==7.36.2
cd "$work" && HF_HUB_OFFLINE=1 "$work/venv/bin/python" try.py
