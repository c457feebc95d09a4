/* The forward pass of `forward.py` in C, for calls that need no activations.

   Activations are stored transposed: a row of memory per number and a lane per position. Most compiled weights are
   zero. Therefore a map is a list of its nonzero weights; each is read once and multiplies vectors of positions. A few
   inputs of a batch run together, enough for rows of some length. Rows are padded to whole vectors with unused lanes.
   All arithmetic is float32, in the same order on every processor.

   A head is two maps with a softmax between: from queries to scores, with the keys as weights, and from shares to the
   head's results, with the values as weights. (A share is a key's part of the attention.) Queries, keys and values that
   depend only on token and position are not computed but looked up. Tokens that are the same for the head are computed
   once. The shares of the previous input are reused if the queries and keys are the same. If the position of a token
   makes no difference, an input is represented by its different tokens and their numbers of occurrences. */

#ifndef TRACR_FORWARD_H
#define TRACR_FORWARD_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "vectors.h"

/* Blocks of memory that begin where a vector may begin. */
#ifdef _WIN32
#include <malloc.h>
#define get_block(bytes) _aligned_malloc(bytes, sizeof(vector))
#define free_block(block) _aligned_free(block)
#else
#define get_block(bytes) aligned_alloc(sizeof(vector), bytes)
#define free_block(block) free(block)
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID ASAN_POISON_MEMORY_REGION
#define GAP sizeof(vector)
#else
#define FORBID(place, bytes) ((void)(place), (void)(bytes))
#define GAP 0
#endif

#define ROW 64       /* lanes to run together */
#define KEPT 4096    /* the most vectors of shares to keep for the next input */
#define LITTLE 16    /* with at most this many numbers, zeros are not left out of a list */
#define WORTH 500000 /* the fewest products for one more thread */
#define MOST_THREADS 64

static int larger(int a, int b) { return a > b ? a : b; }

/* The part to keep of the logits from `first` to `last`: all of them, or the index of the largest. */
typedef struct {
    int first, last, largest;
} reading;

/* The items of an input: one for each position, or one for each kind of tokens in it. */
typedef struct {
    int count;
    int64_t *ids;  /* the token of each item */
    float *times;  /* its number of occurrences */
    int32_t *item; /* [position] the item there */
} items;

/* The items with the same queries and keys for a head, and its attention. */
typedef struct {
    int made, keeps;   /* whether it was computed, and is kept for inputs with the same classes */
    int count;         /* number of items */
    int32_t *asked;    /* their classes as queries, their classes as keys, and their numbers of occurrences */
    int grouped;       /* whether queries of one class are computed once */
    int queries, keys; /* numbers of different queries and keys */
    int32_t *query;    /* [item] its query */
    int32_t *first;    /* [key] the first item with this key */
    float *times;      /* [key] its number of occurrences */
    vector *shares, *total;
} pattern;

/* Memory of a pass. */
typedef struct memory {
    int length, at_once, columns; /* its numbers of positions, of inputs, and of kept numbers per position */
    items *inputs;
    int size; /* vectors for the items of one input */
    rows all; /* the residual stream, and the numbers computed from it */
    vector *queries, *results;
    pattern *patterns; /* of all heads */
    int32_t *asked;    /* as in a pattern, followed by the classes of items as values */
    int32_t *slot, *scratch;
    int32_t *start, *input; /* of a map under construction */
    float *weight;
    float *kept; /* [item][column] */
    size_t bytes;
} memory;

/* Whether a side depends on the token only, not on the position. */
static int by_token(const side *s) { return s->known && !s->positions.start[s->positions.rows]; }

/* Numbers the different classes in order of first occurrence: the number of each item's class, and the first item of
   each class; returns how many classes there are. */
static int group(const int32_t *class, int count, int32_t *slot, int32_t *which, int32_t *first) {
    int found = 0;
    for (int i = 0; i < count; i++) slot[class[i]] = -1;
    for (int i = 0; i < count; i++) {
        int own = slot[class[i]], fresh = own < 0;
        first[found] = fresh ? i : first[found];
        which[i] = slot[class[i]] = fresh ? found : own;
        found += fresh;
    }
    return found;
}

