/* An encoder, as Python hands it over: resmlp_mt/engines/kernels/structures.py reads the
 * structures from here. C channels, H mixing heads, N positions, D layers and E heads of the attention to the
 * source. Rows of channels are padded to whole blocks with zeros; `stride` is that many numbers. */
#ifndef ENCODER_H
#define ENCODER_H

#include "decoder.h"

/* x = x + gate * (A value + bias), then x = x + mlp(x). Where nothing is gated the first is
 * x = x + scale * (A norm(x)) + shift * (sums of A's rows) + bias. The norm and `project` as in
 * Layer. */
typedef struct {
    float norm;
    int32_t gated;           /* `mix` makes the gate and then the value */
    Product mix, project;
    const float *matrix;     /* of each head */
    const float *scale, *shift; /* (C) */
    const float *bias, *bias_scale; /* (H, N) and (C), whose product is the bias; or NULL */
    Mlp mlp;
} EncoderLayer;

typedef struct {
    int64_t layers, channels, heads, positions;
    int64_t size, start, next; /* numbers of a head's matrix; where its first row begins, and how
                                * far behind it the next is: -1 where all share one (Toeplitz) */
    int64_t attention_heads, sides; /* E and 2 D */
    const EncoderLayer *layer;
    float norm;     /* the last one */
    Product memory; /* of the normalised x, to the keys and values of all layers */
} Encoder;

/* B sentences, whose rows follow each other. S is the length of the longest. */
typedef struct {
    int64_t sentences, longest;
    const int64_t *starts; /* (B + 1), the first row of each, and their number */
    float *x;              /* (rows, stride), embeddings, which are overwritten */
    int64_t half;          /* whether keys and values are written in 16 bits */
    void *keys;            /* (D, B, E, C / E, S), S padded to groups */
    void *values;          /* (D, B, E, S, C / E), C / E padded to groups; padding is not written */
    void *room;            /* as many bytes as `count_encoder_room` says */
} Encoding;

int64_t count_encoder_room(const Encoder *encoder, const Encoding *encoding);

#endif
