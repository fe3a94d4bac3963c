"""Layers shared by text and images. Torch only: this room never imports fairseq.

Shapes, everywhere in this package: B batch, S source length, T target length, L any length,
N positions that the mixing matrix A was made for, C channels, H mixing heads, V vocabulary,
K classes. Tensors are batch first.
"""