/* Finds the items of an input. */
static void take_apart(const network *net, const int64_t *ids, const memory *m, items *found) {
    found->count = m->length;
    if (net->kind) {
        int32_t *kind = m->asked, *first = m->scratch;
        for (int p = 0; p < m->length; p++) kind[p] = net->kind[ids[p]];
        found->count = group(kind, m->length, m->slot, found->item, first);
        for (int i = 0; i < found->count; i++) {
            found->ids[i] = ids[first[i]];
            found->times[i] = 0.0f;
        }
        for (int p = 0; p < m->length; p++) found->times[found->item[p]] += 1.0f;
    } else
        for (int p = 0; p < m->length; p++) {
            found->ids[p] = ids[p];
            found->times[p] = 1.0f;
            found->item[p] = p;
        }
}

static void group_queries(const head *h, const memory *m, int causal, pattern *p) {
    p->grouped = by_token(&h->query) && !causal;
    if (p->grouped) p->queries = group(p->asked, p->count, m->slot, p->query, m->scratch);
    if (!p->grouped || vectors(p->queries) == vectors(p->count)) {
        p->grouped = 0;
        p->queries = p->count;
        for (int i = 0; i < p->count; i++) p->query[i] = i;
    }
}

static void group_keys(const head *h, const items *input, const memory *m, int causal, pattern *p) {
    int32_t *key = m->scratch;
    p->keys = p->count;
    if (by_token(&h->key) && by_token(&h->value) && !causal)
        p->keys = group(p->asked + p->count, p->count, m->slot, key, p->first);
    else
        for (int i = 0; i < p->count; i++) key[i] = p->first[i] = i;
    for (int t = 0; t < p->keys; t++) p->times[t] = 0.0f;
    for (int i = 0; i < p->count; i++) p->times[key[i]] += input->times[i];
}

/* Looks up known queries, a lane for each different one. */
static rows look_up_queries(const side *s, const pattern *p, const memory *m) {
    rows found = {m->queries, vectors(p->queries)};
    size_t step = found.stride * LANES;
    memset(found.first, 0, sizeof(float) * s->width * step);
    for (int i = 0; i < p->count; i++) {
        float *lane = (float *)found.first + p->query[i];
        int class = p->asked[i];
        for (int e = s->classes.start[class]; e < s->classes.start[class + 1]; e++)
            lane[s->classes.column[e] * step] = s->classes.value[e];
        for (int e = s->positions.start[i]; e < s->positions.start[i + 1]; e++)
            lane[s->positions.column[e] * step] += s->positions.value[e];
    }
    return found;
}

/* Appends the known numbers of an item to the entries of a map; returns the new number of entries. The token's and the
   position's parts of a number are added before any product: they may cancel. */
static int add_known(const side *s, int class, int position, int entries, const memory *m) {
    int first = entries;
    for (int e = s->classes.start[class]; e < s->classes.start[class + 1]; e++, entries++) {
        m->input[entries] = s->classes.column[e];
        m->weight[entries] = s->classes.value[e];
    }
    for (int e = s->positions.start[position]; e < s->positions.start[position + 1]; e++) {
        int own = first;
        while (own < entries && m->input[own] != s->positions.column[e]) own++;
        if (own == entries) {
            m->input[entries] = s->positions.column[e];
            m->weight[entries++] = 0.0f;
        }
        m->weight[own] += s->positions.value[e];
    }
    return entries;
}

/* Lists of the computed numbers of items: all of them, if they are few. */
static void list_all(rows computed, int width, int count, const memory *m) {
    for (int t = 0; t <= count; t++) m->start[t] = t * width;
    for (int d = 0; d < width; d++) {
        const float *lane = (const float *)(computed.first + d * computed.stride);
        for (int t = 0; t < count; t++) {
            m->input[t * width + d] = d;
            m->weight[t * width + d] = lane[t];
        }
    }
}

