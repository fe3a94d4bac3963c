"""What `torch.hub.load` offers, under the names of the models that come with this repository.

torch.hub.load("PATH", "multi30k-en-de", source="local").translate("A man rides a bike.")
"""

from functools import partial

from resmlp_mt.inference.classifier import Classifier
from resmlp_mt.models.translation import ResMLPModel

dependencies = ["fairseq", "sentencepiece", "torch"]


def resmlp(model: str, **options):
    """fairseq's interface to a translator: arguments of `ResMLPModel.from_pretrained`."""
    return ResMLPModel.from_pretrained(model, **options)


def cifar10(**options) -> Classifier:
    """The shipped classifier: arguments of `Classifier.from_pretrained`."""
    return Classifier.from_pretrained("cifar10", **options)


# A name with hyphens, which only torch.hub can say.
globals()["multi30k-en-de"] = partial(resmlp, "multi30k-en-de")
