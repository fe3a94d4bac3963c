"""A bag of subwords to compare with: tf-idf and logistic regression of scikit-learn.

    python examples/pnlp/baseline.py data-bin/domains --results examples/pnlp/results.csv

It reads the subwords that prepare.py wrote. The strength of its regularisation is the one that does
best on the validation set. Its size counts the weights, 4 bytes each, and not its vocabulary.
"""

import argparse
import csv
import subprocess
import sys
import time
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline


def main() -> int:
    """Train, score, and append the row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder of prepare.py")
    arguments = parser.parse_args()
    begun = time.time()
    train = read(arguments.data, "train")
    models = (fit(*train, strength) for strength in (1, 4, 16, 64))
    best = max(models, key=lambda model: model.score(*read(arguments.data, "valid")))
    weights = best[-1].coef_.size + best[-1].intercept_.size
    print(weights, time.time() - begun, best[-1].C)
    for name in ("valid", "test", "test1"):
        print(name, best.score(*read(arguments.data, name)))
    return 0


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
    sys.exit(main())
