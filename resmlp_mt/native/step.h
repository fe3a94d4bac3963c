/* One step of a search: the folded decoder, from the last tokens to the best continuations. */
#include "attention.h"
#include "decoder.h"
#include "logits.h"
#include "mlp.h"
#include "numbers.h"
#include "products.h"
#include "room.h"

static void embed(const Decoder *decoder, const Step *step, float *x)
{
    int64_t channels = decoder->channels, stride = padded(channels, BLOCK);
    for (int64_t row = 0; row < step->sentences * step->beam; row++, x += stride) {
        unpack(&decoder->embedding, step->tokens[row], x);
        for (int64_t i = 0; i < channels; i++)
            x[i] = x[i] * decoder->embedding_scale + (step->position ? step->position[i] : 0);
        memset(x + channels, 0, (stride - channels) * sizeof *x);
    }
}

/* The sum of the earlier positions in this one. (B M, D C). The beams of a sentence have many of
 * them in common, which the cache then holds, as it does the sums of a layer. `half` is a constant
 * where it is called. */
INLINE void remember(const Decoder *decoder, const Step *step, int half, float *past)
{
    int64_t channels = decoder->channels, width = decoder->layers * channels;
    int64_t beam = step->beam, rows = step->sentences * beam;
    int64_t size = half ? sizeof(uint16_t) : sizeof(float);
    for (int64_t first = 0; first < rows; first += beam, past += beam * width)
        for (int64_t start = 0; start < width; start += channels) {
            const char *history = (const char *)step->history + start * size;
            for (int64_t row = 0; row < beam; row++)
                if (step->offset)
                    memcpy(past + row * width + start, step->offset + start,
                           channels * sizeof *past);
                else
                    memset(past + row * width + start, 0, channels * sizeof *past);
            for (int64_t t = 0; t < step->past; t++) {
                const float *factor = step->row + t * width + start;
                const int64_t *places = step->ancestors + t * rows + first;
                const int64_t *next = t + 1 < step->past ? places + rows : places;
                for (int64_t row = 0; row < beam; row++) {
                    const char *value = history + places[row] * width * size;
                    fetch(history + next[row] * width * size, channels * size);
                    add_scaled(past + row * width + start, half, value, factor, channels);
                }
            }
        }
}

/* x += gate(y) * (A value(y)), or what `project` makes of it. Keep the values for later steps. */
static void mix_tokens(const Decoder *decoder, const Step *step, int64_t number, Room *room)
{
    const Layer *layer = decoder->layer + number;
    int64_t channels = decoder->channels, width = decoder->layers * channels;
    int64_t rows = step->sentences * step->beam, stride = padded(channels, BLOCK);
    int64_t wide = padded(2 * channels, BLOCK);
    int projected = layer->project.outputs > 0;
    const float *now = step->row + step->past * width + number * channels;
    for (int64_t row = 0; row < rows; row++)
        normalise(room->y + row * stride, room->x + row * stride, channels, layer->norm_1);
    if (layer->gated)
        multiply(&layer->mix, rows, room->y, stride, room->both, wide, 0, room);
    for (int64_t row = 0; row < rows; row++) {
        const float *gate = room->both + row * wide;
        const float *value = layer->gated ? gate + channels : room->y + row * stride;
        const float *past = room->past + row * width + number * channels;
        float *x = room->x + row * stride, *gated = room->y + row * stride;
        int64_t place = row * width + number * channels;
        if (step->half_history)
            halve_all((uint16_t *)step->values + place, value, channels);
        else
            memcpy((float *)step->values + place, value, channels * sizeof *value);
        for (int64_t i = 0; i < channels; i += LANES) {
            int64_t left = channels - i;
            floats mixed = get(past + i, left, 0) + get(value + i, left, 0) * get(now + i, left, 0);
            if (projected) {
                put(gated + i, sigmoid_of(get(gate + i, left, 0)) * mixed, left);
                continue;
            }
            if (layer->gated)
                mixed *= get(gate + i, left, 0);
            put(x + i, get(x + i, left, 0) + mixed, left);
        }
    }
    if (projected)
        multiply(&layer->project, rows, room->y, stride, room->x, stride, 1, room);
}

