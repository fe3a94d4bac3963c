"""fairseq's label-smoothed cross-entropy, without all of the logits at a time."""

import inspect
from dataclasses import dataclass, field

from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from torch import Tensor, nn

from resmlp_mt.criterions.chunked_loss import chunked_cross_entropy
from resmlp_mt.errors import UserError


@dataclass
class ChunkedCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """The flags of fairseq's criterion, and the size of a chunk."""

    chunk_tokens: int = field(
        default=0,
        metadata={
            "help": "target tokens whose logits are held at a time; "
            "0: 512 on CPUs, 2048 on accelerators"
        },
    )


@register_criterion("label_smoothed_cross_entropy_in_chunks", dataclass=ChunkedCrossEntropyConfig)
class ChunkedCrossEntropyCriterion(LabelSmoothedCrossEntropyCriterion):
    """The loss and the log of --criterion label_smoothed_cross_entropy, up to rounding.

    A model of its own logits cannot take it: it needs a decoder with `features_only` whose
    `output_projection` is one matrix, as ours and fairseq's Transformer have.
    """

    def __init__(
        self,
        task,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        chunk_tokens: int = 0,
    ):
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        if chunk_tokens < 0:
            raise UserError(f"--chunk-tokens cannot be negative, and is {chunk_tokens}")
        self.chunk_tokens = chunk_tokens

    def forward(self, model, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """The loss of a batch.

        Args:
            model: Tokens -> features (B, T, C), with `features_only`.
            sample: fairseq's.
            reduce: Sum over the tokens. Without it fairseq's own criterion computes the loss of
                each, from all of the logits.

        Returns:
            The loss, the number of tokens (or of sentences, with --sentence-avg), and what to log.

        Raises:
            UserError: If the model is no such model.
        """
        if not reduce:
            return super().forward(model, sample, reduce)
        features, weight = compute_features(model, sample["net_input"])
        target = model.get_targets(sample, None)[:, self.ignore_prefix_size :]
        words = target.ne(self.padding_idx)
        features, target = features[:, self.ignore_prefix_size :][words], target[words]
        chunk = self.chunk_tokens or (512 if features.device.type == "cpu" else 2048)
        loss, nll, hits = chunked_cross_entropy(
            features, weight, target, self.eps, chunk, self.report_accuracy
        )
        sentences = len(sample["target"])
        size = sentences if self.sentence_avg else sample["ntokens"]
        log = {
            "loss": loss.detach(),
            "nll_loss": nll,
            "ntokens": sample["ntokens"],
            "nsentences": sentences,
            "sample_size": size,
        }
        if hits is not None:
            log |= {"n_correct": utils.item(hits), "total": len(target)}
        return loss, size, log


# A checkpoint names the class of its criterion, and trains on with no other. This one computes the
# same, so that a training may go on with either.
ChunkedCrossEntropyCriterion.__name__ = LabelSmoothedCrossEntropyCriterion.__name__


def compute_features(model: nn.Module, given: dict) -> tuple[Tensor, Tensor]:
    """The two factors of the logits: features, and the matrix of the output layer.

    Args:
        model: As the criterion gets it: within the wrappers of several workers.
        given: Its input.

    Returns:
        Features (B, T, C) and the output matrix (V, C).

    Raises:
        UserError: If its logits are more than that product, or it does not give features alone.
    """
    module = model
    while hasattr(module, "module"):
        module = module.module
    output = getattr(getattr(module, "decoder", None), "output_projection", None)
    alone = "features_only" in inspect.signature(module.forward).parameters
    if not alone or not isinstance(output, nn.Linear) or output.bias is not None:
        raise UserError(
            f"{type(module).__name__} does not tell features and output matrix apart (or has an "
            "adaptive softmax): take --criterion label_smoothed_cross_entropy"
        )
    # The matrix goes out with the features: with --find-unused-parameters workers look at what a
    # model returns to know which parameters will have gradients. It is a view: the gradient of a
    # slice would be a copy of the matrix's.
    weight = output.weight.view_as(output.weight)
    with module.register_forward_hook(lambda *call: (*call[-1], weight)):
        features, _, weight = model(**given, features_only=True)
    return features, weight
