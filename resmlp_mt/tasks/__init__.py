"""Problems that fairseq lacks: their data, metrics and steps."""

from resmlp_mt.tasks import image_classification, image_pretraining, translation  # noqa: F401
