/* The encoder, from embeddings to keys and values, for the processor that it is compiled for.
 *
 * Sentences are not padded. Short ones go through all layers together, so that they share a look at
 * the weights of the products.
 */
#include "encoder.h"
#include "encoding.h"
#include "mlp.h"
#include "numbers.h"
#include "products.h"

/* x += gate * (A value + bias) of some positions of a sentence, in the channels of one head. Where
 * the layer projects, x becomes sigmoid(gate) * (A value + bias). */
INLINE void mix_with_head(int rows, const Encoder *encoder, const EncoderLayer *layer, int64_t head,
                          int64_t first, int64_t length, const float *gate, int64_t wide, float *x,
                          int64_t stride, Bench *own)
{
    int64_t width = encoder->channels / encoder->heads, room = padded(width, GROUP);
    const float *matrix = layer->matrix + head * encoder->size + encoder->start;
    matrix += first * encoder->next;
    multiply_matrix(rows, 0, length, own->value, room, room, matrix, encoder->next, own->found);
    for (int row = 0; row < rows; row++) {
        float *found = own->found + row * room;
        if (!layer->gated) {
            const float *scale = layer->scale + head * width, *shift = layer->shift + head * width;
            float sum = sum_of(matrix + row * encoder->next, length);
            for (int64_t i = 0; i < width; i += LANES)
                *(floats *)(found + i) = *(floats *)(found + i) * get(scale + i, width - i, 0) +
                                         sum * get(shift + i, width - i, 0);
        }
        if (layer->bias) {
            const float *scale = layer->bias_scale + head * width;
            float bias = layer->bias[head * encoder->positions + first + row];
            for (int64_t i = 0; i < width; i += LANES)
                *(floats *)(found + i) += bias * get(scale + i, width - i, 0);
        }
        for (int64_t i = 0; i < width; i += LANES) {
            float *to = x + row * stride + i;
            int64_t left = width - i;
            floats mixed = *(floats *)(found + i); /* which has room for whole groups */
            if (layer->gated) {
                floats through = get(gate + row * wide + i, left, 0);
                mixed *= layer->project.outputs ? sigmoid_of(through) : through;
            }
            put(to, layer->project.outputs ? mixed : get(to, left, 0) + mixed, left);
        }
    }
}

/* The same of a whole sentence. `gate` and `value`: (length, wide). */
static void mix_sentence(const Encoder *encoder, const EncoderLayer *layer, int64_t length,
                         const float *gate, const float *value, int64_t wide, float *x,
                         int64_t stride, Bench *own)
{
    int64_t width = encoder->channels / encoder->heads, room = padded(width, GROUP);
    for (int64_t head = 0; head < encoder->heads;
         head++, gate += width, value += width, x += width) {
        for (int64_t position = 0; position < length; position++) {
            float *to = own->value + position * room;
            memcpy(to, value + position * wide, width * sizeof(float));
            memset(to + width, 0, (room - width) * sizeof(float));
        }
        for (int64_t first = 0; first < length; first += ROWS)
            WITH_ROWS(length - first,
                      mix_with_head(R, encoder, layer, head, first, length, gate + first * wide,
                                    wide, x + first * stride, stride, own))
    }
}

/* x += mixed x, of sentences first to last - 1. x: that of the first row of the first. */
static void mix_positions(const Encoder *encoder, const EncoderLayer *layer,
                          const Encoding *encoding, int64_t first, int64_t last, float *x,
                          Bench *own)
{
    int64_t channels = encoder->channels, stride = padded(channels, BLOCK);
    int64_t start = encoding->starts[first], rows = encoding->starts[last] - start, wide = stride;
    const float *gate = own->y, *value = own->y;
    float *to = layer->project.outputs ? own->y : x;
    for (int64_t row = 0; row < rows; row++)
        normalise(own->y + row * stride, x + row * stride, channels, layer->norm);
    if (layer->gated) {
        wide = padded(2 * channels, BLOCK);
        multiply(&layer->mix, rows, own->y, stride, own->both, wide, 0, &own->room);
        gate = own->both, value = gate + channels;
    }
    for (int64_t sentence = first; sentence < last; sentence++) {
        int64_t row = encoding->starts[sentence] - start;
        int64_t length = encoding->starts[sentence + 1] - encoding->starts[sentence];
        mix_sentence(encoder, layer, length, gate + row * wide, value + row * wide, wide,
                     to + row * stride, stride, own);
    }
    if (layer->project.outputs)
        multiply(&layer->project, rows, own->y, stride, x, stride, 1, &own->room);
}

