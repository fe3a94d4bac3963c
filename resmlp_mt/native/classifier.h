/* A classifier, as Python hands it over: resmlp_mt/engines/kernels/structures.py reads the
 * structures from here. N patches, C channels, K classes. Rows of channels are padded to whole blocks with
 * zeros; `stride` is that many numbers. */
#ifndef CLASSIFIER_H
#define CLASSIFIER_H

#include "decoder.h"

/* x = x + (A norm(x)) * scale + offset, then x = x + mlp(x). The norm as in Layer. A layer of the
 * class embedding has the same parts: its A has one row, whose x are the patches. */
typedef struct {
    float norm;
    const float *matrix; /* (N, N), or (1, N) */
    const float *scale;  /* (stride) */
    const float *offset; /* (N, stride), or (1, stride) */
    Mlp mlp;
} Block;

typedef struct {
    int64_t patches, channels, hidden, classes;
    int64_t planes, side, patch;  /* channels of the pixels, pixels of a side, and of a patch's */
    int64_t blocks, layers;
    const Block *block, *layer;
    const float *embedding;       /* (stride), of the class; NULL: the mean of the patches */
    const float *zeros, *ones;    /* (stride) */
    float norm;                   /* the last one */
    Product embed, head;          /* patches to features; features to the classes */
} Classifier;

/* B images. Each thread calls with the same structure, and its number. */
typedef struct {
    int64_t images, threads;
    const uint8_t *pixels;        /* (B, planes, side, side) */
    float *logits;                /* (B, K padded to blocks) */
    int64_t taken, arrived;       /* 0 before the first call */
    void *room;                   /* threads + 1 times the bytes of `count_classifier_room` */
} Batch;

int64_t count_classifier_room(const Classifier *classifier);

#endif
