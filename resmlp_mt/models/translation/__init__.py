"""The sequence-to-sequence ResMLP (arXiv 2105.03404, section 3.6) as a fairseq model."""

from resmlp_mt.models.translation.config import ResMLPConfig
from resmlp_mt.models.translation.decoder import ResMLPDecoder
from resmlp_mt.models.translation.encoder import ResMLPEncoder
from resmlp_mt.models.translation.model import ResMLPModel

__all__ = ["ResMLPConfig", "ResMLPDecoder", "ResMLPEncoder", "ResMLPModel"]
