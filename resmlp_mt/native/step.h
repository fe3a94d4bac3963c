/* One step of a search: the folded decoder, from the last tokens to the best continuations.
 *
 * It is compiled once for each kind of processor: the file that includes it says STEP, the name.
 */
#include "decoder.h"
#include "mlp.h"
#include "numbers.h"
#include "products.h"
#include "room.h"

#define LOOKED_AT 256 /* of the likeliest logits are computed in full after a preview, and some more */
#define HALVINGS 12   /* in search of the number that so many reach */
#define FAR 50        /* what has so much less than the best is as good as impossible */
#define AHEAD 8       /* rows of weights that are on their way from memory */

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

/* What the earlier positions add to this one. (B M, D C). The beams of a sentence have many of them in
 * common, which the cache then holds, as it does the sums of a layer. `half` is a constant where it is
 * called. */
static inline __attribute__((always_inline)) void remember(const Decoder *decoder, const Step *step,
                                                           int half, float *past)
{
    int64_t channels = decoder->channels, width = decoder->layers * channels;
    int64_t beam = step->beam, rows = step->sentences * beam;
    int64_t size = half ? sizeof(uint16_t) : sizeof(float);
    for (int64_t first = 0; first < rows; first += beam, past += beam * width)
        for (int64_t start = 0; start < width; start += channels) {
            const char *history = (const char *)step->history + start * size;
            for (int64_t row = 0; row < beam; row++)
                for (int64_t i = start; i < start + channels; i++)
                    past[row * width + i] = step->offset ? step->offset[i] : 0;
            for (int64_t t = 0; t < step->past; t++) {
                const float *factor = step->row + t * width + start;
                const int64_t *places = step->ancestors + t * rows + first;
                const int64_t *next = t + 1 < step->past ? places + rows : places;
                for (int64_t row = 0; row < beam; row++) {
                    fetch(history + next[row] * width * size, channels * size);
                    add_scaled(past + row * width + start, half, history + places[row] * width * size,
                               factor, channels);
                }
            }
        }
}

/* x += gate(y) * (A value(y)), or what `project` makes of it, and keep the values for later steps. */
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
            halve((uint16_t *)step->values + place, value, channels);
        else
            memcpy((float *)step->values + place, value, channels * sizeof *value);
        if (projected)
            SIDE_BY_SIDE
            for (int64_t i = 0; i < channels; i++)
                gated[i] = sigmoid_of(gate[i]) * (past[i] + value[i] * now[i]);
        else if (layer->gated)
            SIDE_BY_SIDE
            for (int64_t i = 0; i < channels; i++)
                x[i] += gate[i] * (past[i] + value[i] * now[i]);
        else
            SIDE_BY_SIDE
            for (int64_t i = 0; i < channels; i++)
                x[i] += past[i] + value[i] * now[i];
    }
    if (projected)
        multiply(&layer->project, rows, room->y, stride, room->x, stride, 1, room);
}

/* The attention of some beams of a sentence with one head. query, to: (rows, stride). keys: (width,
 * places), of which only those up to `length` count. */
static inline __attribute__((always_inline)) void attend_with_head(
    int rows, int64_t half, const float *query, int64_t stride, int64_t width, const void *keys,
    int64_t places, const void *memory, int64_t length, float *to, Room *room)
{
    int64_t groups = padded(length, GROUP), wide = padded(width, GROUP);
    float scale = 1.0f / sqrtf(width);
    multiply_matrix(rows, half, width, keys, places, groups, query, stride, room->weights);
    for (int row = 0; row < rows; row++) {
        float *weights = room->weights + row * groups;
        for (int64_t s = 0; s < groups; s++) /* whole groups are whole vectors */
            weights[s] = s < length ? weights[s] * scale : -INFINITY;
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
            int64_t size = step->half ? sizeof(uint16_t) : sizeof(float);
            const char *keys = (const char *)step->keys + part * width * places * size;
            const char *memory = (const char *)step->memory + part * step->source * wide * size;
            fetch(memory, step->lengths[source] * wide * size);
            for (int64_t beam = 0; beam < step->beam; beam += ROWS) {
                int64_t row = sentence * step->beam + beam, left = step->beam - beam;
                const float *query = room->both + row * stride + head * width;
                float *to = room->y + row * stride + head * width;
                WITH_ROWS(left, attend_with_head(R, step->half, query, stride, width, keys, places,
                                                 memory, step->lengths[source], to, room))
            }
        }
    multiply(&layer->out, rows, room->y, stride, room->x, stride, 1, room);
}

