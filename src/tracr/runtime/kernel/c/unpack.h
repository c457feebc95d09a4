/* Reads the output of `pack.h`: integers and numbers, one after another.

   Everything is checked: lists are inside the buffer, indices are in range, and both buffers end with the network.
   Therefore `forward.h` checks none of it. No count is larger than the number of integers. */

#ifndef TRACR_UNPACK_H
#define TRACR_UNPACK_H

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

typedef struct {
    const int32_t *words;
    const float *numbers;
    int64_t words_left, numbers_left;
    int64_t weights;   /* the number of weights of maps */
    const char *wrong; /* the reason of a refusal; NULL if there was not enough memory */
    jmp_buf refused;   /* the place to continue after a refusal */
} cursor;

/* Stops reading with a reason unless the condition holds. */
static void require(cursor *at, int holds, const char *otherwise) {
    if (holds) return;
    at->wrong = otherwise;
    longjmp(at->refused, 1);
}

static const int32_t *take_words(cursor *at, int64_t count) {
    require(at, count <= at->words_left, "its integers end too early");
    const int32_t *found = at->words;
    at->words += count;
    at->words_left -= count;
    return found;
}

static const float *take_numbers(cursor *at, int64_t count) {
    require(at, count <= at->numbers_left, "its numbers end too early");
    const float *found = at->numbers;
    at->numbers += count;
    at->numbers_left -= count;
    return found;
}

/* Reads a count. */
static int take_count(cursor *at) {
    int found = *take_words(at, 1);
    require(at, found >= 0, "a count is negative");
    return found;
}

static int take_flag(cursor *at) {
    int found = *take_words(at, 1);
    require(at, found == 0 || found == 1, "a flag is neither 0 nor 1");
    return found;
}

/* Reads `count` indices below `many`. */
static const int32_t *take_indices(cursor *at, int64_t count, int many) {
    const int32_t *found = take_words(at, count);
    for (int64_t i = 0; i < count; i++) require(at, found[i] >= 0 && found[i] < many, "an index is out of range");
    return found;
}

/* Reads sparse rows; the columns of a row are in any order. */
static table take_entries(cursor *at, int columns) {
    table found;
    found.rows = take_count(at);
    found.start = take_words(at, (int64_t)found.rows + 1);
    require(at, found.start[0] == 0, "the first row does not begin with the first entry");
    for (int r = 0; r < found.rows; r++)
        require(at, found.start[r] <= found.start[r + 1], "a row ends before it begins");
    int entries = found.start[found.rows];
    found.column = take_indices(at, entries, columns);
    found.value = take_numbers(at, entries);
    return found;
}

/* The same, but the columns of a row must be ascending: no row has more entries than there are columns. */
static table take_table(cursor *at, int columns) {
    table found = take_entries(at, columns);
    for (int r = 0; r < found.rows; r++)
        for (int e = found.start[r] + 1; e < found.start[r + 1]; e++)
            require(at, found.column[e - 1] < found.column[e], "the columns of a row are not in ascending order");
    return found;
}

/* Reads a map between rows of memory. */
static map take_map(cursor *at, int rows) {
    map found = {0};
    found.inputs = take_count(at);
    found.source = take_indices(at, found.inputs, rows);
    table entries = take_entries(at, rows);
    found.start = entries.start;
    found.input = entries.column;
    found.weight = entries.value;
    found.outputs = take_count(at);
    require(at, entries.rows == (found.inputs ? found.inputs : found.outputs), "a map has entries of something else");
    found.target = take_indices(at, found.outputs, rows);
    found.bias = take_numbers(at, found.outputs);
    at->weights += entries.start[entries.rows] + found.outputs;
    return found;
}

/* Reads a map that adds to rows of memory. */
static map take_adding_map(cursor *at, int rows) {
    map found = take_map(at, rows);
    require(at, !found.inputs, "a map that adds is listed by input");
    return found;
}

static side take_side(cursor *at, const network *net) {
    side found = {0};
    found.width = take_count(at);
    require(at, found.width <= net->width, "a query, key or value is wider than the widest");
    found.known = take_flag(at);
    if (!found.known) {
        found.row = take_count(at);
        require(at, (int64_t)found.row + found.width <= net->rows, "a query, key or value is out of memory's rows");
        return found;
    }
    const int32_t *class_of = take_words(at, net->tokens.rows);
    found.classes = take_table(at, found.width);
    found.positions = take_table(at, found.width);
    require(at, found.positions.rows == net->positions.rows, "a head has other positions than the network");
    for (int i = 0; i < net->tokens.rows; i++)
        require(at, class_of[i] >= 0 && class_of[i] < found.classes.rows, "a class is out of range");
    found.class_of = class_of;
    return found;
}

