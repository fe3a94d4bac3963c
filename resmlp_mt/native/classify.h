/* A whole classifier, from pixels to logits, for the processor that it is compiled for. */
#include <sched.h>

#include "classifier.h"
#include "mlp.h"
#include "numbers.h"
#include "products.h"
#include "workspace.h"

/* Threads that share an image, each with rows of its own, or one with all of them. */
typedef struct {
    Workspace shared, *own;
    int64_t member, members, first, last; /* rows first to last - 1 are this member's */
    int64_t meetings, *arrived;
} Team;

/* Wait until all have come here. */
static void meet(Team *team)
{
    if (team->members == 1)
        return;
    int64_t wanted = ++team->meetings * team->members;
    __atomic_add_fetch(team->arrived, 1, __ATOMIC_ACQ_REL);
    for (int64_t tries = 0; __atomic_load_n(team->arrived, __ATOMIC_ACQUIRE) < wanted; tries++) {
        pause_briefly();
        if (tries > 1000)
            sched_yield();
    }
}

/* x = the product of the pixels of each patch, from -128 to 127: 8 bits hold them as they are. */
static void embed_patches(const Classifier *classifier, const uint8_t *image, Team *team)
{
    int64_t side = classifier->side, patch = classifier->patch, across = side / patch;
    int64_t stride = padded(classifier->channels, BLOCK), width = classifier->embed.inputs;
    for (int64_t first = team->first; first < team->last; first += CHUNK) {
        int64_t rows = team->last - first < CHUNK ? team->last - first : CHUNK;
        float *to = team->own->hidden;
        for (int64_t n = first; n < first + rows; n++)
            for (int64_t plane = 0; plane < classifier->planes; plane++)
                for (int64_t line = 0; line < patch; line++) {
                    int64_t row = plane * side + n / across * patch + line;
                    const uint8_t *from = image + row * side + n % across * patch;
                    for (int64_t i = 0; i < patch; i++)
                        *to++ = from[i] - 128.0f;
                }
        multiply(&classifier->embed, rows, team->own->hidden, width,
                 team->shared.x + first * stride, stride, 0, &team->own->room);
    }
}

/* norm(x) * scale of a patch, padded to whole blocks. */
static void normalise_patch(const Classifier *classifier, const Block *block, const float *x,
                            float *to)
{
    normalise(to, x, classifier->channels, block->norm);
    int64_t channels = classifier->channels;
    for (int64_t i = 0; i < channels; i += LANES)
        put(to + i, get(to + i, channels - i, 0) * *(const floats *)(block->scale + i),
            channels - i);
    memset(to + channels, 0, (padded(channels, BLOCK) - channels) * sizeof *to);
}

/* This member's patches, packed as the weights of products in full are. */
static void pack_floats(const Classifier *classifier, const Block *block, float *packed, Team *team)
{
    int64_t stride = padded(classifier->channels, BLOCK);
    float *line = team->own->y;
    for (int64_t n = team->first; n < team->last; n++) {
        normalise_patch(classifier, block, team->shared.x + n * stride, line);
        for (int64_t i = 0; i < stride; i += GROUP)
            memcpy(packed + i * classifier->patches + n * GROUP, line + i, GROUP * sizeof *line);
    }
}

/* The same in 8 bits: 4 patches side by side. Each has a step of its own. */
static void pack_bytes(const Classifier *classifier, const Block *block, uint8_t *packed,
                       float *steps, Team *team)
{
    int64_t stride = padded(classifier->channels, BLOCK);
    int64_t fours = padded(classifier->patches, INPUTS) / 4;
    float *line = team->own->y;
    int8_t *rows = team->own->room.inputs;
    int32_t sum;
    for (int64_t n = team->first; n < team->last; n += 4) {
        int64_t some = team->last - n < 4 ? team->last - n : 4;
        memset(rows + some * stride, 0, (4 - some) * stride);
        for (int64_t i = 0; i < some; i++) {
            normalise_patch(classifier, block, team->shared.x + (n + i) * stride, line);
            float largest = size_of_largest(line, stride);
            steps[n + i] = quantise(rows + i * stride, line, stride, largest, 127, &sum);
        }
        for (int64_t group = 0; group < stride / GROUP; group++)
            for (int64_t lane = 0; lane < GROUP; lane++) {
                const uint8_t *from = (const uint8_t *)rows + group * GROUP + lane;
                uint32_t four = from[0] | (uint32_t)from[stride] << 8 |
                                (uint32_t)from[2 * stride] << 16 | (uint32_t)from[3 * stride] << 24;
                four ^= 0x80808080; /* -128 to 127 become 0 to 255 */
                memcpy(packed + ((group * fours + n / 4) * GROUP + lane) * 4, &four, sizeof four);
            }
    }
}

/* x += (A norm(x)) * scale + offset. The normalised patches are packed as the weights of products
 * are, by turns in two places: nobody is two meetings ahead. In 8 bits their steps are multiplied
 * into the rows of A, which then have steps too. */
