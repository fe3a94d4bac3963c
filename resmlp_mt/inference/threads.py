"""How many threads to compute with."""

import os


def count_threads() -> int:
    """What OMP_NUM_THREADS says; else the cores that this process may use."""
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if said.isdigit() and int(said):
        return int(said)
    # Not every system knows which cores are a process's own.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
