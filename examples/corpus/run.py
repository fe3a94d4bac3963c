r"""Translate a corpus with many workers: Ray Data hands out its parts to a pool of actors.

    python examples/corpus/run.py --model checkpoints/captions --out translated \
        --field text --into translation --workers 4 corpus/*.jsonl

Takes text with a line for a line, JSON lines (both also packed), and Parquet. OUT gets a file for
each part, named by its number, in the form of its input: one after the other they are the corpus.
The same command goes on where it was stopped. OUT/report.json says how fast it was. Flags that are
not below are those of the search in `resmlp-mt translate`, such as --beam or --sampling.
"""

import argparse
import json
import logging
import os
import resource
import signal
import sys
import time
from pathlib import Path

import parts
import ray
from ray.data import ActorPoolStrategy, DataContext

from resmlp_mt import Translator
from resmlp_mt.checkpoints.checksum import checksum_model
from resmlp_mt.cli.flags import positive
from resmlp_mt.cli.search_flags import add_search, list_settings, read_search
from resmlp_mt.errors import UserError
from resmlp_mt.files.claim import claim_folder
from resmlp_mt.files.finding import locate_model
from resmlp_mt.files.output import whole_file
from resmlp_mt.translating.glossary import Glossary, read_glossary

PLAN, REPORT = "plan.json", "report.json"
_SHOWN = 10.0  # seconds between two lines of progress
# Flags that the parts do not depend on, or not by their own values.
_NO_MATTER = ("input", "model", "out", "workers", "threads", "address")


class Worker:
    """Holds the model, and translates one part after the other.

    Args:
        model, threads: As for `Translator.from_pretrained`.
        search: `SearchOptions`.
        terms: Those of a glossary, or None.
        out, field, into: As for `translate_part`.
    """

    def __init__(
        self,
        model: str,
        threads: int,
        search,
        terms: dict[str, str] | None,
        out: Path,
        field: str,
        into: str | None,
    ):
        self.translator = Translator.from_pretrained(model, "auto", threads)
        self.glossary = terms and Glossary(terms, self.translator.codec)
        self.search, self.out, self.field, self.into = search, out, field, into
        self.loaded = _memory()

    def __call__(self, part: dict) -> dict:
        """Translate a part; what it came to is all that goes back."""
        began = time.monotonic()

        def translate(texts: list[str]):
            led = {"first": part["first"], "glossary": self.glossary}
            found = self.translator.translate_nbest(texts, self.search, **led)
            return (best[0].text for best in found)

        fault = ""
        try:
            characters = parts.translate_part(part, self.out, self.field, self.into, translate)
        except UserError as error:
            characters, fault = 0, str(error)
        return {
            "worker": f"{ray.get_runtime_context().get_node_id()[:8]}-{os.getpid()}",
            "rows": part["rows"],
            "characters": characters,
            "seconds": time.monotonic() - began,
            "loaded_mb": self.loaded,
            "most_mb": _memory(),
            "fault": fault,
        }


def _memory() -> float:
    """The most memory that this process had, in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10, 1)


def main() -> int:
    """Find what is to be done, and have it done; a user's mistake is one message and status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("input", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--model", required=True, help="as for resmlp-mt translate")
    parser.add_argument("--out", type=Path, required=True, help="a folder that all workers see")
    parser.add_argument("--field", default="text", help="default: %(default)s")
    parser.add_argument("--into", help="default: in the place of the field")
    parser.add_argument(
        "--rows", type=positive, default=2000, help="of a part (default: %(default)s)"
    )
    parser.add_argument("--workers", type=positive, default=2, help="default: %(default)s")
    parser.add_argument(
        "--threads", type=positive, default=1, help="of each (default: %(default)s)"
    )
    parser.add_argument(
        "--address", help="of a Ray cluster, or auto; default: one that is started on this machine"
    )
    add_search(parser)
    arguments = parser.parse_args()
    try:
        others = ("prefix", "prefix_column", "constraints")
        if arguments.nbest > 1 or any(getattr(arguments, name) for name in others):
            raise UserError(
                "leave out --nbest, --prefix, --prefix-column and --constraints: a row has one "
                "translation, and nothing beside its text leads it"
            )
        return translate_corpus(arguments)
    except UserError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("run.py: interrupted; the same command goes on", file=sys.stderr)
        return 128 + signal.SIGINT
    finally:
        ray.shutdown()


