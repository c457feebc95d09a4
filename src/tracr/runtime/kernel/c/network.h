/* What a network is, and how it is read from what `packed.py` wrote. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int larger(int a, int b) { return a > b ? a : b; }

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

/* Reading what `packed.py` wrote: integers and numbers, one after another. */

typedef struct {
    const int32_t *words;
    const float *numbers;
    int64_t weights; /* of maps */
} cursor;

static const int32_t *take_words(cursor *at, int64_t count) {
    const int32_t *found = at->words;
    at->words += count;
    return found;
}

static int take_word(cursor *at) { return *take_words(at, 1); }

static const float *take_numbers(cursor *at, int64_t count) {
    const float *found = at->numbers;
    at->numbers += count;
    return found;
}

static table take_table(cursor *at) {
    table found;
    found.rows = take_word(at);
    found.start = take_words(at, found.rows + 1);
    int entries = found.start[found.rows];
    found.column = take_words(at, entries);
    found.value = take_numbers(at, entries);
    return found;
}

static map take_map(cursor *at) {
    map found = {0};
    found.inputs = take_word(at);
    found.source = take_words(at, found.inputs);
    table entries = take_table(at);
    found.start = entries.start;
    found.input = entries.column;
    found.weight = entries.value;
    found.outputs = take_word(at);
    found.target = take_words(at, found.outputs);
    found.bias = take_numbers(at, found.outputs);
    at->weights += entries.start[entries.rows] + found.outputs;
    return found;
}

static side take_side(cursor *at, int tokens) {
    side found = {0};
    found.width = take_word(at);
    found.known = take_word(at);
    if (found.known) {
        found.class_of = take_words(at, tokens);
        found.classes = take_table(at);
        found.positions = take_table(at);
    } else found.row = take_word(at);
    return found;
}

static void take_head(cursor *at, network *net, head *found) {
    found->query = take_side(at, net->tokens.rows);
    found->key = take_side(at, net->tokens.rows);
    found->value = take_side(at, net->tokens.rows);
    if (take_word(at)) found->shares = take_numbers(at, (int64_t)found->query.classes.rows * found->key.classes.rows);
    found->row = take_words(at, found->value.width);
    net->classes = larger(net->classes, larger(found->query.classes.rows, found->key.classes.rows));
    net->width = larger(net->width, larger(found->query.width, found->value.width));
}

static void take_network(cursor *at, network *net) {
    net->tokens = take_table(at);
    net->positions = take_table(at);
    net->classes = take_word(at);
    if (net->classes) net->kind = take_words(at, net->tokens.rows);
    head *next = net->head;
    for (int l = 0; l < net->layers; l++) {
        layer *found = net->layer + l;
        found->heads = take_word(at);
        found->head = next;
        for (int h = 0; h < found->heads; h++) take_head(at, net, next++);
        found->sides = take_map(at);
        found->output = take_map(at);
        found->in = take_map(at);
        found->out = take_map(at);
    }
    net->unembed = take_map(at);
    net->logits = take_word(at);
    net->logit = take_words(at, net->logits);
    net->weights = at->weights;
}

static void discard(network *net) {
    if (!net) return;
    free(net->layer);
    free(net->head);
    free(net->packed);
    free(net);
}

/* A network from its integers and numbers, so many bytes of them; NULL without memory. */
static network *read_network(const void *words, size_t word_bytes, const void *numbers, size_t number_bytes) {
    network *net = calloc(1, sizeof(network));
    if (!net) return NULL;
    net->packed = malloc(word_bytes + number_bytes + 1);
    if (net->packed) {
        memcpy(net->packed, words, word_bytes);
        memcpy(net->packed + word_bytes, numbers, number_bytes);
        cursor at = {(const int32_t *)net->packed, (const float *)(net->packed + word_bytes), 0};
        net->rows = take_word(&at);
        net->stream = take_word(&at);
        net->layers = take_word(&at);
        net->heads = take_word(&at);
        net->causal = take_word(&at);
        net->layer = calloc(net->layers + 1, sizeof(layer));
        net->head = calloc(net->heads + 1, sizeof(head));
        if (net->layer && net->head) {
            take_network(&at, net);
            return net;
        }
    }
    discard(net);
    return NULL;
}
