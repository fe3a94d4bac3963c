"""Pictures in, class names out."""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from reprlib import repr as shorten
from typing import Any, BinaryIO, Self, overload

import numpy as np
from PIL import Image

from resmlp_mt.data.crops import Cut
from resmlp_mt.data.pixels import convert, decode, turn_upright
from resmlp_mt.engines.batches import fill
from resmlp_mt.engines.exported import load_exported_classifier
from resmlp_mt.engines.loaded import Loaded
from resmlp_mt.engines.options import FROM_1, is_count
from resmlp_mt.errors import BrokenModel
from resmlp_mt.extras import import_extra
from resmlp_mt.files.finding import find_export, locate_model

_Bytes = bytes | bytearray | memoryview
# One picture. An array may also hold several: its dimensions say so.
_Picture = Image.Image | str | os.PathLike[str] | _Bytes | BinaryIO


@dataclass
class Prediction:
    """A class and its probability."""

    index: int
    name: str
    probability: float


class Classifier(Loaded):
    """Names what is in pictures, with one model.

    >>> from PIL import Image
    >>> with Classifier.from_pretrained("cifar10") as classifier:
    ...     best = classifier.classify(Image.new("RGB", (32, 32), "blue"), topk=3)
    >>> len(best)
    3

    Where it was loaded by `from_pretrained` it can be pickled, for pools of processes: each process
    loads the model once, from the same place, and again where its files have changed. Copies share
    the model. Its memory is freed at the end of a `with` block, or by `close`, unless a copy has
    it.

    Args:
        compute: The model: uint8 pixels (B, in_chans, rows, columns) -> logits (B, K).
        cut: Cuts a picture to the part that the model sees.
        classes: The names of the K classes.
    """

    def __init__(self, compute: Callable[[np.ndarray], np.ndarray], cut: Cut, classes: list[str]):
        self.compute, self.cut, self.classes = compute, cut, classes

    @classmethod
    def from_pretrained(
        cls, model: str | Path, device: str = "auto", threads: int | None = None
    ) -> Self:
        """Load a model.

        Args:
            model: A model that comes with the package, a folder with a checkpoint, or a checkpoint;
                or a folder that `export_model` made, which is faster on a CPU.
            device: A torch device, or "auto" for the accelerator if there is one. Exported models
                compute on the CPU alone. Those that come with the package are exports in 8 bits
                on the CPU, and checkpoints on any other device.
            threads: Threads that compute a batch together; for a checkpoint, torch's threads of the
                whole process. Default: the environment variable OMP_NUM_THREADS, or one a core.

        Raises:
            UserError: If there is no such model, or it is not for images.
            ValueError: If `model` is no text or path, or `threads` no number above 0.
        """
        if not isinstance(model, str | Path):
            raise ValueError(f"model {shorten(model)} must be a model's name, folder or checkpoint")
        if threads is not None and not is_count(threads, 1):
            raise ValueError(f"threads {threads!r} {FROM_1}")
        place = locate_model(model, "images")
        if export := find_export(model, device):
            classifier = cls(*load_exported_classifier(export, device, threads))
        else:
            use = "a checkpoint (not an export)"
            trained = import_extra("resmlp_mt.engines.trained", use)
            classifier = cls(*trained.load_trained(model, "images", device))
            if threads is not None:
                import_extra("torch", use).set_num_threads(threads)
        classifier._loaded = place, device, threads
        return classifier

    def close(self) -> None:
        """Free the model, unless a copy has it. After that nothing can be classified."""
        self.compute = None

    def _get_compute(self) -> Callable[[np.ndarray], np.ndarray]:
        if (compute := self.compute) is None:
            raise ValueError("the classifier is closed")
        return compute

    def _open(self, picture: _Picture | np.ndarray, number: int) -> Image.Image:
        """A picture upright, in the mode that the model takes; messages call it by its number."""
        name, in_chans = f"picture {number}", self.cut.in_chans
        if isinstance(picture, str | os.PathLike):
            return decode(picture, in_chans, str(picture))
        if isinstance(picture, _Bytes):
            return decode(bytes(picture), in_chans, name)
        if hasattr(picture, "read") and not isinstance(picture, io.TextIOBase):
            return decode(picture, in_chans, name)
        if isinstance(picture, np.ndarray):
            picture = _read_array(picture, name)
        if not isinstance(picture, Image.Image):
            raise ValueError(
                f"{name}: {shorten(picture)} is no picture; give a path, bytes, a file opened with "
                '"rb", an image of Pillow or an array of NumPy'
            )
        if not all(picture.size):
            raise ValueError(f"{name}: {picture.width} x {picture.height} pixels show nothing")
        try:
            picture.load()
            return convert(turn_upright(picture), in_chans)
        except Exception as error:  # Pillow may read its file only now; its errors are of any kind
            raise ValueError(f"{name}: {error}") from error

    def scores(self, images: Iterable[Image.Image]) -> np.ndarray:
        """The probability of each class. (B, K), float32.

        Args:
            images: B pictures, in any mode.

        Raises:
            BrokenModel: If the model's numbers overflow.
            ValueError: If the classifier was closed.
        """
        compute = self._get_compute()
        pixels = [self.cut(convert(image, self.cut.in_chans)) for image in images]
        if not pixels:
            return np.empty((0, len(self.classes)), np.float32)
        logits = compute(np.stack(pixels))
        if not np.isfinite(logits).all():
            raise BrokenModel("the model finds no class; its weights are broken")
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    @overload
    def classify(
        self, images: _Picture, topk: int = 5, batch_size: int = 32
    ) -> list[Prediction]: ...

    @overload
    def classify(self, images: np.ndarray, topk: int = 5, batch_size: int = 32) -> Any: ...

    @overload
    def classify(
        self, images: Iterable[_Picture | np.ndarray], topk: int = 5, batch_size: int = 32
    ) -> Iterator[list[Prediction]]: ...

    def classify(
        self,
        images: _Picture | np.ndarray | Iterable[_Picture | np.ndarray],
        topk: int = 5,
        batch_size: int = 32,
    ) -> list[Prediction] | Iterator[list[Prediction]]:
        """Find the best classes of a picture, or of several, the most probable first.

        Args:
            images: A picture, or several, which are read as they are needed. Each is a path, the
                bytes of a file, a file opened with "rb", which is read from its start, or an image
                of Pillow. These are turned as their EXIF metadata says. An image of Pillow in mode
                "I" must come from a PNG or PGM file, and none can be in mode "F". Or it is an array
                in uint8, (rows, columns) or (rows, columns, 1) in grey, (rows, columns, 3) in red,
                green and blue, or with alpha (rows, columns, 4). An array of 4 dimensions is
                several pictures.
            topk: Classes named for each, at most K.
            batch_size: Pictures computed together.

        Returns:
            Of one picture its classes; of several an iterator over those of each.

        Raises:
            ValueError: At once, if `topk` or `batch_size` is below 1, or the classifier was closed.
                On the way, after the classes of the pictures before it, if something is no picture;
                the message counts it from 1.
            UserError: On the way, if a file cannot be read.
        """
        for name, value in (("topk", topk), ("batch_size", batch_size)):
            if not is_count(value, 1):
                raise ValueError(f"{name} {value!r} {FROM_1}")
        self._get_compute()
        if _is_one(images):
            return next(self._classify([images], topk, batch_size))
        return self._classify(images, topk, batch_size)

    def _classify(
        self, images: Iterable[_Picture | np.ndarray], topk: int, batch_size: int
    ) -> Iterator[list[Prediction]]:
        for batch in fill(map(self._open, images, count(1)), batch_size):
            for scores in self.scores(batch):
                best = np.argsort(-scores, kind="stable")[:topk].tolist()
                yield [Prediction(i, self.classes[i], float(scores[i])) for i in best]


def _is_one(images: object) -> bool:
    """Whether this is one picture, not several. Bytes and files can be iterated over too."""
    if isinstance(images, np.ndarray):  # arrays of objects and of text hold pictures and paths
        return images.ndim == 0 or (images.ndim != 4 and images.dtype.kind not in "OU")
    if hasattr(images, "numpy"):  # a tensor, which is refused as a whole, not by its rows
        return True
    is_file = isinstance(images, str | os.PathLike | _Bytes) or hasattr(images, "read")
    return is_file or not isinstance(images, Iterable)


def _read_array(array: np.ndarray, name: str) -> Image.Image:
    shape, channels = array.shape, array.shape[2:]
    known = len(shape) >= 2 and channels in ((), (1,), (3,), (4,)) and array.size
    if array.dtype != np.uint8 or not known:
        raise ValueError(
            f"{name}: an array {shape} in {array.dtype}, not (rows, columns) or (rows, columns, 1, "
            "3 or 4) in uint8"
        )
    return Image.fromarray(array[..., 0] if channels == (1,) else array)
