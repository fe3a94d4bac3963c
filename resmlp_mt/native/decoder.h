/* A decoder, as Python hands it over: resmlp_mt/engines/kernels/structures.py reads the
 * structures from here. */
#ifndef DECODER_H
#define DECODER_H

#include <stdint.h>

#define GROUP 16 /* outputs whose weights lie side by side */
#define BLOCK (4 * GROUP)
#define INPUTS 8 /* in 8 bits, that lie side by side in fours */
#define ROWS 6 /* that are multiplied at once */

static inline int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* y = weight x + bias, packed as products.h says: `bytes` or `floats` is not NULL. */
typedef struct {
    int64_t outputs, inputs;
    const uint8_t *bytes;
    const float *floats, *scale, *bias; /* padded to whole blocks */
} Product;

/* second(gelu(first(norm(x)))). The norm as in Layer. */
typedef struct {
    float norm;
    Product first, second;
} Mlp;

/* A decoder layer. The norms are their epsilons; one below 0 stands for an Aff, which is folded. */
typedef struct {
    float norm_1, norm_c;
    int32_t gated; /* `mix` makes the gate and then the value; else the mixer takes x itself */
    Product mix;
    Product project; /* of what a sigmoid of the gate let through; without outputs: neither */
    Product query, out;
    Mlp mlp;
} Layer;

/* A look at all logits through few numbers. Those of the best are then computed as the output layer
 * has them. */
typedef struct {
    Product narrow, wide; /* of the features to these numbers, and of them to logits nearby */
    const int8_t *bytes;  /* (V, C), the rows of the output layer as they are, */
    const float *floats;  /* or in full; the other one is NULL */
} Preview;

typedef struct {
    int64_t layers, channels, heads;
    const Layer *layer;
    Product embedding; /* rows of the vocabulary; often the output layer's */
    float embedding_scale, norm; /* the last norm, with alpha and beta */
    const float *alpha, *beta;
    const int64_t *banned; /* symbols that no translation has */
    int64_t bans, end;
    const Preview *preview; /* of all symbols, or NULL */
} Decoder;

/* One step: B of all sentences with M beams, S source positions, t positions before this one, K
 * symbols. A search sets what changes between its steps: beam, past, ancestors, row, offset, position
 * and values. */
typedef struct {
    int64_t sentences, beam, source, past;
    const int64_t *tokens;       /* (B, M), the last ones */
    const float *scores;         /* (B, M), of the beams so far */
    int64_t half_history;        /* whether history and values are in 16 bits */
    const void *history;         /* (n, D C), the `values` of earlier steps */
    const int64_t *ancestors;    /* (t, B, M), the rows of it that each beam comes from */
    const float *row;            /* (t + 1, D C), the factors of them and of this position */
    const float *offset;         /* (D C), or NULL */
    const float *position;       /* (C), or NULL */
    int64_t all;                 /* sentences, of which some may have been dropped */
    const int64_t *at_work;      /* (B), which of them the others are */
    const int64_t *lengths;      /* (all), how many of the S are not padding */
    int64_t half_memory;         /* whether keys and memory are in 16 bits */
    const void *keys;            /* (D, all, E, C / E, S), S padded to groups */
    const void *memory;          /* (D, all, E, S, C / E), attended to, C / E padded to groups */
    const Product *output;       /* features to logits */
    const int64_t *candidates;   /* (K), the symbols they are of, the end first; NULL: all */
    const float *barred;         /* (B, K), added to the logits of candidates */
    int64_t best, width;         /* continuations of a sentence to return; see best_places */
    float *best_scores;          /* (B, best), sorted */
    int64_t *best_tokens;        /* (B, best) */
    int64_t *best_places;        /* (B, best), the beam it goes on from, times width */
    float *ends;                 /* (B, M), the score of ending here */
    void *values;                /* (B, M, D C) */
    float *query;                /* (B, M, C), of the last layer, or NULL */
    float *log_p;                /* (B, M, K), or NULL */
    const uint8_t *forced;       /* (B), which sentences have exact ones, if there is a preview */
    void *room;                  /* as many bytes as `count_room` says */
} Step;

/* Beams of a search between its steps, of B sentences at work. */
typedef struct {
    int64_t beam;             /* M, of which a first step has one where they are alike */
    int64_t part;             /* 0: whole steps; 1: one up to its choice; 2: what comes behind */
    int64_t until;            /* return before this position, */
    int64_t enough;           /* when no more sentences than this are unfinished, */
    int64_t used, capacity;   /* or when a step more does not fit into the history: its places */
    int64_t *places;          /* (t, B, M), those that each beam came through */
    int64_t *told;            /* by place: the token that it was told, */
    float *reached;           /* and the score of the beam up to that */
    int64_t *tokens;          /* (B, M), the input of a step */
    float *scores;            /* (B, M) */
    int64_t *parents, *moved; /* (M) both, to compute with */
    uint8_t *unfinished;      /* (B), which sentences want more translations */
    int64_t longest;          /* tokens of a translation, with the end */
    int64_t *found;           /* (all), how many translations each sentence has */
    int64_t *lengths;         /* (all, M), tokens of each, with the end */
    int64_t *found_tokens;    /* (all, M, longest), without the end */
    float *found_reached;     /* (all, M, longest), scores up to each token and the end */
    int64_t positions, heads; /* N and H of the matrices */
    const float *last;        /* (N, D C), of Toeplitz matrices: their rows are its ends; or NULL */
    const float *matrix;      /* (D, H, N, N), of others */
    const float *scale;       /* (D C), the factors of these */
    float *row;               /* (longest, D C), to compute with */
    const float *offsets;     /* (N, D C), or NULL */
    const float *embeddings;  /* of positions, (N, C), or NULL */
} Search;

/* Room for the intermediate values of a step. */
typedef struct {
    float *x, *y, *both, *hidden, *past, *logits, *maxima, *weights, *found, *scales;
    float *largest, *total, *best_logits; /* see step.h */
    int64_t *best_symbols, *best_places;
    int32_t *sums, *likely;
    int8_t *inputs;
} Room;

int64_t count_room(const Decoder *decoder, const Step *step);

#endif
