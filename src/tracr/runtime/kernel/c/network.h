/* The parts of a network. `unpack.h` reads one, and checks that every index is in range. */

#ifndef TRACR_NETWORK_H
#define TRACR_NETWORK_H

#include <stdint.h>

/* An affine map: for every output its inputs and their weights, and a bias (NULL: none). */
typedef struct {
    int outputs;
    const int32_t *target; /* the row of each output; NULL: output i goes to row i */
    const int32_t *start;  /* the first entry of each output, and at last the end of the entries */
    const int32_t *input;
    const float *weight;
    const float *bias;
    int inputs; /* if not 0, the entries are listed by input, and `input` has the rows of the outputs */
    const int32_t *source; /* in this case, the row of each input */
} map;

/* Sparse rows: for every row its nonzero columns and their values. */
typedef struct {
    int rows;
    const int32_t *start, *column;
    const float *value;
} table;

/* The queries, keys or values of a head: computed, or known from the classes of tokens and from positions. */
typedef struct {
    int width, known;
    int row; /* the first row, if it is computed */
    const int32_t *class_of;
    table classes, positions;
} side;

typedef struct {
    const float *shares;    /* [class of key][class of query] if they depend only on tokens, and are few; or NULL */
    side query, key, value; /* if keys and values both depend only on tokens, they have the same classes */
    const int32_t *row;     /* the row of each number of its result */
} head;

typedef struct {
    int heads;
    head *head;
    map sides, output; /* the computed queries, keys and values; the writes of the heads */
    map in, out;
} layer;

typedef struct {
    int rows, stream; /* rows of memory in all; rows of the residual stream */
    int layers, heads, causal;
    int classes, width; /* the largest number of classes; the largest width of a query, key or value */
    const int32_t *ordinal; /* 0, 1, 2, ..., width - 1 */
    const int32_t *kind; /* the kind of each token, if tokens of a kind are the same at every position; or NULL */
    table tokens, positions;
    layer *layer;
    head *head; /* of all layers */
    map unembed;
    int logits;
    const int32_t *logit; /* the row of each logit */
    int64_t weights;      /* the number of weights of all maps */
    char *packed;         /* the memory of all these lists */
} network;

#endif