def translate_corpus(arguments: argparse.Namespace) -> int:
    """Translate what has not been, and report."""
    search = read_search(arguments)
    terms = arguments.glossary and read_glossary(arguments.glossary)
    paths = [path.absolute() for path in arguments.input]
    out = arguments.out.absolute()
    every = list(parts.find_parts(paths, arguments.rows))
    keep_plan(out, every, arguments, terms)
    left = [part for part in every if not (out / part["name"]).exists()]
    rows = {"all": sum(p["rows"] for p in every), "left": sum(p["rows"] for p in left)}
    print(f"{len(left)} of {len(every)} parts to translate, {rows['left']:,} rows", flush=True)
    if not left:
        return 0
    connect(arguments)
    began, done = time.monotonic(), []
    # A part is a block: what an actor gets is a place in a file, and what it leaves is a file. So
    # no text passes through the driver or Ray's store.
    corpus = ray.data.from_items(left, override_num_blocks=len(left)).map(
        Worker,
        fn_constructor_args=(
            locate_model(arguments.model), arguments.threads, search, terms,
            out, arguments.field, arguments.into,
        ),
        compute=ActorPoolStrategy(size=min(arguments.workers, len(left))),
        num_cpus=arguments.threads,
    )  # fmt: skip
    shown = began
    for result in corpus.iter_rows():
        if result["fault"]:
            raise UserError(result["fault"])
        done.append(result)
        if time.monotonic() - shown > _SHOWN:
            shown = time.monotonic()
            finished = sum(result["rows"] for result in done)
            speed = finished / (shown - began)
            print(f"{finished:,} of {rows['left']:,} rows, {speed:.1f} a second", flush=True)
    report = make_report(done, rows["all"], time.monotonic() - began)
    with whole_file(out / REPORT) as path:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: report[name] for name in ("rows", "seconds", "rows_per_second")}))
    return 0


def connect(arguments: argparse.Namespace) -> None:
    """Join the cluster, or start one on this machine that takes little memory."""
    address = arguments.address or os.environ.get("RAY_ADDRESS")
    own = {} if address else {
        "num_cpus": arguments.workers * arguments.threads + 1,
        "object_store_memory": 100 * 2**20,
        "include_dashboard": False,
    }  # fmt: skip
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a corpus is nobody else's business
    # Other machines have the package, but not this folder.
    ray.cloudpickle.register_pickle_by_value(parts)
    try:
        ray.init(address, log_to_driver=False, logging_level="warning", **own)
    except Exception as error:  # Ray has no kind of its own for this
        if "timed out during startup" in str(error):
            raise UserError(
                "Ray's processes did not start within its 30 s, as on a busy machine; the same "
                "command tries again"
            ) from None
        raise
    cpus, machines = int(ray.cluster_resources().get("CPU", 0)), len(ray.nodes())
    print(f"Ray has {cpus} CPUs, machines: {machines}", flush=True)
    # Ray's own answer to this may crash. What ends at once ends Ray's processes too.
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False


def keep_plan(
    out: Path, every: list[dict], arguments: argparse.Namespace, terms: dict[str, str] | None
) -> None:
    """Note in OUT what its parts are made from; what a killed worker had begun is removed.

    Args:
        every: All parts, as `find_parts` yields them.

    Raises:
        UserError: If the parts that are there were made from something else, or others are being
            made.
    """
    plan = {
        "--model of SHA-256": checksum_model(arguments.model),
        **list_settings(arguments, terms, _NO_MATTER),
        "parts": {part["name"]: part["sum"] for part in every},
    }
    out.mkdir(parents=True, exist_ok=True)
    if not claim_folder(out):
        raise UserError(f"{out} is being filled by another run.py: wait for it, or end it")
    if (out / PLAN).exists():
        was = json.loads((out / PLAN).read_text(encoding="utf-8"))
        if changed := [name for name in plan if was.get(name) != plan[name]]:
            known = was.get("parts", {})
            others = [p for p in every if known.get(p["name"]) != p["sum"]]
            text = "text of {path}, from row {line} on".format(**others[0]) if others else "corpus"
            what = text if changed[0] == "parts" else changed[0]
            raise UserError(f"{out} was begun with another {what}: give the same, or another --out")
    with whole_file(out / PLAN) as path:
        path.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
    for left in out.glob(".[0-9]*"):
        left.unlink(missing_ok=True)


def make_report(done: list[dict], rows: int, seconds: float) -> dict:
    """The totals of a run, and those of each of its workers."""
    workers: dict[str, dict] = {}
    for result in done:
        worker = workers.setdefault(
            result["worker"], {"parts": 0, "rows": 0, "seconds": 0.0, "loaded_mb": 0, "most_mb": 0}
        )
        worker["parts"] += 1
        for name in ("rows", "seconds"):
            worker[name] = round(worker[name] + result[name], 2)
        for name in ("loaded_mb", "most_mb"):
            worker[name] = max(worker[name], result[name])
    translated = sum(result["rows"] for result in done)
    return {
        "rows": translated,
        "rows_before": rows - translated,
        "characters": sum(result["characters"] for result in done),
        "seconds": round(seconds, 2),
        "rows_per_second": round(translated / seconds, 2),
        "driver_mb": _memory(),
        "workers": workers,
    }


if __name__ == "__main__":
    sys.exit(main())