/* Lists of the computed nonzero numbers of items: first counts them, then puts each in its place. */
FASTEST
static void list_computed(rows computed, int width, int count, const memory *m) {
    int32_t *next = m->start + 1; /* the place of an item's next entry; at the end, the start of the next item */
    memset(m->start, 0, sizeof(int32_t) * (count + 2));
    for (int put = 0; put < 2; put++) {
        for (int d = 0; d < width; d++)
            for (int v = 0; v < vectors(count); v++) {
                vector x = computed.first[d * computed.stride + v];
                if (empty((words)x)) continue;
                for (int t = v * LANES; t < count && t < (v + 1) * LANES; t++) {
                    float value = x[t - v * LANES];
                    if (value == 0.0f) continue;
                    if (put) {
                        m->input[next[t]] = d;
                        m->weight[next[t]++] = value;
                    } else next[t + 1]++;
                }
            }
        for (int t = 0; t < count && !put; t++) next[t + 1] += next[t];
    }
}

/* The keys, or values, as lists of nonzero numbers: with keys as weights, this is the map from queries to scores. */
static map by_key(const side *s, const int32_t *class, const pattern *p, rows computed, const memory *m) {
    if (s->known) {
        int entries = 0;
        for (int t = 0; t < p->keys; t++) {
            m->start[t] = entries;
            entries = add_known(s, class[p->first[t]], p->first[t], entries, m);
        }
        m->start[p->keys] = entries;
    } else if (s->width <= LITTLE) list_all(computed, s->width, p->keys, m);
    else list_computed(computed, s->width, p->keys, m);
    return (map){p->keys, NULL, m->start, m->input, m->weight, NULL, 0, NULL};
}

/* The rows from `first` on of one of the inputs. */
static rows rows_of(const memory *m, int first, int input) {
    return (rows){m->all.first + first * m->all.stride + (size_t)input * m->size, m->all.stride};
}

/* Takes shares from a table; returns whether they may be used. They are relative to the key with the largest possible
   score. For a query for which no such key is in the input, shares that became 0 could matter, and a value with all the
   weight would not be copied exactly: share * value / share can be another number. */
FASTEST
static int look_up_shares(const head *h, const pattern *p, const memory *m) {
    int size = vectors(p->queries), lanes = size * LANES, classes = h->query.classes.rows;
    int32_t *class = m->scratch;
    for (int i = 0; i < p->count; i++) class[p->query[i]] = p->asked[i];
    for (int i = p->queries; i < lanes; i++) class[i] = class[0];
    vector *most = p->total;
    for (int v = 0; v < size; v++) most[v] = all(0.0f);
    for (int t = 0; t < p->keys; t++) {
        const float *from = h->shares + (size_t)p->asked[p->count + p->first[t]] * classes;
        vector *to = p->shares + t * size;
        for (int i = 0; i < lanes; i++) ((float *)to)[i] = from[class[i]];
        for (int v = 0; v < size; v++) most[v] = choose(to[v] > most[v], to[v], most[v]);
    }
    words bad = {0};
    for (int v = 0; v < size; v++) bad |= most[v] != 1.0f;
    if (!empty(bad)) return 0;
    for (int v = 0; v < size; v++) p->total[v] = all(0.0f);
    for (int t = 0; t < p->keys; t++)
        for (int v = 0; v < size; v++) p->total[v] += p->shares[t * size + v] *= p->times[t];
    return 1;
}

/* Computes the attention of a head. */
static void attend(const head *h, pattern *p, int input, int causal, const memory *m) {
    group_queries(h, m, causal, p);
    group_keys(h, m->inputs + input, m, causal, p);
    p->made = p->keeps;
    if (h->shares && !causal && look_up_shares(h, p, m)) return;
    int size = vectors(p->queries);
    rows queries = h->query.known ? look_up_queries(&h->query, p, m) : rows_of(m, h->query.row, input);
    map keys = by_key(&h->key, p->asked + p->count, p, rows_of(m, h->key.row, input), m);
    put(&keys, queries, (rows){p->shares, size}, size);
    if (causal)
        for (int t = 1; t < p->keys; t++)
            for (int i = 0; i < t; i++) ((float *)(p->shares + t * size))[i] = -INFINITY;
    softmax(p->shares, p->times, p->keys, size, p->total);
}

