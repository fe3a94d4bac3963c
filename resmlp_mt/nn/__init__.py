"""Layers shared by text and images. Torch only: this room never imports fairseq.

The letters of shapes, here and in `models/`. Each has one meaning:

    B  batch: sentences or images
    R  rows of the decoder: the beams of B sentences
    S  source length
    T  target length
    L  any length
    N  positions that the mixing matrix A was made for
    C  channels
    H  mixing heads
    V  vocabulary
    K  classes

What has no letter is written out: (B, C, rows, columns). Tensors are batch first.
"""