static void mix_patches(const Classifier *classifier, int64_t number, Team *team)
{
    const Block *block = classifier->block + number;
    int64_t patches = classifier->patches, stride = padded(classifier->channels, BLOCK);
    float *x = team->shared.x, *packed = team->shared.packed[number % 2];
    float *steps = team->shared.steps[number % 2], *scaled = team->own->hidden;
    Product all = {.outputs = classifier->channels, .inputs = patches, .bias = classifier->zeros};
    if (block->mlp.first.bytes) {
        all.bytes = (uint8_t *)packed, all.scale = classifier->ones;
        pack_bytes(classifier, block, (uint8_t *)packed, steps, team);
    } else {
        all.floats = packed;
        pack_floats(classifier, block, packed, team);
    }
    meet(team);
    for (int64_t first = team->first; first < team->last; first += CHUNK) {
        int64_t rows = team->last - first < CHUNK ? team->last - first : CHUNK;
        const float *matrix = block->matrix + first * patches;
        if (all.bytes) {
            for (int64_t row = 0; row < rows; row++)
                for (int64_t n = 0; n < patches; n += LANES)
                    put(scaled + row * patches + n,
                        get(matrix + row * patches + n, patches - n, 0) *
                            get(steps + n, patches - n, 0),
                        patches - n);
            matrix = scaled;
        }
        multiply(&all, rows, matrix, patches, team->own->y, stride, 0, &team->own->room);
        const float *offset = block->offset + first * stride;
        for (int64_t i = 0; i < rows * stride; i += LANES)
            *(floats *)(x + first * stride + i) +=
                *(floats *)(team->own->y + i) + *(const floats *)(offset + i);
    }
}

/* y = the sum over the patches of weights[n] norm(x_n), or their mean. */
static void gather(const Classifier *classifier, const float *weights, float norm, const float *x,
                   float *y, float *line)
{
    int64_t channels = classifier->channels, stride = padded(channels, BLOCK);
    memset(y, 0, stride * sizeof *y);
    for (int64_t n = 0; n < classifier->patches; n++) {
        float weight = weights ? weights[n] : 1.0f / classifier->patches;
        normalise(line, x + n * stride, channels, norm);
        for (int64_t i = 0; i < channels; i += LANES)
            put(y + i, get(y + i, channels - i, 0) + weight * get(line + i, channels - i, 0),
                channels - i);
    }
}

/* The logits, from the patches of the last block. */
static void decide(const Classifier *classifier, Workspace *own, const float *x, float *logits)
{
    int64_t channels = classifier->channels, stride = padded(channels, BLOCK);
    float *class = own->class, *line = own->y, *y = own->y + stride;
    if (classifier->embedding) {
        memcpy(class, classifier->embedding, stride * sizeof *class);
        for (int64_t number = 0; number < classifier->layers; number++) {
            const Block *layer = classifier->layer + number;
            gather(classifier, layer->matrix, layer->norm, x, y, line);
            for (int64_t i = 0; i < channels; i++)
                class[i] += y[i] * layer->scale[i] + layer->offset[i];
            apply_mlp(&layer->mlp, 1, class, own->y, own->hidden, &own->room);
        }
        normalise(line, class, channels, classifier->norm);
    } else {
        gather(classifier, NULL, classifier->norm, x, y, line);
        memcpy(line, y, stride * sizeof *line);
    }
    multiply(&classifier->head, 1, line, stride, logits, padded(classifier->classes, BLOCK), 0,
             &own->room);
}

/* x += mlp(x) of this member's patches. */
static void mix_channels(const Classifier *classifier, int64_t number, Team *team)
{
    const Mlp *mlp = &classifier->block[number].mlp;
    int64_t rows = team->last - team->first;
    float *x = team->shared.x + team->first * padded(classifier->channels, BLOCK);
    apply_mlp(mlp, rows, x, team->own->y, team->own->hidden, &team->own->room);
}

static void classify_one(const Classifier *classifier, const Batch *batch, int64_t number,
                         Team *team)
{
    const Classifier *c = classifier;
    embed_patches(c, batch->pixels + number * c->planes * c->side * c->side, team);
    for (int64_t block = 0; block < c->blocks; block++) {
        mix_patches(c, block, team);
        mix_channels(c, block, team);
    }
    meet(team);
    if (team->member == 0)
        decide(c, team->own, team->shared.x, batch->logits + number * padded(c->classes, BLOCK));
    meet(team);
}

/* Whole images go to whoever is free. What is left after the last round is shared by all. */
void CLASSIFY(const Classifier *classifier, Batch *batch, int64_t thread)
{
    int64_t size = lay_out_workspace(classifier, NULL, NULL), patches = classifier->patches;
    int64_t whole = batch->images - batch->images % batch->threads, number;
    Workspace own;
    Team alone = {.own = &own, .members = 1, .last = patches};
    lay_out_workspace(classifier, (char *)batch->room + (thread + 1) * size, &own);
    alone.shared = own;
    while ((number = __atomic_fetch_add(&batch->taken, 1, __ATOMIC_RELAXED)) < whole)
        classify_one(classifier, batch, number, &alone);
    /* In fours, which are packed together. */
    int64_t fours = padded(patches, 4) / 4, end = fours * (thread + 1) / batch->threads * 4;
    Team all = {.own = &own, .member = thread, .members = batch->threads,
                .first = fours * thread / batch->threads * 4,
                .last = end < patches ? end : patches, .arrived = &batch->arrived};
    lay_out_workspace(classifier, batch->room, &all.shared);
    for (number = whole; number < batch->images; number++)
        classify_one(classifier, batch, number, &all);
}