/* Put a continuation in its place among the best of a sentence, which are sorted. */
static void insert(const Step *step, int64_t sentence, float score, int64_t token, int64_t place)
{
    int64_t first = sentence * step->best, i = first + step->best - 1;
    for (; i > first && step->best_scores[i - 1] < score; i--) {
        step->best_scores[i] = step->best_scores[i - 1];
        step->best_tokens[i] = step->best_tokens[i - 1];
        step->best_places[i] = step->best_places[i - 1];
    }
    step->best_scores[i] = score;
    step->best_tokens[i] = token;
    step->best_places[i] = place;
}

/* Put the continuations of a beam, by their logits, among the best of its sentence. */
static void choose(const Decoder *decoder, const Step *step, int64_t row, float *logits, Room *room)
{
    int64_t sentence = row / step->beam, symbols = step->output->outputs;
    const float *worst = step->best_scores + (sentence + 1) * step->best - 1;
    float largest = -INFINITY, *blocks = room->blocks;
    if (step->barred)
        for (int64_t i = 0; i < symbols; i++)
            logits[i] += step->barred[sentence * symbols + i];
    for (int64_t i = symbols; i < padded(symbols, BLOCK); i++)
        logits[i] = -INFINITY;
    for (int64_t block = 0; block * BLOCK < symbols; block++) {
        blocks[block] = largest_of(logits + block * BLOCK, BLOCK);
        largest = blocks[block] > largest ? blocks[block] : largest;
    }
    float less = step->scores[row] - log_sum_exp(logits, padded(symbols, BLOCK), largest);
    if (step->log_p)
        for (int64_t i = 0; i < symbols; i++)
            step->log_p[row * symbols + i] = logits[i] + (less - step->scores[row]);
    step->ends[row] = logits[step->candidates ? 0 : decoder->end] + less;
    if (!step->candidates)
        for (int64_t i = 0; i < decoder->bans; i++)
            logits[decoder->banned[i]] = -INFINITY;
    for (int64_t block = 0; block * BLOCK < symbols; block++) {
        if (!(blocks[block] + less > *worst)) /* so it is in most blocks */
            continue;
        for (int64_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
            if (logits[i] + less > *worst)
                insert(step, sentence, logits[i] + less,
                       step->candidates ? step->candidates[i] : i,
                       row % step->beam * step->width);
    }
}

static void take_step(const Decoder *decoder, const Step *step)
{
    int64_t channels = decoder->channels, rows = step->sentences * step->beam;
    int64_t stride = padded(channels, BLOCK), wide = padded(step->output->outputs, BLOCK);
    Room room;
    lay_out(decoder, step, &room);
    embed(decoder, step, room.x);
    if (step->half_history)
        remember(decoder, step, 1, room.past);
    else
        remember(decoder, step, 0, room.past);
    for (int64_t number = 0; number < decoder->layers; number++) {
        mix_tokens(decoder, step, number, &room);
        attend(decoder, step, number, &room);
        apply_mlp(&decoder->layer[number].mlp, rows, room.x, room.y, room.hidden, &room);
    }
    for (int64_t row = 0; row < rows; row++) {
        float *y = room.y + row * stride;
        normalise(y, room.x + row * stride, channels, decoder->norm);
        for (int64_t i = 0; i < channels; i++)
            y[i] = y[i] * decoder->alpha[i] + decoder->beta[i];
    }
    for (int64_t i = 0; i < step->sentences * step->best; i++) {
        step->best_scores[i] = -INFINITY;
        step->best_tokens[i] = decoder->end;
        step->best_places[i] = 0;
    }
    int64_t at_once = count_rows_at_once(decoder, step);
    for (int64_t row = 0; row < rows; row += at_once) {
        int64_t some = rows - row < at_once ? rows - row : at_once;
        compute_logits(decoder, step, row, some, room.y + row * stride, &room);
        for (int64_t i = 0; i < some; i++)
            choose(decoder, step, row + i, room.logits + i * wide, &room);
    }
}
