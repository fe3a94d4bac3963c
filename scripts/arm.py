"""Translations with their scores, and classes, of the exports in a folder, for arm.sh to compare.

python scripts/arm.py FOLDER > KIND.json
python scripts/arm.py --compare I8MM.json DOTPROD.json OTHER.json...

The first two forms compute the same sums in 8 bits, and must agree to the last bit. The others are
plain forms, whose steps in 8 bits differ from those. In float32 all forms must give the same
translations with scores nearby; in 8 bits the plain ones must, which may round in another order.
"""

import json
import sys
from pathlib import Path

import numpy as np

from resmlp_mt import Classifier, Translator

_TEXTS = """Where did you learn that?
It is raining again.
A man is riding a bike down the street.
I would like a cup of tea, please.
She has lived in this town for ten years.
The train leaves at half past nine.""".splitlines()


def main() -> int:
    """Print the results as JSON, or compare such files."""
    if sys.argv[1] == "--compare":
        return compare([json.loads(Path(path).read_text()) for path in sys.argv[2:]])
    folder, found = Path(sys.argv[1]), {}
    for name in "full", "int8":
        model = Translator.from_pretrained(folder / name, threads=1)
        sources = [model.codec.encode(model.codec.split(text)) for text in _TEXTS]
        for beam in 1, 4:
            found[f"{name}, beam {beam}"] = [
                (beams[0][0].tolist(), float(beams[0][1]))
                for beams in model.engine.search(sources, options(beam))
            ]
    pixels = np.random.default_rng(1).integers(0, 256, (4, 32, 32, 3), np.uint8)
    classifier = Classifier.from_pretrained(folder / "classes", threads=1)
    found["classes"] = [
        ([best[0].index], best[0].probability) for best in classifier.classify(pixels)
    ]
    print(json.dumps(found))
    return 0


def options(beam: int):
    """The options of a search."""
    from resmlp_mt.engines.options import SearchOptions

    return SearchOptions(beam)


def compare(found: list[dict]) -> int:
    """Compare the results of the forms; returns 1 if they differ."""
    if found[0] != found[1]:
        print("i8mm and dotprod differ", file=sys.stderr)
        return 1
    for first, other in ((0, 2), *((2, i) for i in range(3, len(found)))):
        for name, lines in found[first].items():
            if first == 0 and not name.startswith("full"):
                continue
            said, scores = zip(*lines, strict=True)
            others, near = zip(*found[other][name], strict=True)
            allowed = 1e-4 if name.startswith("full") else 0.1
            if said != others or not np.allclose(scores, near, atol=allowed, rtol=0):
                print(f"{name}: {lines}\n{found[other][name]}", file=sys.stderr)
                return 1
    print(f"{len(found)} forms say the same, in {sum(map(len, found[0].values()))} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
