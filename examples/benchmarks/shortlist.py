"""Race exports with a shortlist against CTranslate2 with a vocabulary map, and both without.

python examples/benchmarks/shortlist.py --export EXPORT --preview EXPORT --ctranslate2 FOLDER \
    --input TEST.en --csv examples/benchmarks/shortlist.csv

All rivals are in one process and take turns. A rate is sentences by the second of processor time,
on one thread, so that other work on the machine counts less. The models may be untrained: they then
say as many subwords as they may. Both sides take as many steps: the last one of ours says the end.
shortlist.sh makes the models.
"""

import argparse
import os
import time
from itertools import islice
from pathlib import Path

import ctranslate2
import numpy as np
from races.report import append_rows, make_rows, print_table
from races.rounds import Result
from races.translate import Case

from resmlp_mt.data.reading import read_lines
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.translating.translator import Translator

_BATCH = 32


def main() -> None:
    """Race."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", required=True, help="made with --shortlist")
    parser.add_argument("--preview", required=True, help="the same model, made with --preview")
    parser.add_argument("--ctranslate2", required=True, help="converted with --vocab_mapping")
    parser.add_argument("--input", type=Path, required=True, metavar="FILE")
    parser.add_argument("--size", default="", help="a word for the column")
    parser.add_argument("--type", default="", help="of the weights, for the column")
    parser.add_argument("--lines", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30, help="of the decoder, at most")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    ours, previewing = (
        Translator.from_pretrained(folder, threads=1)
        for folder in (arguments.export, arguments.preview)
    )
    theirs = ctranslate2.Translator(arguments.ctranslate2, inter_threads=1, intra_threads=1)
    texts = [ours.codec.split(t)[:60] for t in islice(read_lines(arguments.input), arguments.lines)]
    texts.sort(key=len)

    def search(batch: list, listed: bool, model: Translator = ours) -> None:
        sources = [model.codec.encode(pieces) for pieces in batch]
        options = SearchOptions(arguments.beam, max_len_b=arguments.steps - 1, shortlist=listed)
        model.engine.search(sources, options)

    def look_ahead(batch: list, listed: bool) -> None:
        search(batch, listed, previewing)

    def translate(batch: list, listed: bool) -> None:
        theirs.translate_batch(
            [list(pieces) for pieces in batch],
            beam_size=arguments.beam,
            max_decoding_length=arguments.steps,
            use_vmap=listed,
        )

    rivals = {
        "CTranslate2": (translate, False),
        "exported": (search, False),
        "exported, preview": (look_ahead, False),
        "CTranslate2, vmap": (translate, True),
        "exported, shortlist": (search, True),
    }
    results = []
    for size in (_BATCH, 1):
        batches = [texts[i : i + size] for i in range(0, len(texts), size)]
        samples: dict[str, list] = {name: [] for name in rivals}
        for round_ in range(arguments.rounds + 1):
            for name, (run, listed) in rivals.items():
                seconds = []
                for batch in batches:
                    start = time.process_time()
                    run(batch, listed)
                    seconds.append(time.process_time() - start)
                if round_:  # the first warms up
                    samples[name].append(seconds)
        case = Case(0 if size == 1 else size, arguments.beam)
        results += [
            _summarise(name, case, samples[name], samples["CTranslate2"], len(texts))
            for name in rivals
        ]
    about = {
        "size": arguments.size,
        "vocabulary": len(ours.codec.target_dictionary),
        "type": arguments.type,
        "isa": os.environ.get("RESMLP_CPU_ISA", ""),
        "text": arguments.input.name,
        "sentences": len(texts),
    }
    rows = make_rows(results, arguments.rounds, 1, **about, steps=arguments.steps)
    for row in rows:
        row["batch"] = row.pop("batch_tokens") or 1
    print_table(rows)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def _summarise(name: str, case: Case, own: list, first: list, sentences: int) -> Result:
    ratios = [sum(b) / sum(a) for a, b in zip(own, first, strict=True)]
    figures = {"rate": sentences / np.median([sum(seconds) for seconds in own])}
    single = case.batch_tokens == 0
    for column, share in (("median_ms", 50), ("p95_ms", 95)):
        value = 1000 * np.median([np.percentile(seconds, share) for seconds in own])
        figures[column] = float(value) if single else float("nan")
    return Result(name, case, figures, float(np.median(ratios)), (min(ratios), max(ratios)))


if __name__ == "__main__":
    main()
