"""Print the figures of a finished run as JSON, for scripts/append_row.py."""

import argparse
import json
import re
from pathlib import Path


def main() -> None:
    """Collect the figures from the run's own files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of train.sh and evaluate.sh")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", required=True)
    arguments = parser.parse_args()
    log = (arguments.run / "train.log").read_text("utf-8")
    scored = (arguments.run / "validate.txt").read_text("utf-8")
    sizes = re.findall(r"num\. shared model params: ([\d,]+)", log)
    accuracy = {
        name: float(re.search(rf'"{name}_accuracy": "([\d.]+)"', scored)[1])
        for name in ("test", "test1")
    }
    updates = re.findall(r'"train_num_updates": "(\d+)"', log)[-1]
    parameters = int(sizes[-1].replace(",", ""))
    figures = {
        "model": arguments.model,
        "seed": arguments.seed,
        "parameters": parameters,
        "kilobytes": round(4 * parameters / 1000),
        "updates": int(updates),
        "accuracy": f"{accuracy['test']:.1f}",
        "accuracy_first_words": f"{accuracy['test1']:.1f}",
        "train_seconds": None,  # from the log
        "commit": None,
        "date": None,
        "machine": None,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