/* Put the keys and values of a row where the attention finds them. */
static void put_away(const Encoder *encoder, const Encoding *encoding, int64_t sentence,
                     int64_t position, const float *from, Bench *own)
{
    int64_t heads = encoder->attention_heads;
    int64_t width = encoder->memory.outputs / encoder->sides / heads;
    int64_t places = padded(encoding->longest, GROUP), wide = padded(width, GROUP);
    int64_t size = encoding->half ? sizeof(uint16_t) : sizeof(float);
    const char *row = (const char *)from;
    if (encoding->half) {
        halve_all(own->halves, from, encoder->memory.outputs);
        row = (const char *)own->halves;
    }
    for (int64_t layer = 0; layer < encoder->sides / 2; layer++)
        for (int64_t head = 0; head < heads; head++) {
            int64_t part = (layer * encoding->sentences + sentence) * heads + head;
            int64_t value = (part * encoding->longest + position) * wide;
            int64_t key = part * width * places + position;
            const char *keys = row + (2 * layer * heads + head) * width * size;
            memcpy((char *)encoding->values + value * size, keys + heads * width * size,
                   width * size);
            for (int64_t i = 0; i < width; i++)
                if (encoding->half)
                    ((uint16_t *)encoding->keys)[key + i * places] = ((const uint16_t *)keys)[i];
                else
                    ((float *)encoding->keys)[key + i * places] = ((const float *)keys)[i];
        }
}

/* The keys and values of sentences first to last - 1. */
static void keep_memory(const Encoder *encoder, const Encoding *encoding, int64_t first,
                        int64_t last, Bench *own)
{
    const int64_t *starts = encoding->starts;
    int64_t stride = padded(encoder->channels, BLOCK);
    int64_t wide = padded(encoder->memory.outputs, BLOCK);
    int64_t row = starts[first], sentence = first;
    while (row < starts[last]) {
        int64_t rows = starts[last] - row < CHUNK ? starts[last] - row : CHUNK;
        for (int64_t i = 0; i < rows; i++)
            normalise(own->y + i * stride, encoding->x + (row + i) * stride, encoder->channels,
                      encoder->norm);
        multiply(&encoder->memory, rows, own->y, stride, own->both, wide, 0, &own->room);
        for (int64_t i = 0; i < rows; i++, row++) {
            while (row >= starts[sentence + 1])
                sentence++;
            put_away(encoder, encoding, sentence, row - starts[sentence], own->both + i * wide,
                     own);
        }
    }
}

void ENCODE(const Encoder *encoder, const Encoding *encoding)
{
    const int64_t *starts = encoding->starts, stride = padded(encoder->channels, BLOCK);
    Bench own;
    lay_out_bench(encoder, encoding->longest, encoding->room, &own);
    for (int64_t first = 0, last; first < encoding->sentences; first = last) {
        last = first + 1;
        while (last < encoding->sentences && starts[last + 1] - starts[first] <= TOGETHER)
            last++;
        float *x = encoding->x + starts[first] * stride;
        for (int64_t number = 0; number < encoder->layers; number++) {
            const EncoderLayer *layer = encoder->layer + number;
            mix_positions(encoder, layer, encoding, first, last, x, &own);
            apply_mlp(&layer->mlp, starts[last] - starts[first], x, own.y, own.hidden, &own.room);
        }
        keep_memory(encoder, encoding, first, last, &own);
    }
}
