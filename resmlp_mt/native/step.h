/* One step of a search: the folded decoder, from the last tokens to the best continuations. */
#include "attention.h"
#include "decoder.h"
#include "logits.h"
#include "mlp.h"
#include "numbers.h"
#include "products.h"
#include "room.h"

#define WIDEST (2 * VECTORS) /* vectors of a single beam that have their sums in registers */

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

/* The sums of the earlier positions in some beams of a sentence, for some vectors of channels from
 * `start` on, of which `left` are left. They stay in registers. `rows`, `half` and `vectors` are
 * constants where it is called. */
INLINE void remember_some(int rows, int half, int vectors, const Step *step, int64_t first,
                          int64_t width, int64_t start, int64_t left, float *past)
{
    int64_t all = step->sentences * step->beam, size = half ? sizeof(uint16_t) : sizeof(float);
    floats found[ROWS][WIDEST] = {{{0}}};
    for (int64_t t = 0; t < step->past; t++) {
        const float *factor = step->row + t * width + start;
        const int64_t *places = step->ancestors + t * all + first;
        const int64_t *next = t + 1 < step->past ? places + all : places;
        WRITTEN_OUT
        for (int row = 0; row < rows; row++) {
            const char *history = (const char *)step->history + start * size;
            const char *values = history + places[row] * width * size;
            fetch(history + next[row] * width * size, vectors * LANES * size);
            WRITTEN_OUT
            for (int vector = 0; vector < vectors; vector++) {
                int64_t i = vector * LANES;
                found[row][vector] += get_of(half, values, i, left) * get(factor + i, left - i, 0);
            }
        }
    }
    WRITTEN_OUT
    for (int vector = 0; vector < vectors; vector++) {
        int64_t i = vector * LANES;
        floats offset = step->offset ? get(step->offset + start + i, left - i, 0) : (floats){0};
        for (int row = 0; row < rows; row++)
            put(past + row * width + i, found[row][vector] + offset, left - i);
    }
}

/* The same for all beams. (B M, D C). The beams of a sentence have many positions in common, which
 * the cache then holds. `half` is a constant where it is called. */
