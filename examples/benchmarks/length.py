"""Race exports against CTranslate2 over the length of translations: a step's time, and memory.

python examples/benchmarks/length.py --export EXPORT --ctranslate2 FOLDER --csv length.csv

All translations have exactly as many subwords as asked for, so the models may be untrained.
`shortlist.sh` says how both folders are made. Rivals are in one process and take turns. Seconds are
of the processor, on one thread. `past_mib` is what our search keeps of all beams' past at the end.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from races.report import append_rows, make_rows, print_table
from races.rounds import Result
from races.translate import Case


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--export", required=True, help="our model, whose positions reach to the longest"
    )
    parser.add_argument("--ctranslate2", required=True, help="a Transformer")
    parser.add_argument("--size", default="", help="a word for the column")
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 64, 256, 1000])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8], metavar="SENTENCES")
    parser.add_argument("--source", type=int, default=30, help="subwords of a source")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    results = []
    rivals = load(arguments)
    for batch in arguments.batches:
        for length in arguments.lengths:
            results += race(rivals, batch, length, arguments)
    about = {"size": arguments.size, "source_length": arguments.source}
    rows = make_rows(results, arguments.rounds, 1, **about)
    for row in rows:
        row["batch"] = row.pop("batch_tokens")
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def load(arguments: argparse.Namespace) -> dict:
    """Functions that translate a batch to a length, by rival; ours returns MiB of its past."""
    import ctranslate2

    from resmlp_mt.engines import folded_search
    from resmlp_mt.engines.kernels.steps import Steps
    from resmlp_mt.engines.options import SearchOptions
    from resmlp_mt.translating.translator import Translator

    ours = Translator.from_pretrained(arguments.export, threads=1)
    theirs = ctranslate2.Translator(arguments.ctranslate2, inter_threads=1, intra_threads=1)
    symbols = ours.codec.source_dictionary
    words = np.random.default_rng(1).integers(symbols.unk() + 1, len(symbols), arguments.source)
    beam, kept = arguments.beam, []

    class Watched(Steps):
        """Steps that are still known when the search has ended."""

        def __init__(self, *sizes, **named):
            super().__init__(*sizes, **named)
            kept[:] = [self]

    folded_search.Steps = Watched

    def search(batch: int, length: int) -> float:
        options = SearchOptions(beam, max_len_b=length, shortlist=False)
        ours.engine.search([np.append(words, ours.engine.end)] * batch, options)
        found = kept[0]
        return found.used * found.history[0].nbytes / 2**20

    def translate(batch: int, length: int) -> float:
        sentence = [symbols[i] for i in words]
        theirs.translate_batch(
            [sentence] * batch,
            beam_size=beam,
            max_decoding_length=length,
            min_decoding_length=length,
            max_input_length=0,
        )
        return float("nan")

    return {"CTranslate2": translate, "exported": search}


def race(rivals: dict, batch: int, length: int, arguments: argparse.Namespace) -> list[Result]:
    """Milliseconds a step, and MiB of the past, of each rival."""
    seconds: dict[str, list] = {name: [] for name in rivals}
    past = {}
    for round_ in range(arguments.rounds + 1):
        for name, run in rivals.items():
            start = time.process_time()
            past[name] = run(batch, length)
            if round_:  # the first warms up
                seconds[name].append(time.process_time() - start)
    results = []
    for name, own in seconds.items():
        ratios = [b / a for a, b in zip(own, seconds["CTranslate2"], strict=True)]
        figures = {"length": length, "step_ms": float(1000 * np.median(own) / (length + 1))}
        figures["past_mib"] = past[name]
        spread = min(ratios), max(ratios)
        case = Case(batch, arguments.beam)
        results.append(Result(name, case, figures, float(np.median(ratios)), spread))
    return results


if __name__ == "__main__":
    sys.exit(main())
