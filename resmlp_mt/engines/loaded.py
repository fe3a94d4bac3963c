"""Models loaded by `from_pretrained`: closed, copied, and pickled for pools of processes."""

import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

_loading = threading.Lock()


class Loaded:
    """A model that copies share. Unpickling loads it from where it came from, once a process."""

    # Where it was loaded: its places, one or several, and the other arguments of `from_pretrained`.
    _loaded: tuple | None = None

    def close(self) -> None:
        """Free the model, unless a copy has it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __deepcopy__(self, memo: dict) -> Self:
        return self.__copy__()  # a model is not changed, so copies share it

    def __reduce__(self) -> tuple:
        if self._loaded is None:
            raise TypeError(
                f"only a {type(self).__name__} that from_pretrained has loaded can be pickled"
            )
        return _load_once, (type(self), *self._loaded)


def _load_once(kind: type[Loaded], places: str | tuple[str, ...], *arguments: Any) -> Loaded:
    """A copy of the model that this process has loaded from there: closing it frees no memory.

    The model is loaded again where its files have changed.
    """
    models = [places] if isinstance(places, str) else places
    with _loading:
        return _load(kind, places, arguments, tuple(map(_tell_version, models))).__copy__()


@lru_cache(4)
def _load(kind: type[Loaded], places: str | tuple[str, ...], arguments: tuple, _: tuple) -> Loaded:
    # A pool pickles its function anew for every task, and forgets it after each.
    return kind.from_pretrained(places, *arguments)


def _tell_version(model: str) -> tuple:
    """A value that changes with the files of a model."""
    path = Path(model)
    files = sorted(path.iterdir()) if path.is_dir() else [path] * path.exists()
    found = [(file.name, file.stat()) for file in files]
    return tuple((name, about.st_mtime_ns, about.st_size) for name, about in found)