/* Runs one head on one input; writes the results to its rows. */
static void run_head(const network *net, const head *h, pattern *p, int number, const memory *m) {
    const items *input = m->inputs + number;
    size_t count = input->count, compared = sizeof(int32_t) * 3 * count;
    int32_t *query = m->asked, *key = query + count, *times = key + count, *value = times + count;
    for (size_t i = 0; i < count; i++) {
        query[i] = h->query.known ? h->query.class_of[input->ids[i]] : 0;
        key[i] = h->key.known ? h->key.class_of[input->ids[i]] : 0;
        value[i] = h->value.known ? h->value.class_of[input->ids[i]] : 0;
    }
    memcpy(times, input->times, sizeof(float) * count);
    if (!p->made || p->count != (int)count || memcmp(p->asked, m->asked, compared)) {
        p->count = (int)count;
        memcpy(p->asked, m->asked, compared);
        attend(h, p, number, net->causal, m);
    }
    int size = vectors(p->queries);
    map values = by_key(&h->value, value, p, rows_of(m, h->value.row, number), m);
    rows found = rows_of(m, 0, number), results = p->grouped ? (rows){m->results, size} : found;
    const int32_t *row = p->grouped ? net->ordinal : h->row;
    read_values(&values, h->value.width, p->shares, size, p->total, results, row);
    if (!p->grouped) return;
    for (int d = 0; d < h->value.width; d++) {
        const float *from = (const float *)(results.first + d * results.stride);
        float *to = (float *)(found.first + h->row[d] * found.stride);
        for (int i = 0; i < p->count; i++) to[i] = from[p->query[i]];
        for (int i = p->count; i < m->size * LANES; i++) to[i] = 0.0f;
    }
}

/* The residual stream of some inputs after the embedding. */
static void embed(const network *net, int inputs, const memory *m) {
    size_t step = m->all.stride * LANES;
    memset(m->all.first, 0, sizeof(float) * net->stream * step);
    for (int n = 0; n < inputs; n++)
        for (int i = 0; i < m->inputs[n].count; i++) {
            int64_t id = m->inputs[n].ids[i];
            float *lane = (float *)(m->all.first + n * m->size) + i;
            for (int e = net->tokens.start[id]; e < net->tokens.start[id + 1]; e++)
                lane[net->tokens.column[e] * step] = net->tokens.value[e];
            for (int e = net->positions.start[i]; e < net->positions.start[i + 1]; e++)
                lane[net->positions.column[e] * step] += net->positions.value[e];
        }
}

static void run_layers(const network *net, int inputs, const memory *m) {
    int size = (int)m->all.stride;
    pattern *patterns = m->patterns;
    for (const layer *at = net->layer; at < net->layer + net->layers; at++) {
        put(&at->sides, m->all, m->all, size);
        for (const head *h = at->head; h < at->head + at->heads; h++, patterns++)
            for (int n = 0; n < inputs; n++) run_head(net, h, patterns, n, m);
        add(&at->output, m->all, m->all, size);
        put_positive(&at->in, m->all, m->all, size);
        add(&at->out, m->all, m->all, size);
    }
    put(&net->unembed, m->all, m->all, size);
}

