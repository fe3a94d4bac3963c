/* The attention of a step to the source. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include "decoder.h"
#include "numbers.h"
#include "products.h"

/* The attention of some beams of a sentence with one head. query, to: (rows, stride). keys: (width,
 * places), of which only those up to `length` count. */
INLINE void attend_with_head(int rows, int64_t half, const float *query, int64_t stride,
                             int64_t width, const void *keys, int64_t places, const void *memory,
                             int64_t length, float *to, Room *room)
{
    int64_t groups = padded(length, GROUP), wide = padded(width, GROUP);
    float scale = 1.0f / sqrtf(width);
    multiply_matrix(rows, half, width, keys, places, groups, query, stride, room->weights);
    for (int row = 0; row < rows; row++) {
        float *weights = room->weights + row * groups;
        for (int64_t s = 0; s < groups; s += LANES)
            *(floats *)(weights + s) *= scale;
        for (int64_t s = length; s < groups; s++) /* padding gets no weight */
            weights[s] = -INFINITY;
        softmax(weights, groups);
    }
    multiply_matrix(rows, half, length, memory, wide, wide, room->weights, groups, room->found);
    for (int row = 0; row < rows; row++)
        memcpy(to + row * stride, room->found + row * wide, width * sizeof(float));
}

/* x += attention to the source. */
static void attend(const Decoder *decoder, const Step *step, int64_t number, Room *room)
{
    const Layer *layer = decoder->layer + number;
    int64_t channels = decoder->channels, heads = decoder->heads, width = channels / heads;
    int64_t rows = step->sentences * step->beam, stride = padded(channels, BLOCK);
    int64_t places = padded(step->source, GROUP), wide = padded(width, GROUP);
    for (int64_t row = 0; row < rows; row++)
        normalise(room->y + row * stride, room->x + row * stride, channels, layer->norm_c);
    multiply(&layer->query, rows, room->y, stride, room->both, stride, 0, room);
    if (step->query && number == decoder->layers - 1)
        for (int64_t row = 0; row < rows; row++)
            memcpy(step->query + row * channels, room->both + row * stride,
                   channels * sizeof(float));
    for (int64_t sentence = 0; sentence < step->sentences; sentence++)
        for (int64_t head = 0; head < heads; head++) {
            int64_t source = step->at_work[sentence];
            int64_t part = (number * step->all + source) * heads + head;
            int64_t size = step->half_memory ? sizeof(uint16_t) : sizeof(float);
            const char *keys = (const char *)step->keys + part * width * places * size;
            const char *memory = (const char *)step->memory + part * step->source * wide * size;
            fetch(memory, step->lengths[source] * wide * size);
            for (int64_t beam = 0; beam < step->beam; beam += ROWS) {
                int64_t row = sentence * step->beam + beam, left = step->beam - beam;
                const float *query = room->both + row * stride + head * width;
                float *to = room->y + row * stride + head * width;
                WITH_ROWS(left,
                          attend_with_head(R, step->half_memory, query, stride, width, keys,
                                           places, memory, step->lengths[source], to, room))
            }
        }
    multiply(&layer->out, rows, room->y, stride, room->x, stride, 1, room);
}

#endif
