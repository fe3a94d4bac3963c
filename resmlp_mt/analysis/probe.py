"""How well an image model's features tell classes apart: by k-NN and a linear classifier.

Both leave the features as they are, as DINO evaluates them (arXiv 2104.14294, section 4.1), and
learn from the training images what their classes look like. Legend of shapes: N training images,
Q evaluated images, C channels, K classes.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from resmlp_mt.checkpoints.device import choose_device
from resmlp_mt.checkpoints.loading import build
from resmlp_mt.checkpoints.pack import moving_average
from resmlp_mt.compat.checkpoints import find_and_read
from resmlp_mt.data.augment import Normalise
from resmlp_mt.data.crops import Cut
from resmlp_mt.data.image_folder import ImageFolder
from resmlp_mt.errors import UserError
from resmlp_mt.files.kinds import CLASSIFICATION, PRETRAINING
from resmlp_mt.tasks.image_dataset import ImageDataset

# The strengths of the L2 penalty to choose from, the strongest first.
PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_STEPS = 100  # of L-BFGS at most, all on the full batch


@dataclass
class Features:
    """The features of the images of a split.

    Attributes:
        values: One vector an image. (N, C), float32.
        targets: The classes. (N,).
        classes: Their names.
    """

    values: Tensor
    targets: Tensor
    classes: list[str]


class FeatureExtractor:
    """Images -> the vectors that a model's head would read.

    Args:
        model: A `ResMLPImageModel`.
        cut: What it sees of an image.
        normalise: Its task's.
        averaged: Whether the weights are the moving average.
        device: Where to compute.
    """

    def __init__(
        self, model: nn.Module, cut: Cut, normalise: Normalise, averaged: bool, device: str
    ):
        self.model = model.float().to(device).eval()
        self.normalise = normalise.to(device)
        self.cut, self.averaged, self.device = cut, averaged, device

    @classmethod
    def from_pretrained(
        cls, model: str | Path, ema: bool | None = None, device: str = "auto"
    ) -> "FeatureExtractor":
        """Load a classifier, or a model that `image_pretraining` made.

        Args:
            model: A model that comes with the package, a folder with a checkpoint, or a checkpoint.
            ema: Take the moving average that --store-ema kept; None: of a pre-trained model, which
                is DINO's teacher, if it is there.
            device: A torch device, or "auto" for the accelerator if there is one.

        Raises:
            UserError: If there is no such model, it is not for images, or has no moving average.
        """
        device = choose_device(device)
        path, state = find_and_read(model)
        name = state["cfg"].task.get("_name")
        if name not in (CLASSIFICATION, PRETRAINING):
            raise UserError(f"{path}: a model for {name}, not for images")
        if ema is None:
            ema = name == PRETRAINING and "ema" in (state.get("extra_state") or {})
        if ema:
            state["model"] = moving_average(state, path)
        model, task = build(path, state)
        return cls(model, task.cut, task.normalise, ema, device)

    @torch.no_grad()
    def extract(self, folder: ImageFolder, batch_size: int = 256, name: str = "") -> Features:
        """The features of all images of a folder, in evaluation's cut.

        Args:
            folder: The images, with the model's number of channels.
            batch_size: Images computed together.
            name: What the progress bar calls them.

        Raises:
            UserError: If an image is broken.
        """
        found, images = [], ImageDataset(folder, self.cut, train=False)
        with tqdm(total=len(images), desc=name, unit="image", disable=None, leave=False) as bar:
            for indices in torch.arange(len(images)).split(batch_size):
                batch = images.collater([images[i] for i in indices.tolist()])
                pixels = batch["net_input"]["images"].to(self.device)
                found.append(self.model.extract_features(self.normalise(pixels)).cpu())
                bar.update(len(indices))
        return Features(torch.cat(found), torch.from_numpy(folder.targets), folder.classes)


def open_both(data: str | Path, split: str, in_chans: int) -> tuple[ImageFolder, ImageFolder]:
    """The training images and those to evaluate on, their classes counted alike.

    Args:
        data: A folder or .tar with a folder for each split.
        split: "valid" or "test".
        in_chans: 3 for colour, 1 for grey.

    Raises:
        UserError: If one of the splits is missing or broken, or they differ in their classes.
    """
    train, valid = (ImageFolder(data, name, in_chans) for name in ("train", split))
    valid.align(train.classes)
    return train, valid


def knn_accuracy(
    train: Features, valid: Features, k: int, temperature: float, device: str = "cpu"
) -> float:
    """Percentage of images whose class the k nearest training images name."""
    classes = len(train.classes)
    values = F.normalize(train.values.to(device), dim=1)
    guesses = [
        vote(F.normalize(part.to(device), dim=1), values, train.targets, classes, k, temperature)
        for part in valid.values.split(256)
    ]
    return _accuracy(torch.cat(guesses), valid.targets)


def vote(
    queries: Tensor, values: Tensor, targets: Tensor, classes: int, k: int, temperature: float
) -> Tensor:
    """Weighted k-NN: each of the k nearest has exp(cosine / temperature) votes for its class.

    Args:
        queries: Vectors of length 1. (Q, C).
        values: Vectors of length 1 whose classes are known. (N, C).
        targets: Their classes. (N,).
        classes: K.
        k: Neighbours.
        temperature: A lower one gives the nearest more weight.

    Returns:
        The classes with the most votes. (Q,).

    Raises:
        UserError: If k or the temperature is impossible.
    """
    check_neighbours(k, temperature, len(values))
    cosines, nearest = (queries @ values.t()).topk(k, dim=1)
    # A constant factor on all votes of an image, which keeps a low temperature from overflowing.
    weights = ((cosines - cosines[:, :1]) / temperature).exp()
    votes = torch.zeros(len(queries), classes, dtype=weights.dtype, device=weights.device)
    votes.scatter_add_(1, targets.to(nearest.device)[nearest], weights)
    return votes.argmax(1).cpu()


def check_neighbours(k: int, temperature: float, images: int) -> None:
    """Check the settings of k-NN for that many training images.

    Raises:
        UserError: If k or the temperature is impossible.
    """
    if not 1 <= k <= images:
        raise UserError(f"--knn must be from 1 to the {images} training images, not {k}")
    if not 0 < temperature < math.inf:
        raise UserError(f"--temperature must be positive, not {temperature}")


def linear_accuracy(train: Features, valid: Features, device: str = "cpu") -> tuple[float, float]:
    """Percentage of images that a linear classifier names rightly, and its L2 penalty.

    Each channel is standardised by the training images' mean and deviation. The penalty is the one
    of PENALTIES that does best on a tenth of the training images, chosen at random, when learning
    from the others; with it the classifier learns from all.

    Raises:
        UserError: If there are fewer than two training images.
    """
    count = len(train.targets)
    if count < 2:
        raise UserError("a linear classifier needs two training images at least")
    mean, std = train.values.mean(0), train.values.std(0)
    std = torch.where(std > 0, std, 1.0)
    x, queries = (((f.values - mean) / std).to(device) for f in (train, valid))
    y, classes = train.targets.to(device), len(train.classes)
    held_out, rest = torch.randperm(count, generator=torch.Generator().manual_seed(1)).split(
        (max(1, count // 10), count - max(1, count // 10))
    )
    scores = {}
    for penalty in tqdm(PENALTIES, desc="linear", unit="fit", disable=None, leave=False):
        classifier = fit_linear(x[rest], y[rest], classes, penalty)
        scores[penalty] = _accuracy(classifier(x[held_out]).argmax(1), y[held_out])
    best = max(scores, key=scores.get)
    guesses = fit_linear(x, y, classes, best)(queries).argmax(1)
    return _accuracy(guesses.cpu(), valid.targets), best


def fit_linear(x: Tensor, y: Tensor, classes: int, penalty: float) -> nn.Linear:
    """Multinomial logistic regression: the minimum of mean CE(W x + b, y) + penalty / 2 |W|^2.

    Args:
        x: Standardised features. (N, C).
        y: Classes. (N,).
        classes: K.
        penalty: Strength of the L2 penalty on W.
    """
    layer = nn.Linear(x.size(1), classes, device=x.device)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(
        layer.parameters(), max_iter=_STEPS, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(layer(x), y) + penalty / 2 * layer.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return layer.requires_grad_(False)


def _accuracy(guesses: Tensor, targets: Tensor) -> float:
    return 100 * guesses.eq(targets).double().mean().item()