/* Writes the kept logits of an input, a row of numbers per position; returns whether some logit is NaN. */
FASTEST
static int read_out(const network *net, const reading *readings, int count, int number, const memory *m, float *out) {
    const items *input = m->inputs + number;
    int columns = m->columns;
    words bad = {0};
    for (int v = 0; v < vectors(input->count); v++) {
        const vector *logits = m->all.first + number * m->size + v;
        float *to = m->kept + v * LANES * columns;
        for (int r = 0; r < count; r++) {
            vector most = all(-INFINITY), place = all(0.0f);
            for (int c = readings[r].first; c < readings[r].last; c++) {
                vector value = logits[net->logit[c] * m->all.stride];
                bad |= value != value;
                if (readings[r].largest) {
                    words more = value > most;
                    most = choose(more, value, most);
                    place = choose(more, all((float)(c - readings[r].first)), place);
                } else {
                    for (int i = 0; i < LANES; i++) to[i * columns] = value[i];
                    to++;
                }
            }
            if (readings[r].largest) {
                for (int i = 0; i < LANES; i++) to[i * columns] = place[i];
                to++;
            }
        }
    }
    for (int p = 0; p < m->length; p++)
        for (int c = 0; c < columns; c++) out[p * columns + c] = m->kept[input->item[p] * columns + c];
    return !empty(bad);
}

/* A block of memory, or only a count of the needed bytes. */
typedef struct {
    uintptr_t at;
    int real;
} room;

/* The next `count` items of `size`; each list begins at a whole vector. A sanitizer forbids the gaps between lists. */
static void *next(room *in, size_t count, size_t size) {
    uintptr_t found = in->at, end = found + count * size;
    in->at = (end + GAP + sizeof(vector) - 1) / sizeof(vector) * sizeof(vector);
    if (in->real) FORBID((void *)end, in->at - end);
    return (void *)found;
}

/* Lays out memory for `at_once` inputs in a block; without a block, only counts the bytes. */
static memory lay_out(const network *net, int length, int at_once, int columns, void *block) {
    room at = {(uintptr_t)block, block != NULL};
    memory m = {0};
    next(&at, 1, sizeof(memory)); /* itself */
    m.length = length;
    m.at_once = at_once;
    m.columns = columns;
    m.size = vectors(length);
    m.inputs = next(&at, at_once, sizeof(items));
    for (int n = 0; n < at_once; n++) {
        items input = {0};
        input.ids = next(&at, length, sizeof(int64_t));
        input.times = next(&at, length, sizeof(float));
        input.item = next(&at, length, sizeof(int32_t));
        if (block) m.inputs[n] = input;
    }
    size_t lanes = (size_t)m.size * LANES, entries = (size_t)length * net->width + 1;
    size_t shares = (size_t)(length + AT_ONCE) * m.size;
    m.all.stride = (size_t)at_once * m.size;
    m.all.first = next(&at, net->rows * m.all.stride, sizeof(vector));
    m.queries = next(&at, (size_t)net->width * m.size, sizeof(vector));
    m.results = next(&at, (size_t)net->width * m.size, sizeof(vector));
    m.asked = next(&at, 4 * lanes, sizeof(int32_t));
    m.slot = next(&at, net->classes, sizeof(int32_t));
    m.scratch = next(&at, lanes + 1, sizeof(int32_t));
    m.start = next(&at, length + 2, sizeof(int32_t));
    m.input = next(&at, entries, sizeof(int32_t));
    m.weight = next(&at, entries, sizeof(float));
    m.kept = next(&at, lanes * columns, sizeof(float));
    m.patterns = next(&at, net->heads, sizeof(pattern));
    vector *common = next(&at, shares + m.size, sizeof(vector));
    for (int h = 0; h < net->heads; h++) {
        pattern p = {0};
        p.keeps = net->head[h].query.known && net->head[h].key.known && shares <= KEPT;
        p.asked = next(&at, 3 * lanes, sizeof(int32_t));
        p.query = next(&at, length, sizeof(int32_t));
        p.first = next(&at, length + 1, sizeof(int32_t));
        p.times = next(&at, length, sizeof(float));
        p.shares = p.keeps ? next(&at, shares + m.size, sizeof(vector)) : common;
        p.total = p.shares + shares;
        if (block) m.patterns[h] = p;
    }
    m.bytes = at.at - (uintptr_t)block;
    return m;
}

