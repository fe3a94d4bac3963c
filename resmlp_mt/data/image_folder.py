"""Folders of images with a folder per class, plain or in a tar."""

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

import numpy as np
from PIL import Image

from resmlp_mt.data.pixels import decode
from resmlp_mt.data.tars import index_tar, is_hidden, warn_of_odd
from resmlp_mt.errors import UserError, name_some

logger = logging.getLogger(__name__)

SUFFIXES = (".png", ".jpg", ".jpeg", ".jfif", ".gif", ".webp")
# Of pictures that are not read.
_OTHER_SUFFIXES = (".avif", ".bmp", ".heic", ".jp2", ".pgm", ".ppm", ".tif", ".tiff")
SPLIT_FOLDERS = {"train": ("train",), "valid": ("val", "valid", "validation"), "test": ("test",)}


class ImageFolder:
    """The images of one split of a folder, or of a tar of it.

    Many processes may use it at once, forked or spawned.

    Args:
        path: A folder with train/, val/ ..., or a .tar, .tar.gz or .tar.xz of it. A compressed one
            is unpacked to a temporary file, for as long as this process lives.
        split: "train", "valid" or "test", or the name of such a folder. None: there is one split,
            and the classes lie directly in `path`.
        in_chans: 3 for colour, 1 for grey.
        partial: Whether classes may be without images: those of empty folders, and those that
            `align` knows beyond these.

    Attributes:
        classes: Names of the class folders, sorted, as numbers if all of them are: a name's place
            is the class.
        names: Of the images, in messages: a file, or "archive.tar:member".
        targets: Class of each image. Shape: (len(self),), int64.

    Raises:
        UserError: If there is no such split, or a class without images.
    """

    def __init__(
        self, path: str | Path, split: str | None, in_chans: int = 3, partial: bool = False
    ):
        self.in_chans, self.partial = in_chans, partial
        self.path = path = Path(path)
        if path.is_dir():
            tar, top, root = None, "", f"{path}/"
            folders = {p.name for p in path.iterdir() if p.is_dir() and not is_hidden(p.name)}
        else:
            tar = index_tar(path)
            top = _common_top(tar.names, split)
            root = f"{path}:{top}"
            folders = _first_parts(name.removeprefix(top) for name in tar.names)
        folder = "" if split is None else f"{_find_split(folders, split, str(path))}/"
        where = f"{root}{folder}"
        files = enumerate(walk(where)) if tar is None else _below(tar.names, f"{top}{folder}")
        members = _sort_by_class(files, where, partial)
        self.classes = list(members)
        self.names = [f"{where}{c}/{name}" for c in members for name in members[c]]
        self.targets = np.repeat(np.arange(len(members)), [len(members[c]) for c in members])
        self._tar_path = self._tar_file = None
        if tar is not None:
            places = [place for c in members for place in members[c].values()]
            self._tar_path = tar.path
            self._offsets, self._sizes = tar.offsets[places], tar.sizes[places]

    def __len__(self) -> int:
        return len(self.names)

    def align(self, classes: list[str]) -> None:
        """Number the classes as `classes` does: those of a model, or of another split.

        A partial folder may lack some of them. Folders that are called 0, 1, 2 ..., one for each of
        the classes, stand for the classes at these places, which is logged. ImageNet-V2 has them.

        Raises:
            UserError: If the folder has other classes, or lacks some and is not partial. The
                message names them.
        """
        named = not all(name.isdecimal() for name in classes)
        if named and self.classes == [str(i) for i in range(len(classes))]:
            logger.warning("%s: its folders are numbers; 0 is class %s", self.path, classes[0])
            self.classes = list(classes)
            return
        check = check_known_classes if self.partial else check_same_classes
        check(classes, self.classes, str(self.path))
        self.targets = np.array([classes.index(name) for name in self.classes])[self.targets]
        self.classes = list(classes)

    def open(self, i: int) -> Image.Image:
        """Decode image i.

        Raises:
            BrokenImage: If it cannot be decoded; names the file.
            UserError: If the file cannot be read. The next one would hardly fare better.
        """
        try:
            data = self._read(i)
        except OSError as error:
            raise UserError(f"{self.names[i]}: cannot be read ({error.strerror})") from None
        return decode(data, self.in_chans, self.names[i])

    def _read(self, i: int) -> bytes:
        if self._tar_path is None:
            return Path(self.names[i]).read_bytes()
        if self._tar_file is None:
            self._tar_file = open(self._tar_path, "rb")  # noqa: SIM115
        # Forked workers share the open file and its position, which pread leaves alone.
        return os.pread(self._tar_file.fileno(), self._sizes[i], self._offsets[i])

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_tar_file": None}


def check_same_classes(known: list[str], classes: list[str], where: str) -> None:
    """Check that a folder, `where` in messages, has the known classes of a model or another split.

    Raises:
        UserError: If it lacks some, or has others; names them.
    """
    if found := name_differences(known, classes):
        advice = _advise_naming(known) or "give every split the same class folders"
        raise UserError(f"{where}: not the classes of the training: {found}; {advice}")


