"""A cheap look at all logits of the output layer, after Shim et al. 2017, "SVD-softmax".

The output layer E multiplies features h of C numbers. Of all products with W numbers in between,
`wide (narrow h)` is the nearest to E h on what the model says of a text. There features lie in few
directions, so W may be much smaller than C. A plain decomposition of E, as in the paper, needs many
more numbers.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from fairseq.data.data_utils import collate_tokens

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.errors import UserError
from resmlp_mt.export.parallel_text import ParallelText, encode_pair
from resmlp_mt.models.folded import round_rows
from resmlp_mt.models.translation import ResMLPModel

_SHARE, _MULTIPLE = 4, 8  # W is a quarter of C, in eights
_PAIRS = 1000  # of sentences; up to twice as many
_TOGETHER = 50
_LEAST = 1e-4  # of the mean variance: directions that the text has not are looked at too


def learn_preview(
    text: ParallelText, model: ResMLPModel, codec: TextCodec
) -> dict[str, np.ndarray]:
    """The arrays of a preview: float32 "narrow", (C, W), and int8 "wide", (V, W), with "scales".

    Args:
        text: Like what will be translated. 1,000 to 2,000 pairs are taken evenly.
        model: In eval mode.
        codec: Its subwords and dictionaries.

    Raises:
        UserError: If the files cannot be read, differ in length, or have no words that fit into the
            model; or its features are 0, or no numbers.
    """
    moment = _measure_features(text, model, codec)
    if not (moment.isfinite().all() and moment.trace() > 0):
        raise UserError(f"{text}: the model makes nothing of it")
    rows = model.decoder.output.weight.detach().double()
    channels = rows.shape[1]
    size = min(channels, -(-channels // (_SHARE * _MULTIPLE)) * _MULTIPLE)
    moment += _LEAST * moment.trace() / channels * torch.eye(channels)
    variances, axes = torch.linalg.eigh(moment)
    whiten, colour = axes * variances**-0.5 @ axes.T, axes * variances**0.5 @ axes.T
    # The main directions of E h for white h, the largest last.
    _, directions = torch.linalg.eigh(colour @ (rows.T @ rows) @ colour)
    directions = directions[:, -size:]
    wide, scales = round_rows((rows @ colour @ directions).float().numpy())
    narrow = (whiten @ directions).float().contiguous()
    return {"narrow": narrow.numpy(), "wide": wide, "scales": scales}


def _take_evenly(text: ParallelText) -> list[tuple[str, str]]:
    """Pairs from everywhere in the text, `_PAIRS` to twice as many; all if it has fewer.

    Those without words do not count.
    """

    def read() -> Iterator[tuple[str, str]]:
        return (pair for pair in text.read() if all(side.strip() for side in pair))

    stride = max(1, sum(1 for _ in read()) // _PAIRS)
    return list(islice(read(), 0, None, stride))


@torch.no_grad()
def _measure_features(text: ParallelText, model: ResMLPModel, codec: TextCodec) -> torch.Tensor:
    """The mean of h h^T over the subwords of the translations. (C, C)."""
    longest = model.encoder.longest - 1, model.decoder.longest - 1
    pairs = [encode_pair(pair, codec) for pair in _take_evenly(text)]
    kept = [
        pair for pair in pairs
        if all(0 < len(side) <= most for side, most in zip(pair, longest, strict=True))
    ]  # fmt: skip
    if not kept:
        raise UserError(f"{text}: no words to learn a preview from")
    kept.sort(key=lambda pair: len(pair[1]))
    end, pad = codec.target_dictionary.eos(), codec.target_dictionary.pad()
    moment, seen = 0, 0
    for first in range(0, len(kept), _TOGETHER):
        sources, targets = zip(*kept[first : first + _TOGETHER], strict=True)
        last = codec.source_dictionary.eos()
        source = collate_tokens([torch.tensor([*s, last]) for s in sources], pad)
        target = collate_tokens([torch.tensor([end, *t]) for t in targets], pad)
        features, _ = model(source, None, target, features_only=True)
        features = features[target != pad].double()
        moment, seen = moment + features.T @ features, seen + len(features)
    return moment / seen
