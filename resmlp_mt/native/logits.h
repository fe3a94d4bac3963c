/* Logits of a step, of all symbols or candidates. With a preview those of the likely symbols alone
 * are as the output layer has them.
 */
#ifndef LOGITS_H
#define LOGITS_H

#include "decoder.h"
#include "numbers.h"
#include "products.h"

#define LOOKED_AT 256 /* of the likeliest logits, or more, are computed in full after a preview */
#define HALVINGS 12   /* in search of the number that so many reach */
#define FAR 50        /* a logit so far below the best is as good as impossible */
#define AHEAD 8       /* rows of weights that are on their way from memory */

/* A bar that at least `some` of n numbers reach, and not many more: of those that are at most FAR
 * below the largest. */
static float find_bar(const float *x, int64_t n, int64_t some)
{
    float high = largest_of(x, n), low = high - FAR;
    for (int tries = 0; tries < HALVINGS; tries++) {
        float middle = 0.5f * (low + high);
        ints counts = {0};
        for (int64_t i = 0; i < n; i += LANES)
            counts -= get(x + i, n - i, -INFINITY) >= middle;
        int32_t reach = add_up_ints(counts);
        if (reach < some)
            high = middle;
        else
            low = middle;
        if (some <= reach && reach <= some + some / 8)
            break;
    }
    return low;
}

/* Of logits the places of those that are among the first `some`, and of a few more. Returns how
 * many they are. `places` has room for one more than there are symbols. */
static int64_t find_likely(float *logits, int64_t symbols, int64_t some, float *maxima,
                           int32_t *places)
{
    int64_t blocks = padded(symbols, BLOCK) / BLOCK, n = 0;
    for (int64_t i = symbols; i < blocks * BLOCK; i++)
        logits[i] = -INFINITY;
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t lane = 0; lane < GROUP; lane += LANES) {
            const float *x = logits + block * BLOCK + lane;
            floats found = *(const floats *)x;
            for (int64_t next = GROUP; next < BLOCK; next += GROUP)
                found = larger(found, *(const floats *)(x + next));
            *(floats *)(maxima + block * GROUP + lane) = found;
        }
    float bar = find_bar(maxima, blocks * GROUP, some);
    for (int64_t first = 0; first < blocks * GROUP; first += LANES)
        for (uint32_t found = find_reaching(maxima + first, bar); found; found &= found - 1) {
            int64_t i = first + __builtin_ctz(found), place = i / GROUP * BLOCK + i % GROUP;
            for (int64_t k = place; k < place + BLOCK; k += GROUP) {
                places[n] = k; /* the next one takes its place, unless it counts */
                /* All may be -inf. Then the bar is too, and what pads a block reaches it. */
                n += (logits[k] >= bar) & (k < symbols);
            }
        }
    return n;
}

/* Put logits as the output layer has them in the place of those that a preview finds likely, and of
 * the end. A wide beam goes on with more of them: in the first step all with those of one row. */
static void look_closer(const Decoder *decoder, const Step *step, const float *y, float *logits,
                        Room *room)
{
    const Preview *preview = decoder->preview;
    const Product *output = step->output;
    int64_t channels = decoder->channels, some = step->best > LOOKED_AT ? step->best : LOOKED_AT;
    int32_t sum = 0, *likely = room->likely;
    float size = 0;
    if (preview->bytes)
        size = quantise(room->inputs, y, channels, reach_of(y, channels), STEPS, &sum);
    int64_t n = find_likely(logits, output->outputs, some, room->maxima, likely);
    likely[n++] = decoder->end;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = likely[k], next = likely[k + AHEAD < n ? k + AHEAD : k];
        if (preview->bytes) {
            fetch(preview->bytes + next * channels, channels);
            logits[i] = multiply_bytes_row(output, i, preview->bytes + i * channels, room->inputs,
                                           size, sum);
        } else {
            fetch(preview->floats + next * channels, channels * sizeof(float));
            logits[i] = multiply_floats_row(output, i, preview->floats + i * channels, y);
        }
    }
}

/* Logits of some rows by a preview, from their features: (rows, wide). */
static void compute_preview(const Decoder *decoder, const Step *step, int64_t first, int64_t rows,
                            const float *y, Room *room)
{
    const Preview *preview = decoder->preview;
    int64_t stride = padded(decoder->channels, BLOCK), wide = padded(step->output->outputs, BLOCK);
    int64_t narrow = padded(preview->narrow.outputs, BLOCK);
    multiply(&preview->narrow, rows, y, stride, room->both, narrow, 0, room);
    multiply(&preview->wide, rows, room->both, narrow, room->logits, wide, 0, room);
    for (int64_t row = 0; row < rows; row++) {
        float *logits = room->logits + row * wide;
        if (step->log_p && step->forced[(first + row) / step->beam])
            multiply(step->output, 1, y + row * stride, stride, logits, wide, 0, room);
        else
            look_closer(decoder, step, y + row * stride, logits, room);
    }
}

#endif
