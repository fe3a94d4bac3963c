"""The initialisation of the translator's weights."""

import torch
from torch import nn


def init_linear(module: nn.Module) -> None:
    """Initialise a linear layer as fairseq's Transformer does, so that only the mixing differs."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


def build_tokens(dictionary, dim: int) -> nn.Embedding:
    """The table of token embeddings for fairseq's dictionary. (V, C)."""
    tokens = nn.Embedding(len(dictionary), dim, dictionary.pad())
    nn.init.normal_(tokens.weight, std=dim**-0.5)
    with torch.no_grad():
        tokens.weight[dictionary.pad()].zero_()
    return tokens
