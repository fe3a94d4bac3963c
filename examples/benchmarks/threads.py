"""Where the time of an exported S12 goes, on one thread and on two: the operators of its graph.

    python examples/benchmarks/threads.py --csv examples/benchmarks/threads.csv

Of each node of the graph the shortest of many runs counts, by ONNX Runtime's own profile, so that
other work on the machine does not; "rest" is what a run takes beside its nodes, in its shortest.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from pathlib import Path

import onnxruntime
from races.image_models import ModelCase
from races.report import append_rows, describe_here, print_table

from resmlp_mt.export.image_graph import build_classifier
from resmlp_mt.models.presets import IMAGENET

MODEL = ModelCase("resmlp_s12")


def main() -> None:
    """Measure, print a table, and append to the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for int8 in (False, True):
        graph = build_classifier(MODEL.build(), IMAGENET["mean"], IMAGENET["std"], int8)
        for batch in arguments.batch_size:
            one, two = (profile(graph, batch, n, arguments.runs) for n in (1, 2))
            for name in sorted(one, key=one.get, reverse=True):
                rows.append(
                    {
                        "model": "exported int8" if int8 else "exported",
                        "batch": batch,
                        "part": name,
                        "one_ms": f"{one[name]:.3f}",
                        "two_ms": f"{two[name]:.3f}",
                        "speedup": f"{one[name] / max(two[name], 1e-9):.2f}",
                        **describe_here(),
                        "versions": f"onnxruntime {onnxruntime.__version__}",
                    }
                )
    print_table([{"rival": row["model"], "ratio": row["speedup"], **row} for row in rows])
    if arguments.csv:
        append_rows(arguments.csv, rows)


def profile(graph: bytes, batch: int, threads: int, runs: int) -> dict[str, float]:
    """Milliseconds by operator, of one run."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_profiling = True
    options.profile_file_prefix = f"threads-{os.getpid()}"
    session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
    images = {"pixels": MODEL.draw_images(batch).numpy()}
    shortest = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, images)
        shortest = min(shortest, 1000 * (time.perf_counter() - start))
    path = Path(session.end_profiling())
    nodes = {}
    for event in json.loads(path.read_text()):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            found = event["args"]["op_name"], event["dur"] / 1000
            least = nodes.get(event["name"], (None, float("inf")))[1]
            nodes[event["name"]] = found[0], min(found[1], least)
    path.unlink()
    parts = defaultdict(float)
    for name, milliseconds in nodes.values():
        parts[name] += milliseconds
    return parts | {"all": shortest, "rest": max(shortest - sum(parts.values()), 0.0)}


if __name__ == "__main__":
    main()
