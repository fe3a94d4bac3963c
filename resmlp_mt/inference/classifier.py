"""Pictures in, class names out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from resmlp_mt.data.image_files import convert, decode
from resmlp_mt.data.images import resize_and_crop
from resmlp_mt.inference.device import choose_device
from resmlp_mt.inference.exported import is_exported, load_exported_classifier
from resmlp_mt.inference.loading import TrainedClassifier, load_classifier, read_checkpoint


@dataclass
class Prediction:
    """A class and its probability."""

    index: int
    name: str
    probability: float


class Classifier:
    """Names what is in pictures, with one model.

    Args:
        compute: The model: uint8 pixels (B, in_chans, H, W) -> logits (B, K).
        cfg: in_chans, image_size, crop_pct and interpolation: how pictures are cut.
        classes: The names of the K classes.
    """

    def __init__(self, compute: Callable[[Tensor], Tensor], cfg, classes: list[str]):
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
        trained = load_classifier(*read_checkpoint(model, "images"))
        return cls(*_prepare(trained, choose_device(device)))

    def _open(self, image: Image.Image | str | Path) -> Image.Image:
        if isinstance(image, Image.Image):
            return convert(image, self.cfg.in_chans)
        return decode(image, self.cfg.in_chans, str(image))

    @torch.inference_mode()
    def scores(self, images: Iterable[Image.Image]) -> torch.Tensor:
        """The probability of each class. (B, K)."""
        cut = [
            resize_and_crop(
                image, self.cfg.image_size, self.cfg.crop_pct, str(self.cfg.interpolation)
            )
            for image in images
        ]
        return self.compute(torch.stack(cut)).softmax(1)

    def classify(
        self,
        images: Image.Image | str | Path | Iterable[Image.Image | str | Path],
        topk: int = 5,
        batch_size: int = 32,
    ) -> list[Prediction] | Iterator[list[Prediction]]:
        """Find the best classes of a picture, or of several, the most probable first.

        Args:
            images: Paths, or pictures of any size and mode; read as they are needed.
            topk: Classes named for each, at most K.
            batch_size: Pictures computed together.

        Returns:
            Of one picture its classes; of several an iterator over those of each.

        Raises:
            UserError: If a file cannot be read.
        """
        if isinstance(images, (Image.Image, str, Path)):
            return next(self._classify([images], topk, batch_size))
        return self._classify(images, topk, batch_size)

    def _classify(
        self, images: Iterable[Image.Image | str | Path], topk: int, batch_size: int
    ) -> Iterator[list[Prediction]]:
        images = map(self._open, images)
        while batch := list(islice(images, batch_size)):
            best = self.scores(batch).topk(min(topk, len(self.classes)))
            for values, indices in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                yield [
                    Prediction(i, self.classes[i], value)
                    for value, i in zip(values, indices, strict=True)
                ]


def _prepare(trained: TrainedClassifier, device: str) -> tuple:
    """What a `Classifier` is made of."""
    model, normalise = trained.model.to(device), trained.task.normalise.to(device)

    def compute(pixels: Tensor) -> Tensor:
        return model(normalise(pixels.to(device))).cpu()

    return compute, trained.task.cfg, trained.classes
