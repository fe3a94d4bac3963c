"""Layers shared by text and images. Torch only: this room never imports fairseq.

The letters of shapes in this package. Each has one meaning:

    B  batch: sentences or images
    R  rows of the decoder: the beams of B sentences
    S  source length
    T  target length
    L  any length
    N  positions that the mixing matrix A was made for
    C  channels
    D  depth: the layers of a side
    E  heads of the attention to the source
    H  mixing heads
    V  vocabulary
    K  classes
    M  beams of a sentence

Sizes without a letter are written out: (B, C, rows, columns). Tensors are batch first.
"""
