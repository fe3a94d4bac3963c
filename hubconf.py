"""The models of this repository, by name, for `torch.hub.load`.

torch.hub.load("PATH", "en-de", source="local").translate("Where did you learn that?")
"""

from functools import partial

from resmlp_mt.engines.classifier import Classifier
from resmlp_mt.models.translation import ResMLPModel

dependencies = ["fairseq", "sentencepiece", "torch"]


def resmlp(model_name_or_path: str, **options):
    """fairseq's interface to a translator: arguments of `ResMLPModel.from_pretrained`."""
    return ResMLPModel.from_pretrained(model_name_or_path, **options)


def cifar10(**options) -> Classifier:
    """The shipped classifier: arguments of `Classifier.from_pretrained`."""
    return Classifier.from_pretrained("cifar10", **options)


# Names with hyphens, which only torch.hub can say.
for _name in ("de-en", "en-de", "multi30k-en-de"):
    globals()[_name] = partial(resmlp, _name)
