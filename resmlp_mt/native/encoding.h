/* Room for the intermediate values of an encoder. */
#ifndef ENCODING_H
#define ENCODING_H

#include "encoder.h"
#include "room.h"

#define TOGETHER 96 /* rows of short sentences that share a look at the weights */

typedef struct {
    float *y, *both, *hidden; /* (rows, stride); (rows, 2 C) or keys and values; (CHUNK, hidden) */
    float *value, *found;     /* of a head, (S, C / H) and (ROWS, C / H), C / H padded to groups */
    uint16_t *halves;         /* keys and values of a row */
    Room room;                /* of products */
} Bench;

/* Sets all pointers of a bench that begins at `start`; returns how many bytes it takes. */
static inline int64_t lay_out_bench(const Encoder *encoder, int64_t longest, void *start, Bench *to)
{
    int64_t rows = longest > TOGETHER ? longest : TOGETHER, size = sizeof(float);
    int64_t stride = padded(encoder->channels, BLOCK), wide = padded(2 * encoder->channels, BLOCK);
    int64_t hidden = padded(encoder->layer->mlp.first.outputs, BLOCK);
    int64_t memory = padded(encoder->memory.outputs, BLOCK) * CHUNK;
    int64_t head = padded(encoder->channels / encoder->heads, GROUP);
    int64_t inputs = CHUNK * hidden > rows * stride ? CHUNK * hidden : rows * stride;
    Bench none;
    to = to ? to : &none;
    char *begin = (char *)padded((intptr_t)start, 64), *place = begin;
    to->y = (float *)take(&place, rows * stride * size);
    to->both = (float *)take(&place, (rows * wide > memory ? rows * wide : memory) * size);
    to->hidden = (float *)take(&place, CHUNK * hidden * size);
    to->value = (float *)take(&place, longest * head * size);
    to->found = (float *)take(&place, ROWS * head * size);
    to->halves = (uint16_t *)take(&place, encoder->memory.outputs * sizeof(uint16_t));
    to->room.scales = (float *)take(&place, rows * size);
    to->room.sums = (int32_t *)take(&place, rows * size);
    to->room.inputs = (int8_t *)take(&place, inputs);
    return place - begin + 64;
}

#endif
