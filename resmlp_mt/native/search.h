/* A search step by step, as long as Python has nothing to do between two of them.
 *
 * The file that includes it has included step.h before, and says SEARCH, the name.
 */
#include "decoder.h"

/* A row of A: the factors of earlier positions and of this one, for every channel. */
static const float *find_row(const Decoder *decoder, const Search *search, int64_t position)
{
    int64_t heads = search->heads, channels = decoder->channels / heads, n = search->positions;
    int64_t width = decoder->layers * decoder->channels;
    if (search->last)
        return search->last + (n - 1 - position) * width;
    for (int64_t part = 0; part < decoder->layers * heads; part++) {
        const float *from = search->matrix + (part * n + position) * n;
        const float *scale = search->scale + part * channels;
        for (int64_t t = 0; t <= position; t++)
            for (int64_t i = 0; i < channels; i++)
                search->row[t * width + part * channels + i] = from[t] * scale[i];
    }
    return search->row;
}

/* Make a step ready for its position. The last tokens get places in the history. */
static void prepare(const Decoder *decoder, Step *step, Search *search)
{
    int64_t position = step->past, width = decoder->layers * decoder->channels;
    int64_t rows = step->sentences * step->beam, size = step->half_history ? 2 : 4;
    for (int64_t row = 0; row < rows; row++) {
        search->places[position * rows + row] = search->used + row;
        search->told[search->used + row] = search->tokens[row];
        search->reached[search->used + row] = search->scores[row];
    }
    step->values = (char *)step->history + search->used * width * size;
    search->used += rows;
    step->ancestors = search->places;
    step->row = find_row(decoder, search, position);
    step->offset = search->offsets ? search->offsets + position * width : NULL;
    step->position =
        search->embeddings ? search->embeddings + position * decoder->channels : NULL;
}

/* Keep a translation of a sentence: it ends after one of its beams. */
static void keep(const Step *step, Search *search, int64_t sentence, int64_t parent, float score)
{
    int64_t number = step->at_work[sentence], rows = step->sentences * step->beam;
    if (search->found[number] == search->beam || !isfinite(score))
        return;
    int64_t translation = number * search->beam + search->found[number]++;
    int64_t *tokens = search->found_tokens + translation * search->longest;
    float *reached = search->found_reached + translation * search->longest;
    const int64_t *places = search->places + rows + sentence * step->beam + parent;
    for (int64_t t = 0; t < step->past; t++) {
        tokens[t] = search->told[places[t * rows]];
        reached[t] = search->reached[places[t * rows]];
    }
    reached[step->past] = score;
    search->lengths[translation] = step->past + 1;
    search->unfinished[sentence] = search->found[number] < search->beam;
}

/* Go on with the best beams of a sentence that do not end here, in their order. Where there are too
 * few, those that end fill up. Their scores then say that they count for nothing. */
static void go_on(const Decoder *decoder, const Step *step, Search *search, int64_t sentence)
{
    int64_t n = 0, first = sentence * step->best, to = sentence * search->beam;
    for (int ends = 0; ends < 2; ends++)
        for (int64_t i = first; i < first + step->best && n < search->beam; i++)
            if ((step->best_tokens[i] == decoder->end) == ends) {
                search->tokens[to + n] = step->best_tokens[i];
                search->scores[to + n] = ends ? -INFINITY : step->best_scores[i];
                search->parents[n++] = step->best_places[i] / step->width;
            }
    for (int64_t t = 0; t <= step->past; t++) {
        const int64_t *from = search->places + (t * step->sentences + sentence) * step->beam;
        for (int64_t i = 0; i < search->beam; i++)
            search->moved[i] = from[search->parents[i]];
        memcpy(search->places + (t * step->sentences + sentence) * search->beam, search->moved,
               search->beam * sizeof *from);
    }
}

/* Keep the translations that ended, and go on with the best of the others. Returns how many
 * sentences are unfinished. */
static int64_t advance(const Decoder *decoder, Step *step, Search *search)
{
    int64_t unfinished = 0;
    /* From the last one on: where each had one beam, as before the first step alone, more take its
     * place and those behind it. */
    for (int64_t sentence = step->sentences - 1; sentence >= 0; sentence--) {
        int64_t first = sentence * step->best;
        for (int64_t i = first; i < first + search->beam && step->past; i++)
            if (step->best_tokens[i] == decoder->end) /* a translation has a token */
                keep(step, search, sentence, step->best_places[i] / step->width,
                     step->best_scores[i]);
        go_on(decoder, step, search, sentence);
        unfinished += search->unfinished[sentence];
    }
    step->beam = search->beam;
    step->past++;
    return unfinished;
}

void SEARCH(const Decoder *decoder, Step *step, Search *search)
{
    int64_t unfinished;
    do {
        if (search->part != 2) {
            prepare(decoder, step, search);
            take_step(decoder, step);
        }
        if (search->part == 1)
            return;
        unfinished = advance(decoder, step, search);
    } while (!search->part && step->past < search->until && unfinished > search->enough &&
             search->used + step->sentences * step->beam <= search->capacity);
}
