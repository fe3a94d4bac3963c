"""Write the shortlist of an export as a vocabulary map of CTranslate2, so that both sides have it.

python examples/benchmarks/vmap.py EXPORT vmap.txt
ct2-fairseq-converter ... --vocab_mapping vmap.txt
"""

import argparse
from pathlib import Path

from resmlp_mt.engines.exported import load_exported_translator


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export", type=Path, help="made with --shortlist")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    engine, codec = load_exported_translator(arguments.export)
    found = engine.shortlist
    with open(arguments.out, "w", encoding="utf-8") as stream:
        stream.write(f"\t{' '.join(codec.name_target(found.always))}\n")
        for number, end in enumerate(found.starts[1:]):
            symbols = found.symbols[found.starts[number] : end]
            if len(symbols):
                word = codec.source_dictionary[number]
                stream.write(f"{word}\t{' '.join(codec.name_target(symbols))}\n")


if __name__ == "__main__":
    main()
