"""Embeddings, blocks and heads joined into models that fairseq knows by name."""

from resmlp_mt.models import gmlp, image_classification, mixer, s2mlp, translation  # noqa: F401
