/* What a network is. `unpack.h` reads one, and checks that every index is inside of what it is an index of. */

#ifndef TRACR_NETWORK_H
#define TRACR_NETWORK_H

#include <stdint.h>

/* An affine map: for every output, the inputs that it reads and their weights, and a bias (NULL: none). */
typedef struct {
    int outputs;
    const int32_t *target; /* the row that each output goes to; NULL: the first to the first, and so on */
    const int32_t *start;  /* where the entries of an output begin, and behind the last one, where they end */
    const int32_t *input;
    const float *weight;
    const float *bias;
    int inputs; /* 0, or the entries are listed by input, and `input` are the rows they go to */
    const int32_t *source; /* the row of each input then */
} map;

/* Rows of which most entries are zero: for every row the columns that are not, and what they hold. */
typedef struct {
    int rows;
    const int32_t *start, *column;
    const float *value;
} table;

/* The queries, keys or values of a head: computed, or known from the classes of tokens and from positions. */
typedef struct {
    int width, known;
    int row; /* the first, if it is computed */
    const int32_t *class_of;
    table classes, positions;
} side;

typedef struct {
    const float *shares;    /* [class of key][class of query] if they depend on tokens alone, and are few; or NULL */
    side query, key, value; /* if keys and values both depend on tokens alone they have the same classes */
    const int32_t *row;     /* of each number that it reads */
} head;

typedef struct {
    int heads;
    head *head;
    map sides, output; /* all that heads compute; what they write */
    map in, out;
} layer;

typedef struct {
    int rows, stream; /* of memory in all; of the residual stream */
    int layers, heads, causal;
    int classes, width; /* the most there are: of classes; of numbers in a query, key or value */
    const int32_t *ordinal; /* 0, 1, 2 and so on: as many as the width */
    const int32_t *kind; /* of each token, if tokens of a kind are the same wherever they stand; or NULL */
    table tokens, positions;
    layer *layer;
    head *head; /* of all layers */
    map unembed;
    int logits;
    const int32_t *logit; /* the row of each */
    int64_t weights;      /* of all maps */
    char *packed;         /* where all that points to */
} network;

#endif