static void take_head(cursor *at, network *net, head *found) {
    found->query = take_side(at, net);
    found->key = take_side(at, net);
    found->value = take_side(at, net);
    require(at, found->query.width == found->key.width, "queries and keys differ in width");
    int queries = found->query.classes.rows, keys = found->key.classes.rows;
    if (take_flag(at)) {
        require(at, found->query.known && found->key.known, "there are shares of what is not known");
        found->shares = take_numbers(at, (int64_t)queries * keys);
    }
    found->row = take_indices(at, found->value.width, net->rows);
    if (net->classes < queries) net->classes = queries;
    if (net->classes < keys) net->classes = keys;
}

static void take_layer(cursor *at, network *net, layer *found, head *next) {
    found->heads = take_count(at);
    require(at, found->heads <= net->head + net->heads - next, "there are more heads than it says");
    found->head = next;
    for (int h = 0; h < found->heads; h++) take_head(at, net, next + h);
    found->sides = take_map(at, net->rows);
    found->output = take_adding_map(at, net->rows);
    found->in = take_map(at, net->rows);
    found->out = take_adding_map(at, net->rows);
}

static void take_sizes(cursor *at, network *net) {
    int64_t most = at->words_left;
    net->rows = take_count(at);
    net->stream = take_count(at);
    net->layers = take_count(at);
    net->heads = take_count(at);
    net->causal = take_flag(at);
    net->width = take_count(at);
    net->ordinal = take_indices(at, net->width, net->width);
    require(at, net->rows <= most && net->layers <= most && net->heads <= most, "a count is larger than the network");
    require(at, net->stream <= net->rows, "the residual stream is larger than memory");
}

static void take_network(cursor *at, network *net) {
    take_sizes(at, net);
    net->tokens = take_table(at, net->stream);
    net->positions = take_table(at, net->stream);
    net->classes = take_count(at);
    require(at, net->classes <= net->tokens.rows, "there are more kinds of tokens than tokens");
    if (net->classes) net->kind = take_indices(at, net->tokens.rows, net->classes);
    net->layer = calloc((size_t)net->layers + 1, sizeof(layer));
    net->head = calloc((size_t)net->heads + 1, sizeof(head));
    require(at, net->layer && net->head, NULL);
    head *next = net->head;
    for (int l = 0; l < net->layers; l++) {
        take_layer(at, net, net->layer + l, next);
        next += net->layer[l].heads;
    }
    require(at, next == net->head + net->heads, "there are fewer heads than it says");
    net->unembed = take_map(at, net->rows);
    net->logits = take_count(at);
    net->logit = take_indices(at, net->logits, net->rows);
    require(at, !at->words_left, "its integers go on behind its end");
    require(at, !at->numbers_left, "its numbers go on behind its end");
    net->weights = at->weights;
}

/* Reads a network; returns whether it is valid. */
static int unpack(cursor *at, network *net) {
    if (setjmp(at->refused)) return 0;
    take_network(at, net);
    return 1;
}

static void discard(network *net) {
    if (!net) return;
    free(net->layer);
    free(net->head);
    free(net->packed);
    free(net);
}

/* Makes a network from its integers and numbers, with these numbers of bytes. On failure returns NULL, with the reason
   in `wrong`: NULL if there was not enough memory. */
static network *read_network(const void *words, size_t word_bytes, const void *numbers, size_t number_bytes,
                             const char **wrong) {
    *wrong = word_bytes % sizeof(int32_t) || number_bytes % sizeof(float) ? "its buffers do not hold 32 bits each" : NULL;
    network *net = *wrong ? NULL : calloc(1, sizeof(network));
    if (!net) return NULL;
    cursor at = {0};
    net->packed = malloc(word_bytes + number_bytes + 1);
    if (net->packed) {
        memcpy(net->packed, words, word_bytes);
        memcpy(net->packed + word_bytes, numbers, number_bytes);
        at.words = (const int32_t *)net->packed;
        at.words_left = (int64_t)(word_bytes / sizeof(int32_t));
        at.numbers = (const float *)(net->packed + word_bytes);
        at.numbers_left = (int64_t)(number_bytes / sizeof(float));
        if (unpack(&at, net)) return net;
    }
    *wrong = at.wrong;
    discard(net);
    return NULL;
}

#endif
