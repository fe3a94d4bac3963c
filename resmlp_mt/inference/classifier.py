"""Pictures in, class names out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
from PIL import Image

from resmlp_mt.data.crops import resize_and_crop
from resmlp_mt.data.image_files import convert, decode, turn_upright
from resmlp_mt.extras import import_with_fairseq
from resmlp_mt.files.finding import is_exported
from resmlp_mt.inference.exported import load_exported_classifier
from resmlp_mt.inference.options import FROM_1, is_count


@dataclass
class Prediction:
    """A class and its probability."""

    index: int
    name: str
    probability: float


class Classifier:
    """Names what is in pictures, with one model.

    >>> from PIL import Image
    >>> with Classifier.from_pretrained("cifar10") as classifier:
    ...     best = classifier.classify(Image.new("RGB", (32, 32), "blue"), topk=3)
    >>> len(best)
    3

    Where it was loaded by `from_pretrained` it can be pickled, for pools of processes: what is
    pickled is where it came from, and unpickling loads it from there. The model's memory is freed
    at the end of a `with` block, or by `close`.

    Args:
        compute: The model: uint8 pixels (B, in_chans, rows, columns) -> logits (B, K).
        cfg: in_chans, image_size, crop_pct, interpolation and, where it is not "center",
            crop_mode: how pictures are cut.
        classes: The names of the K classes.
    """

    # Of a classifier that was loaded: the arguments of `from_pretrained`.
    _loaded: tuple[str, str, int | None] | None = None

    def __init__(self, compute: Callable[[np.ndarray], np.ndarray], cfg: Any, classes: list[str]):
        self.compute = compute
        self.cfg = cfg
        self.classes = classes

    @classmethod
    def from_pretrained(
        cls, model: str | Path, device: str = "auto", threads: int | None = None
    ) -> Self:
        """Load a model.

        Args:
            model: A model that comes with the package, a folder with a checkpoint, or a checkpoint;
                or a folder that `export_model` made, which is faster on a CPU.
            device: A torch device, or "auto" for the accelerator if there is one. Exported models
                compute on the CPU alone.
            threads: So many compute a batch together; for a checkpoint they are torch's, of the
                whole process. Default: one a core, or what the environment variable
                OMP_NUM_THREADS says.

        Raises:
            UserError: If there is no such model, or it is not for images.
            ValueError: If `threads` is no number above 0.
        """
        if threads is not None and not is_count(threads, 1):
            raise ValueError(f"threads {threads!r} {FROM_1}")
        if is_exported(Path(model)):
            classifier = cls(*load_exported_classifier(Path(model), device, threads))
        else:
            use = "a checkpoint (not an export)"
            trained = import_with_fairseq("resmlp_mt.inference.trained", use)
            classifier = cls(*trained.load_trained_classifier(model, device))
            if threads is not None:
                import_with_fairseq("torch", use).set_num_threads(threads)
        place = Path(model).absolute() if Path(model).exists() else model
        classifier._loaded = str(place), device, threads
        return classifier

    def __reduce__(self) -> tuple:
        if self._loaded is None:
            raise TypeError("only a classifier that from_pretrained has loaded can be pickled")
        return type(self).from_pretrained, self._loaded

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the model. After that nothing can be classified."""
        self.compute = None

    def _get_compute(self) -> Callable[[np.ndarray], np.ndarray]:
        if (compute := self.compute) is None:
            raise ValueError("the classifier is closed")
        return compute

    def _open(self, image: Image.Image | str | Path) -> Image.Image:
        if isinstance(image, Image.Image):
            return convert(turn_upright(image), self.cfg.in_chans)
        return decode(image, self.cfg.in_chans, str(image))

    def scores(self, images: Iterable[Image.Image]) -> np.ndarray:
        """The probability of each class. (B, K).

        Raises:
            ValueError: If the classifier was closed.
        """
        cfg, compute = self.cfg, self._get_compute()
        how = cfg.image_size, cfg.crop_pct, str(cfg.interpolation)
        mode = str(getattr(cfg, "crop_mode", "center"))
        cut = [resize_and_crop(image, *how, mode) for image in images]
        logits = compute(np.stack(cut))
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    @overload
    def classify(
        self, images: Image.Image | str | Path, topk: int = 5, batch_size: int = 32
    ) -> list[Prediction]: ...

    @overload
    def classify(
        self, images: Iterable[Image.Image | str | Path], topk: int = 5, batch_size: int = 32
    ) -> Iterator[list[Prediction]]: ...

    def classify(
        self,
        images: Image.Image | str | Path | Iterable[Image.Image | str | Path],
        topk: int = 5,
        batch_size: int = 32,
    ) -> list[Prediction] | Iterator[list[Prediction]]:
        """Find the best classes of a picture, or of several, the most probable first.

        Args:
            images: Paths, or pictures of any size and mode; read as they are needed, and turned as
                their EXIF metadata says.
            topk: Classes named for each, at most K.
            batch_size: Pictures computed together.

        Returns:
            Of one picture its classes; of several an iterator over those of each.

        Raises:
            ValueError: If a number is none from 1 on, or the classifier was closed.
            UserError: If a file cannot be read.
        """
        for name, value in (("topk", topk), ("batch_size", batch_size)):
            if not is_count(value, 1):
                raise ValueError(f"{name} {value!r} {FROM_1}")
        self._get_compute()
        if isinstance(images, (Image.Image, str, Path)):
            return next(self._classify([images], topk, batch_size))
        return self._classify(images, topk, batch_size)

    def _classify(
        self, images: Iterable[Image.Image | str | Path], topk: int, batch_size: int
    ) -> Iterator[list[Prediction]]:
        images = map(self._open, images)
        while batch := list(islice(images, batch_size)):
            for scores in self.scores(batch):
                best = np.argsort(-scores, kind="stable")[:topk].tolist()
                yield [Prediction(i, self.classes[i], float(scores[i])) for i in best]
