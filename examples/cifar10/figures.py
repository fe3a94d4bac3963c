"""Print the figures of a finished run as JSON, for scripts/append_row.py."""

import argparse
import json
from pathlib import Path


def main() -> None:
    """Collect the figures from the run's own files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of train.sh and evaluate.sh")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", required=True)
    arguments = parser.parse_args()

    valid = _last_entry(arguments.run / "validate.txt", "valid_top1")
    trained = _last_entry(arguments.run / "train.log", "train_num_updates")
    updates = int(trained["train_num_updates"])
    figures = {
        "model": arguments.model,
        "seed": arguments.seed,
        "parameters": None,  # from the log
        "updates": updates,
        "top1": f"{float(valid['valid_top1']):.2f}",
        "top5": f"{float(valid['valid_top5']):.2f}",
        "valid_loss": f"{float(valid['valid_loss']):.4f}",
        "train_loss": f"{float(trained['train_loss']):.4f}",
        "train_seconds": None,
        "commit": None,
        "date": None,
        "machine": None,
        "command": f"examples/cifar10/train.sh {arguments.model} {arguments.seed} {updates}",
    }
    print(json.dumps(figures))


def _last_entry(path: Path, key: str) -> dict:
    """The last JSON entry of a log that has the key."""
    lines = path.read_text(encoding="utf-8").splitlines()
    entries = (json.loads(line[line.index("{") :]) for line in lines if f'"{key}"' in line)
    return list(entries)[-1]


if __name__ == "__main__":
    main()
