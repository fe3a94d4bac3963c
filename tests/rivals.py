"""Rivals of races, in a module that their processes import soon."""

import mmap
import os
from pathlib import Path

from races.rounds import peak_memory

from resmlp_mt.errors import UserError


class Scripted:
    """Returns the rates that it was given, one after the other, and writes down that it ran."""

    def __init__(self, name: str, rates: list[float], diary: str):
        self.name, self.rates, self.diary = name, iter(rates), Path(diary)

    def __call__(self, case: str) -> dict[str, float]:
        with open(self.diary, "a") as stream:
            stream.write(f"{case}{self.name} ")
        threads = int(os.environ["OMP_NUM_THREADS"])
        return {"rate": next(self.rates), "threads": threads, "process": os.getpid()}


class Broken:
    def __init__(self, how: str):
        if how == "refuses":
            raise UserError("no such model")
        self.how = how

    def __call__(self, case):
        if self.how == "dies":
            os._exit(3)
        raise ValueError("a bug")


class Filling:
    """Fills so many MiB while it does a case."""

    def __call__(self, case):
        with mmap.mmap(-1, case * 2**20) as memory:  # which goes back at once, unlike malloc's
            for _ in range(case):
                memory.write(b"1" * 2**20)
        return {"rate": 1 / case, "memory_mib": peak_memory()}
