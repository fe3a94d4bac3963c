"""Turn the JSON log of fairseq-train into a progress bar: fairseq-train ... 2>&1 | python ... ."""

import argparse
import json
import sys

from tqdm import tqdm


def main() -> None:
    """Read the log on standard input until it ends; keep what is not an entry to stderr's end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, required=True, metavar="N", help="--max-update")
    arguments = parser.parse_args()
    # On a terminal the bar moves; in a file or a CI log it is written out every ten seconds.
    patience = 0.1 if sys.stderr.isatty() else 10
    with tqdm(total=arguments.updates, unit=" updates", mininterval=patience) as bar:
        for line in sys.stdin:
            try:
                entry = json.loads(line[line.index("{") :])
            except ValueError:
                continue
            if "num_updates" in entry:
                bar.update(int(entry["num_updates"]) - bar.n)
                bar.set_postfix_str(f"loss {entry['nll_loss']}", refresh=False)


if __name__ == "__main__":
    main()
