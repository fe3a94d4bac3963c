"""How many threads to compute with."""

import os


def count_threads() -> int:
    """The number in OMP_NUM_THREADS; else the cores that this process may use."""
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(said) if said.isdigit() and int(said) else count_cores()


def count_cores() -> int:
    """The cores that this process may use: in a container often fewer than the machine has."""
    # Not every system knows which cores are a process's own.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
