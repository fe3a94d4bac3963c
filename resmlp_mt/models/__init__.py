"""Embeddings, blocks and heads joined into models that fairseq knows by name."""
