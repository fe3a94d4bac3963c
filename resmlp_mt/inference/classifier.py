"""Pictures in, class names out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

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

    Args:
        compute: The model: uint8 pixels (B, in_chans, rows, columns) -> logits (B, K).
        cfg: in_chans, image_size, crop_pct, interpolation and, where it is not "center",
            crop_mode: how pictures are cut.
        classes: The names of the K classes.
    """

    def __init__(self, compute: Callable[[np.ndarray], np.ndarray], cfg: Any, classes: list[str]):
        self.compute = compute
        self.cfg = cfg
        self.classes = classes

    @classmethod
    def from_pretrained(cls, model: str | Path, device: str = "auto") -> "Classifier":
        """Load a model.

        Args:
            model: A model that comes with the package, a folder with a checkpoint, or a checkpoint;
                or a folder that `export_model` made, which is faster on a CPU.
            device: A torch device, or "auto" for the accelerator if there is one. Exported models
                compute on the CPU alone.

        Raises:
            UserError: If there is no such model, or it is not for images.
        """
        if is_exported(Path(model)):
            return cls(*load_exported_classifier(Path(model), device))
        trained = import_with_fairseq("resmlp_mt.inference.trained", "a checkpoint (not an export)")
        return cls(*trained.load_trained_classifier(model, device))

    def _open(self, image: Image.Image | str | Path) -> Image.Image:
        if isinstance(image, Image.Image):
            return convert(turn_upright(image), self.cfg.in_chans)
        return decode(image, self.cfg.in_chans, str(image))

    def scores(self, images: Iterable[Image.Image]) -> np.ndarray:
        """The probability of each class. (B, K)."""
        cfg = self.cfg
        how = cfg.image_size, cfg.crop_pct, str(cfg.interpolation)
        mode = str(getattr(cfg, "crop_mode", "center"))
        cut = [resize_and_crop(image, *how, mode) for image in images]
        logits = self.compute(np.stack(cut))
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

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
            ValueError: If a number is none from 1 on.
            UserError: If a file cannot be read.
        """
        for name, value in (("topk", topk), ("batch_size", batch_size)):
            if not is_count(value, 1):
                raise ValueError(f"{name} {value!r} {FROM_1}")
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
