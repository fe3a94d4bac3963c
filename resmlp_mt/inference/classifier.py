"""Pictures in, class names out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from PIL import Image

from resmlp_mt.data.checkpoints import find_checkpoint
from resmlp_mt.data.image_files import convert, decode
from resmlp_mt.data.images import resize_and_crop
from resmlp_mt.errors import UserError
from resmlp_mt.inference.device import choose_device
from resmlp_mt.tasks.image_classification import IMAGE_TASK, is_for_images


@dataclass
class Prediction:
    """A class and its probability."""

    index: int
    name: str
    probability: float


class Classifier:
    """Names what is in pictures, with one model.

    Args:
        model: A model that fairseq loaded.
        task: Its task of image classification, with the class names.
        device: Where to compute: "cpu", "cuda", "cuda:1" ...
    """

    def __init__(self, model, task, device: str = "cpu"):
        self.model = model.to(device).eval()
        self.normalise = task.normalise.to(device)
        self.device = device
        self.cfg = task.cfg
        self.classes = task.classes + [
            f"unused {i}" for i in range(len(task.classes), task.num_classes)
        ]

    @classmethod
    def from_pretrained(cls, model: str | Path, device: str = "auto") -> "Classifier":
        """Load a model.

        Args:
            model: A model that comes with the package, a folder with a checkpoint, or a checkpoint.
            device: A torch device, or "auto" for the accelerator if there is one.

        Raises:
            UserError: If there is no such model, or it is not for images.
        """
        path = find_checkpoint(model)
        device = choose_device(device)
        state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
        task = state["cfg"].task
        if task.get("_name") != IMAGE_TASK:
            what = "fine-tune it for classes first" if is_for_images(task) else "it is for text"
            raise UserError(f"{path}: not a classifier of images; {what}")
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], state=state)
        return cls(models[0].float(), task, device)

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
        pixels = torch.stack(cut).to(self.device)
        return self.model(self.normalise(pixels)).softmax(1).cpu()

    def classify(
        self, images: Iterable[Image.Image | str | Path], topk: int = 5, batch_size: int = 32
    ) -> Iterator[list[Prediction]]:
        """Yield the best classes of each picture, the most probable first.

        Args:
            images: Paths, or pictures of any size and mode; read as they are needed.
            topk: Classes named for each, at most K.
            batch_size: Pictures computed together.

        Raises:
            UserError: If a file cannot be read.
        """
        images = map(self._open, images)
        while batch := list(islice(images, batch_size)):
            best = self.scores(batch).topk(min(topk, len(self.classes)))
            for values, indices in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                yield [
                    Prediction(i, self.classes[i], value)
                    for value, i in zip(values, indices, strict=True)
                ]