def check_known_classes(known: list[str], classes: list[str], where: str) -> None:
    """Check that a model has all classes of a folder, each once.

    Raises:
        UserError: If it lacks some; names them, and some that it has. If it has two of one name.
    """
    if twice := [name for name in classes if known.count(name) > 1]:
        raise UserError(
            f"{where}: the model has several classes called {name_some(twice)}; call the folders "
            "0, 1, 2 ... in the order of its classes"
        )
    if others := sorted(set(classes) - set(known)):
        splits = {name for names in SPLIT_FOLDERS.values() for name in names}
        advice = _advise_naming(known) or "call the folders as the model calls the classes"
        if splits.intersection(others):
            advice = "say with --split which of these folders has the classes in it"
        raise UserError(
            f"{where}: the model has no class {name_some(others)}; it knows "
            f"{name_some(known, 10)}; {advice}"
        )


def _advise_naming(known: list[str]) -> str:
    """The advice where a model knows its classes by number alone; "" where it has names."""
    if not all(name.isdigit() for name in known):
        return ""
    advice = "a model that knows its classes by number can be told their names: "
    return advice + "resmlp-mt import-weights --classes"


def name_differences(known: list[str], classes: list[str]) -> str:
    """The known classes that a folder of `classes` lacks, and its unknown ones; "" if none."""
    faults = {
        "it lacks": sorted(set(known) - set(classes)),
        "it alone has": sorted(set(classes) - set(known)),
    }
    return "; ".join(f"{fault} {name_some(names)}" for fault, names in faults.items() if names)


def _first_parts(names: Iterable[str]) -> set[str]:
    return {name.split("/")[0] for name in names if "/" in name}


def _common_top(names: list[str], split: str | None) -> str:
    """The folder that all others lie in, with its slash, if there is one.

    A split does not count where one is wanted; else a class, with all images directly in it, does
    not.
    """
    tops = _first_parts(names)
    if split is None:
        ends = {name.count("/") for name in names if name.lower().endswith(SUFFIXES)} == {1}
    else:
        ends = any(name in tops for names in SPLIT_FOLDERS.values() for name in names)
    return f"{tops.pop()}/" if len(tops) == 1 and not ends else ""


def _find_split(folders: set[str], split: str, path: str) -> str:
    wanted = next((names for names in SPLIT_FOLDERS.values() if split in names), None)
    if wanted is None:
        raise UserError(f"{path}: no split {split}; there are {', '.join(SPLIT_FOLDERS)}")
    for name in wanted:
        if name in folders:
            return name
    there = name_some([f"{name}/" for name in sorted(folders)]) or "no folder"
    raise UserError(f"{path}: no {split} images in {', '.join(wanted)}; found {there}")


def walk(top: str) -> Iterator[str]:
    """Yield what lies in a folder at any depth: files, and folders with a slash at the end.

    Other things are left out with a warning: a pipe would be waited for without end.

    Raises:
        UserError: If a link leads to a folder that it lies in, or a folder cannot be read.
    """
    odd = []
    yield from _walk(os.path.join(top, ""), "", odd)
    if odd:
        warn_of_odd(sorted(odd), top)


def _walk(top: str, base: str, odd: list[str]) -> Iterator[str]:
    try:
        entries = [entry for entry in os.scandir(top + base) if not is_hidden(entry.name)]
    except OSError as error:
        raise UserError(f"{top}{base}: cannot be read ({error.strerror})") from None
    for entry in entries:
        name = base + entry.name
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:  # a link that leads back to itself
            is_folder = is_file = False
        if is_folder:
            real = os.path.realpath(entry.path) if entry.is_symlink() else None
            if real and f"{os.path.realpath(top + base)}/".startswith(f"{real}/"):
                raise UserError(f"{entry.path}: a link to a folder that it lies in; remove it")
            yield f"{name}/"
            yield from _walk(top, f"{name}/", odd)
        elif is_file:
            yield name
        else:
            odd.append(name)


def warn_of_unread(names: Iterable[str], where: str) -> None:
    """Warn of pictures of kinds that are not read; they would be missed without a word."""
    suffixes = Counter(PurePath(name).suffix.lower() for name in names)
    if found := [f"{suffixes[kind]} {kind}" for kind in _OTHER_SUFFIXES if kind in suffixes]:
        logger.warning(
            "%s: left out %s; to use them, convert them to PNG or JPEG", where, ", ".join(found)
        )


def _below(names: list[str], folder: str) -> Iterator[tuple[int, str]]:
    for place, name in enumerate(names):
        if name.startswith(folder):
            yield place, name.removeprefix(folder)


def _sort_by_class(
    files: Iterable[tuple[int, str]], where: str, partial: bool
) -> dict[str, dict[str, int]]:
    """Sort what lies in a split's folder, (place, name) each, into {class: {image: place}}."""
    members, loose, others = {}, False, []
    for place, path in files:
        class_name, slash, name = path.partition("/")
        is_image = path.lower().endswith(SUFFIXES)
        if not slash:
            loose |= is_image
            continue
        in_class = members.setdefault(class_name, {})
        if is_image:
            in_class[name] = place
        else:
            others.append(name)
    if not members:
        fault = "the images lie directly in it" if loose else "it is empty"
        raise UserError(f"{where}: {fault}; it needs a folder per class with the images in these")
    empty = sorted(f"{c}/" for c in members if not members[c])
    if empty and (not partial or len(empty) == len(members)):
        raise UserError(f"{where}: no PNG, JPEG, GIF or WebP file in {name_some(empty)}")
    warn_of_unread(others, where)
    as_numbers = all(name.isdecimal() for name in members)
    order = sorted(members, key=(lambda name: (int(name), name)) if as_numbers else None)
    return {c: dict(sorted(members[c].items())) for c in order}