INLINE void remember(const Decoder *decoder, const Step *step, int half, float *past)
{
    int64_t width = decoder->layers * decoder->channels, beam = step->beam;
    enum { FEW = VECTORS * LANES, MANY = WIDEST * LANES };
    for (int64_t sentence = 0; sentence < step->sentences; sentence++)
        for (int64_t row = 0; row < beam; row += ROWS) {
            int64_t first = sentence * beam + row, start = 0;
            float *to = past + first * width;
            for (; beam == 1 && start + MANY <= width; start += MANY)
                remember_some(1, half, WIDEST, step, first, width, start, MANY, to + start);
            for (; start + FEW <= width; start += FEW)
                WITH_ROWS(beam - row, remember_some(R, half, VECTORS, step, first, width, start,
                                                    FEW, to + start))
            for (; start < width; start += LANES)
                WITH_ROWS(beam - row, remember_some(R, half, 1, step, first, width, start,
                                                    width - start, to + start))
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

/* Put a continuation in its place among the best n, which are sorted. */
static void insert(int64_t n, float *scores, int64_t *symbols, int64_t *places, float score,
                   int64_t symbol, int64_t place)
{
    int64_t i = n - 1;
    for (; i > 0 && scores[i - 1] < score; i--) {
        scores[i] = scores[i - 1];
        symbols[i] = symbols[i - 1];
        places[i] = places[i - 1];
    }
    scores[i] = score;
    symbols[i] = symbol;
    places[i] = place;
}

/* A row of whose logits none was looked at. */
static void begin_row(const Step *step, int64_t row, Room *room)
{
    room->largest[row] = -INFINITY;
    room->total[row] = 0;
    for (int64_t i = row * step->best; i < (row + 1) * step->best; i++)
        room->best_logits[i] = -INFINITY;
}

/* Look at logits `start` to `end` - 1 of a row, which is the one of `beam`: whole blocks. */
static void look_at(const Decoder *decoder, const Step *step, int64_t beam, int64_t row,
                    int64_t start, int64_t end, float *logits, Room *room)
{
    int64_t symbols = step->output->outputs, last = end < symbols ? end : symbols;
    int64_t ending = step->candidates ? 0 : decoder->end;
    int64_t best = row * step->best, place = beam % step->beam * step->width;
    const float *worst = room->best_logits + best + step->best - 1;
    logits -= start;
    for (int64_t i = start; i < last && step->barred; i++)
        logits[i] += step->barred[beam / step->beam * symbols + i];
    for (int64_t i = last; i < end; i++)
        logits[i] = -INFINITY;
    float largest = largest_of(logits + start, end - start);
    if (largest > room->largest[row]) {
        room->total[row] *= expf(room->largest[row] - largest);
        room->largest[row] = largest;
    }
    if (room->largest[row] > -INFINITY)
        room->total[row] += sum_exp(logits + start, end - start, room->largest[row]);
    if (step->log_p)
        memcpy(step->log_p + beam * symbols + start, logits + start,
               (last - start) * sizeof *logits);
    if (start <= ending && ending < end)
        step->ends[beam] = logits[ending];
    for (int64_t i = 0; i < decoder->bans && !step->candidates; i++)
        if (start <= decoder->banned[i] && decoder->banned[i] < end)
            logits[decoder->banned[i]] = -INFINITY;
    for (int64_t first = start; first < end; first += LANES)
        for (uint32_t found = find_reaching(logits + first, *worst); found; found &= found - 1) {
            int64_t i = first + __builtin_ctz(found);
            if (logits[i] > *worst)
                insert(step->best, room->best_logits + best, room->best_symbols + best,
                       room->best_places + best, logits[i],
                       step->candidates ? step->candidates[i] : i, place);
        }
}

/* Put the best continuations of a beam among those of its sentence. */
static void end_row(const Step *step, int64_t beam, int64_t row, Room *room)
{
    int64_t symbols = step->output->outputs, to = beam / step->beam * step->best;
    float share = room->largest[row] + logf(room->total[row]), less = step->scores[beam] - share;
    step->ends[beam] += less;
    for (int64_t i = 0; i < symbols && step->log_p; i++)
        step->log_p[beam * symbols + i] -= share;
    for (int64_t i = row * step->best; i < (row + 1) * step->best; i++) {
        float score = room->best_logits[i] + less;
        if (!(score > step->best_scores[to + step->best - 1]))
            break;
        insert(step->best, step->best_scores + to, step->best_tokens + to, step->best_places + to,
               score, room->best_symbols[i], room->best_places[i]);
    }
}

/* The best continuations of some beams, whose features are y. */
static void choose(const Decoder *decoder, const Step *step, int64_t first, int64_t rows,
                   const float *y, Room *room)
{
    int64_t stride = padded(decoder->channels, BLOCK), wide = padded(step->output->outputs, BLOCK);
    int64_t slice = count_outputs_at_once(decoder, step), end;
    int previewed = decoder->preview && !step->candidates;
    for (int64_t row = 0; row < rows; row++)
        begin_row(step, row, room);
    if (previewed)
        compute_preview(decoder, step, first, rows, y, room);
    else
        quantise_rows(step->output, rows, y, stride, room);
    for (int64_t start = 0; start < wide; start = end) {
        end = wide - start < slice ? wide : start + slice;
        if (!previewed)
            multiply_outputs(step->output, start, end, rows, y, stride, room->logits, slice, 0,
                             room);
        for (int64_t row = 0; row < rows; row++)
            look_at(decoder, step, first + row, row, start, end, room->logits + row * slice, room);
    }
    for (int64_t row = 0; row < rows; row++)
        end_row(step, first + row, row, room);
}

static void take_step(const Decoder *decoder, const Step *step)
{
    int64_t channels = decoder->channels, rows = step->sentences * step->beam;
    int64_t stride = padded(channels, BLOCK);
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
        choose(decoder, step, row, some, room.y + row * stride, &room);
    }
}
