"""Race our search against Bergamot, Marian's fork in Firefox, with untrained models of one size.

python examples/benchmarks/marian.py SIZE TEXT BERGAMOT_PYTHON --csv examples/benchmarks/marian.csv

marian.sh says what is needed. Each rival has a process of its own with one thread, and they take
turns. A rate is sentences by the second of processor time, so that other work on the machine counts
less. Sources have 20 subwords with their end, translations 32. Subwords are split and put together
on both sides.
"""

import argparse
import json
import subprocess
import tempfile
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import sentencepiece
from races.report import append_rows, make_rows, print_table
from races.rounds import Rival, race
from races.translate import Case
from untrained import build, save

# Channels, hidden channels and symbols.
_SIZES = {"d256": (256, 1024, 8000), "d512": (512, 2048, 32000)}
_STEPS, _SUBWORDS, _SENTENCES = 32, 20, 64
_BERGAMOT = {
    "Bergamot": {"gemm-precision": "int8shift"},
    "Bergamot, int8shiftAll": {"gemm-precision": "int8shiftAll"},
    "Bergamot, int8shiftAll, 4,096 words": {
        "gemm-precision": "int8shiftAll",
        "mini-batch-words": 4096,
    },
}


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", choices=_SIZES)
    parser.add_argument("text", help="stem of TEXT.en and TEXT.de, for subwords and the preview")
    parser.add_argument("python", help="one that has bergamot==0.4.5")
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 1], help="sentences")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = make_models(arguments.size, arguments.text, Path(folder))
        ours = {"ours": "export", "ours, preview": "preview"}
        rivals = [
            Rival(
                name,
                start_bergamot,
                dict(size=arguments.size, folder=folder, asked=asked)
                | dict(python=arguments.python, texts=texts),
            )
            for name, asked in _BERGAMOT.items()
        ] + [
            Rival(name, start_ours, dict(export=f"{folder}/{export}", texts=texts))
            for name, export in ours.items()
        ]
        cases = [Case(*sizes) for sizes in product(arguments.batches, arguments.beams)]
        results = race(rivals, cases, arguments.rounds, threads=1, progress=True)
    about = {"size": arguments.size, "vocabulary": _SIZES[arguments.size][-1]}
    rows = make_rows(results, arguments.rounds, 1, **about, subwords=_SUBWORDS, steps=_STEPS)
    for row in rows:
        row["batch"] = row.pop("batch_tokens")
        row["ms"] = round(1000 / float(row["rate"]), 2)
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def make_models(size: str, text: str, folder: Path) -> list[str]:
    """Subwords and untrained exports in a folder; returns texts of so many subwords."""
    channels, hidden, symbols = _SIZES[size]
    sentencepiece.SentencePieceTrainer.train(
        input=[f"{text}.en", f"{text}.de"],
        model_prefix=f"{folder}/spm",
        vocab_size=symbols - 1,  # fairseq has one symbol more
        model_type="bpe",
        input_sentence_size=200_000,
        minloglevel=2,
    )
    (folder / "vocab.spm").write_bytes((folder / "spm.model").read_bytes())
    codec = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/spm.model")
    pieces = [codec.id_to_piece(i) for i in range(3, symbols - 1)]
    for language in "en", "de":
        lines = "".join(f"{piece} 1\n" for piece in pieces)
        (folder / f"dict.{language}.txt").write_text(lines, encoding="utf-8")
    sizes = {"embed-dim": channels, "ffn-embed-dim": hidden}
    flags = [f"--{side}-{n}={v}" for side in ("encoder", "decoder") for n, v in sizes.items()]
    flags += ["--encoder-layers=6", "--decoder-layers=2"]
    flags += [f"--max-{side}-positions=256" for side in ("source", "target")]
    languages = ["--source-lang", "en", "--target-lang", "de"]
    cfg, _, model = build(folder, ["--arch", "resmlp_plus_small", *flags, *languages])
    save(cfg, model, folder / "model.pt")
    command = ["resmlp-mt", "export", str(folder / "model.pt"), "--int8", "--out"]
    subprocess.run([*command, folder / "export"], check=True)
    preview = ["--preview", f"{text}.en", f"{text}.de"]
    subprocess.run([*command, folder / "preview", *preview], check=True)
    random = np.random.default_rng(1)
    words = [piece[1:] for piece in pieces if piece[0] == "\u2581" and piece[1:].isalpha()]
    texts = [" ".join(random.choice(words, _SUBWORDS - 1)) for _ in range(10 * _SENTENCES)]
    return [t for t in texts if len(codec.encode(t)) == _SUBWORDS - 1][:_SENTENCES]


def start_ours(export: str, texts: list[str]):
    """A function that translates a case's texts by an export."""
    from resmlp_mt.engines.options import SearchOptions
    from resmlp_mt.translating.translator import Translator

    model = Translator.from_pretrained(export, threads=1)
    codec = sentencepiece.SentencePieceProcessor(model_file=f"{export}/spm.model")

    def run(case: Case) -> dict[str, float]:
        some = texts if case.batch_tokens > 1 else texts[:16]
        start, subwords = time.process_time(), 0
        for first in range(0, len(some), case.batch_tokens):
            split = codec.encode(some[first : first + case.batch_tokens], out_type=str)
            sources = [model.codec.encode(pieces) for pieces in split]
            # The last step says the end.
            found = model.engine.search(sources, SearchOptions(case.beam, max_len_b=_STEPS - 1))
            for beams in found:
                codec.decode([model.codec.target_dictionary[i] for i in beams[0][0]])
                subwords += len(beams[0][0]) + 1
        seconds = time.process_time() - start
        return {"rate": len(some) / seconds, "said": subwords / len(some)}

    return run


def start_bergamot(size: str, folder: str, asked: dict, python: str, texts: list[str]):
    """A function that has a case's texts translated by marian_side.py."""
    channels, hidden, symbols = _SIZES[size]
    side = Path(tempfile.mkdtemp(dir=folder))  # a model of its own
    (side / "vocab.spm").symlink_to(Path(folder) / "vocab.spm")
    script = Path(__file__).with_name("marian_side.py")
    command = [python, script, side, *map(str, (symbols, channels, hidden))]
    # Outside the virtual environment of ours.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return partial(ask, process, asked, texts)


def ask(process: subprocess.Popen, asked: dict, texts: list[str], case: Case) -> dict[str, float]:
    """The figures of a case."""
    some = texts if case.batch_tokens > 1 else texts[:16]
    line = {**asked, "beam-size": case.beam, "texts": some, "batch": case.batch_tokens}
    process.stdin.write(json.dumps(line) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    return {"rate": len(some) / answer["seconds"], "said": answer["subwords"] / len(some)}


if __name__ == "__main__":
    main()
