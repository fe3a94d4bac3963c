"""Embeddings, blocks and heads joined into models that fairseq knows by name."""

from resmlp_mt.models import (  # noqa: F401
    bit,
    cyclemlp,
    gmlp,
    image_classification,
    metaformer,
    mixer,
    s2mlp,
    translation,
)
