/* Room for the intermediate values of a step. */
#ifndef ROOM_H
#define ROOM_H

#include "decoder.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#define AT_ONCE 264      /* rows of logits */
#define AFTER_PREVIEW 18 /* of them, if a preview computed them */
#define LOGITS 65536     /* or less are looked at before the next ones are computed */
#define CHUNK 48         /* rows whose hidden layer stays in the cache */

/* The next part of a room. scripts/sanitize.sh finds what is read or written behind it: there a gap
 * follows, which AddressSanitizer watches. Where room is only counted, places begin at 0. */
static inline char *take(char **place, int64_t bytes)
{
    char *found = *place;
    *place += padded(bytes, 64);
#ifdef __SANITIZE_ADDRESS__
    *place += 64;
    if ((uintptr_t)found > UINT32_MAX) {
        __asan_unpoison_memory_region(found, bytes); /* gaps of a step with fewer beams */
        __asan_poison_memory_region(found + bytes, *place - (found + bytes));
    }
#endif
    return found;
}

/* Rows that the output layer takes at once. The weights are read once for them all. Those of a
 * preview are few: they may be read more often, so that all logits stay in a near cache. */
static inline int64_t count_rows_at_once(const Decoder *decoder, const Step *step)
{
    int64_t rows = step->sentences * step->beam;
    int64_t most = decoder->preview && !step->candidates ? AFTER_PREVIEW : AT_ONCE;
    return rows < most ? rows : most;
}

/* Outputs of these rows that are computed before they are looked at, in whole blocks. */
static inline int64_t count_outputs_at_once(const Decoder *decoder, const Step *step)
{
    int64_t all = padded(step->output->outputs, BLOCK);
    int64_t some = LOGITS / count_rows_at_once(decoder, step) / BLOCK * BLOCK;
    return some < all && !(decoder->preview && !step->candidates) ? some : all;
}

/* Sets all pointers of `room`, from that of the step on; returns how many bytes they take. */
static inline int64_t lay_out(const Decoder *decoder, const Step *step, Room *room)
{
    int64_t rows = step->sentences * step->beam, channels = decoder->channels;
    int64_t stride = padded(channels, BLOCK);
    int64_t hidden = padded(decoder->layer->mlp.first.outputs, BLOCK) * CHUNK;
    int64_t inputs = rows * stride > hidden ? rows * stride : hidden;
    int64_t symbols = padded(step->output->outputs, BLOCK);
    int64_t chosen = count_rows_at_once(decoder, step);
    int64_t size = sizeof(float);
    char *start = (char *)padded((intptr_t)step->room, 64), *place = start;
    room->x = (float *)take(&place, rows * stride * size);
    room->y = (float *)take(&place, rows * stride * size);
    room->both = (float *)take(&place, rows * padded(2 * channels, BLOCK) * size);
    room->hidden = (float *)take(&place, hidden * size);
    room->past = (float *)take(&place, rows * decoder->layers * channels * size);
    room->logits = (float *)take(&place, chosen * count_outputs_at_once(decoder, step) * size);
    room->maxima = (float *)take(&place, symbols / BLOCK * GROUP * size);
    room->largest = (float *)take(&place, chosen * size);
    room->total = (float *)take(&place, chosen * size);
    room->best_logits = (float *)take(&place, chosen * step->best * size);
    room->best_symbols = (int64_t *)take(&place, chosen * step->best * sizeof(int64_t));
    room->best_places = (int64_t *)take(&place, chosen * step->best * sizeof(int64_t));
    room->likely = (int32_t *)take(&place, (symbols + 1) * size);
    room->weights = (float *)take(&place, ROWS * padded(step->source, GROUP) * size);
    room->found = (float *)take(&place, ROWS * padded(channels / decoder->heads, GROUP) * size);
    room->scales = (float *)take(&place, rows * size);
    room->sums = (int32_t *)take(&place, rows * size);
    room->inputs = (int8_t *)take(&place, inputs);
    return place - start + 64;
}

#endif
