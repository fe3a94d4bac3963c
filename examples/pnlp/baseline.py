"""A bag of subwords to compare with: tf-idf and logistic regression of scikit-learn.

    python examples/pnlp/baseline.py data-bin/domains |
        python scripts/append_row.py examples/pnlp/results.csv

It reads the subwords that prepare.py wrote. The strength of its regularisation is the one that does
best on the validation set. Its size counts the weights, 4 bytes each, and not its vocabulary.
"""

import argparse
import json
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

STRENGTHS = (1, 4, 16, 64)


def main() -> None:
    """Train, score, and print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder of prepare.py")
    arguments = parser.parse_args()
    begun = time.perf_counter()
    train, valid, *tests = (read(arguments.data, n) for n in ("train", "valid", "test", "test1"))
    best = max((fit(*train, strength) for strength in STRENGTHS), key=lambda m: m.score(*valid))
    parameters = best[-1].coef_.size + best[-1].intercept_.size
    whole, first_words = (100 * best.score(*test) for test in tests)
    figures = {
        "model": "bag of subwords",
        "seed": "",
        "parameters": parameters,
        "kilobytes": round(4 * parameters / 1000),
        "updates": "",
        "accuracy": f"{whole:.1f}",
        "accuracy_first_words": f"{first_words:.1f}",
        "train_seconds": round(time.perf_counter() - begun),
    }
    print(json.dumps(figures))


def read(data: Path, name: str) -> tuple[list[str], list[str]]:
    """Texts as subwords with blanks between them, and their labels."""
    return tuple(
        (data / "raw" / f"{name}.{suffix}").read_text("utf-8").splitlines()
        for suffix in ("subwords", "label")
    )


def fit(texts: list[str], labels: list[str], strength: float) -> Pipeline:
    """The model; a larger strength regularises less."""
    bag = TfidfVectorizer(analyzer=str.split, sublinear_tf=True)
    return make_pipeline(bag, LogisticRegression(C=strength, max_iter=1000)).fit(texts, labels)


if __name__ == "__main__":
    main()