/* Whether every list in memory is short enough to be counted by an `int`. */
static int countable(const network *net, int length, int columns) {
    int64_t size = vectors(length), shares = (length + (int64_t)AT_ONCE) * size;
    return shares <= INT32_MAX && (int64_t)length * net->width < INT32_MAX && size * LANES * columns <= INT32_MAX;
}

/* New memory, at the beginning of its block; NULL if the allocation fails. */
static memory *make_memory(const network *net, int length, int at_once, int columns) {
    if (!countable(net, length, columns)) return NULL;
    memory *made = get_block(lay_out(net, length, at_once, columns, NULL).bytes);
    if (made) *made = lay_out(net, length, at_once, columns, made);
    return made;
}

/* Some inputs of one length, and the place for the kept part of their logits. */
typedef struct {
    const network *net;
    const int64_t *ids;
    int64_t inputs;
    int length;
    const reading *readings;
    int count, columns; /* numbers of readings, and of kept numbers per position */
    float *out;
    memory *memory; /* of an earlier job, or NULL; after the run its own */
    int threads;    /* the most to use */
    int64_t bad;    /* number of inputs with a NaN logit, or -1 without memory */
} job;

/* Memory for a job: the given one if its sizes are right, else new memory. */
static memory *memory_for(const job *j) {
    int at_once = larger(ROW / LANES / vectors(j->length), 1);
    if (at_once > j->inputs) at_once = larger((int)j->inputs, 1);
    memory *given = j->memory;
    if (given && given->length == j->length && given->at_once == at_once && given->columns == j->columns) return given;
    free_block(given);
    return make_memory(j->net, j->length, at_once, j->columns);
}

static void *run_job(void *argument) {
    job *j = argument;
    memory *m = j->memory = memory_for(j);
    j->bad = m ? 0 : -1;
    for (int64_t done = 0; m && done < j->inputs; done += m->at_once) {
        int now = j->inputs - done < m->at_once ? (int)(j->inputs - done) : m->at_once;
        for (int n = 0; n < now; n++) take_apart(j->net, j->ids + (done + n) * j->length, m, m->inputs + n);
        if (m->at_once == 1) m->all.stride = m->size = vectors(m->inputs->count);
        embed(j->net, now, m);
        run_layers(j->net, now, m);
        for (int n = 0; n < now; n++) {
            float *out = j->out + (done + n) * j->length * j->columns;
            j->bad += read_out(j->net, j->readings, j->count, n, m, out);
        }
    }
    return NULL;
}

/* The approximate number of products of a job. */
static double worth(const job *j) {
    return (double)j->inputs * j->length * ((double)j->net->weights + 4.0 * j->net->heads * j->length);
}

/* Runs a job, in several threads if it is large; returns how many inputs have a NaN logit, or -1 without memory. */
static int64_t run_parts(job *whole) {
    int64_t parts = MOST_THREADS, bad = 0;
    if (parts > worth(whole) / WORTH) parts = 1 + (int64_t)(worth(whole) / WORTH);
    if (parts > whole->threads) parts = larger(whole->threads, 1);
    if (parts > whole->inputs) parts = larger((int)whole->inputs, 1);
    struct { job job; pthread_t thread; int runs; } part[MOST_THREADS];
    for (int64_t n = parts - 1; n >= 0; n--) {
        int64_t first = n * whole->inputs / parts;
        part[n].job = *whole;
        part[n].job.ids += first * whole->length;
        part[n].job.out += first * whole->length * whole->columns;
        part[n].job.inputs = (n + 1) * whole->inputs / parts - first;
        if (n) part[n].job.memory = NULL;
        part[n].runs = n && !pthread_create(&part[n].thread, NULL, run_job, &part[n].job);
        if (!part[n].runs) run_job(&part[n].job);
    }
    for (int64_t n = 0; n < parts; n++) {
        if (part[n].runs) pthread_join(part[n].thread, NULL);
        if (n) free_block(part[n].job.memory);
        bad = bad < 0 || part[n].job.bad < 0 ? -1 : bad + part[n].job.bad;
    }
    whole->memory = part[0].job.memory;
    return bad;
}

#endif