/* What at least `some` of n numbers reach, and not many more: of those that are at most FAR below the
 * largest. */
static float find_bar(const float *x, int64_t n, int64_t some)
{
    float high = largest_of(x, n), low = high - FAR;
    for (int tries = 0; tries < HALVINGS; tries++) {
        float middle = 0.5f * (low + high);
        int32_t reach = 0;
        SUM(reach)
        for (int64_t i = 0; i < n; i++)
            reach += x[i] >= middle;
        if (reach < some)
            high = middle;
        else
            low = middle;
        if (some <= reach && reach <= some + some / 8)
            break;
    }
    return low;
}

/* Of logits the places of those that are among the first LOOKED_AT, and of some more. Their number. */
static int64_t find_likely(float *logits, int64_t symbols, float *maxima, int32_t *places)
{
    int64_t blocks = padded(symbols, BLOCK) / BLOCK, n = 0;
    for (int64_t i = symbols; i < blocks * BLOCK; i++)
        logits[i] = -INFINITY;
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t lane = 0; lane < GROUP; lane++) {
            const float *x = logits + block * BLOCK + lane;
            float a = x[0] > x[GROUP] ? x[0] : x[GROUP];
            float b = x[2 * GROUP] > x[3 * GROUP] ? x[2 * GROUP] : x[3 * GROUP];
            maxima[block * GROUP + lane] = a > b ? a : b;
        }
    float bar = find_bar(maxima, blocks * GROUP, LOOKED_AT);
    for (int64_t first = 0; first < blocks * GROUP; first += LANES)
        for (uint32_t found = find_reaching(maxima + first, bar); found; found &= found - 1) {
            int64_t i = first + __builtin_ctz(found), place = i / GROUP * BLOCK + i % GROUP;
            for (int64_t k = place; k < place + BLOCK; k += GROUP) {
                places[n] = k; /* to stay, if it counts */
                n += logits[k] >= bar;
            }
        }
    return n;
}

/* Put logits as the output layer has them in the place of those that a preview finds likely, and of
 * the end. */
static void look_closer(const Decoder *decoder, const Product *output, const float *y, float *logits,
                        Room *room)
{
    const Preview *preview = decoder->preview;
    int64_t channels = decoder->channels;
    int32_t sum = 0, *likely = room->likely;
    float step = 0;
    if (preview->bytes)
        step = quantise(room->inputs, y, channels, reach_of(y, channels), STEPS, &sum);
    int64_t n = find_likely(logits, output->outputs, room->maxima, likely);
    likely[n++] = decoder->end;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = likely[k], next = likely[k + AHEAD < n ? k + AHEAD : k];
        if (preview->bytes) {
            for (int64_t byte = 0; byte < channels; byte += 64)
                __builtin_prefetch(preview->bytes + next * channels + byte);
            logits[i] = multiply_bytes_row(output, i, preview->bytes + i * channels, room->inputs,
                                           step, sum);
        } else {
            logits[i] = multiply_floats_row(output, i, preview->floats + i * channels, y);
        }
    }
}

/* Logits of some rows, from their features. (rows, wide). */
static void compute_logits(const Decoder *decoder, const Step *step, int64_t first, int64_t rows,
                           const float *y, Room *room)
{
    const Preview *preview = decoder->preview;
    int64_t stride = padded(decoder->channels, BLOCK), wide = padded(step->output->outputs, BLOCK);
    if (!preview || step->candidates) {
        multiply(step->output, rows, y, stride, room->logits, wide, 0, room);
        return;
    }
    int64_t narrow = padded(preview->narrow.outputs, BLOCK);
    multiply(&preview->narrow, rows, y, stride, room->both, narrow, 0, room);
    multiply(&preview->wide, rows, room->both, narrow, room->logits, wide, 0, room);
    for (int64_t row = 0; row < rows; row++) {
        float *logits = room->logits + row * wide;
        if (step->log_p && step->forced[(first + row) / step->beam])
            multiply(step->output, 1, y + row * stride, stride, logits, wide, 0, room);
        else
            look_closer(decoder, step->output, y + row * stride, logits, room);
    }
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
    float less = step->scores[row] - log_sum_exp(logits, symbols, largest);
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

void STEP(const Decoder *decoder, const Step *step)
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
