/* The forward pass of `forward.py` in C, for who wants the answers only.

   Activations lie transposed, a row of memory per number and a lane per position, and compiled weights are nearly all
   zeros: so a map is a list of its weights that are not zero, each of which is read once and multiplies vectors of
   positions. Inputs of a batch are run a few at a time, as many as make rows of some length. Rows are filled up to whole
   vectors with lanes that nobody looks at. All arithmetic is float32, in one order, whatever the processor.

   A head is two maps with a softmax between: from queries to scores, whose weights are the keys, and from shares to what
   is read, whose weights are the values. Queries, keys and values that depend on nothing but token and position are not
   computed, but looked up; those of tokens that are all the same to the head are taken once, and the shares are those of
   the input before if that asked the same. Where nothing tells the positions of a token apart, an input is the tokens in
   it, and how often each is. */

#ifndef TRACR_FORWARD_H
#define TRACR_FORWARD_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "vectors.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID ASAN_POISON_MEMORY_REGION
#define GAP sizeof(vector)
#else
#define FORBID(place, bytes) ((void)(place), (void)(bytes))
#define GAP 0
#endif

#define ROW 64       /* lanes worth running at once */
#define KEPT 4096    /* vectors of shares that are worth keeping for the next input */
#define LEAST 1e-20f /* of the largest share there could be, if smaller ones are to be taken from a table */
#define LITTLE 16    /* numbers of which it is not worth finding those that are not zero */
#define WORTH 500000 /* products that are worth a thread */
#define MOST_THREADS 64

static int larger(int a, int b) { return a > b ? a : b; }

/* What is kept of the logits from `first` to `last`: all of them, or the number of the largest. */
typedef struct {
    int first, last, largest;
} reading;

/* What an input is made of: an item for each position, or for each kind of tokens in it. */
typedef struct {
    int count;
    int64_t *ids;  /* the token of each */
    float *times;  /* how often it is there */
    int32_t *item; /* [position] which one stands there */
} items;

/* Which items have the same queries and keys for a head, and what it attends to. */
typedef struct {
    int made, keeps;   /* whether it was made, and is kept for inputs that ask the same */
    int count;         /* of items */
    int32_t *asked;    /* their classes as queries, their classes as keys, and how often each is there */
    int grouped;       /* whether queries of a class are one */
    int queries, keys; /* how many different ones */
    int32_t *query;    /* [item] which of them */
    int32_t *first;    /* [key] the first item of its kind */
    float *times;      /* [key] how often it is there */
    vector *shares, *total;
} pattern;

/* Memory of a pass. */
typedef struct memory {
    int length, at_once, columns; /* positions, inputs and numbers kept of a position, which it is for */
    items *inputs;
    int size; /* vectors of items of an input */
    rows all; /* the residual stream, and what is computed from it */
    vector *queries, *results;
    pattern *patterns; /* of all heads */
    int32_t *asked;    /* as in a pattern, and then the classes of items as values */
    int32_t *slot, *scratch;
    int32_t *start, *input; /* of a map that is being made */
    float *weight;
    float *kept; /* [item][column] */
    size_t bytes;
} memory;

/* Whether what a side holds at a position depends on the token alone. */
static int by_token(const side *s) { return s->known && !s->positions.start[s->positions.rows]; }

/* Which of the different classes each of some things has, in the order they come, and the first of each; how many. */
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

/* What an input is made of. */
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

/* Known queries, a lane for each of the different ones. */
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

/* What is known of an item, behind the entries that a map has; how many it has then. What token and position add to the
   same number is added before anything is multiplied: they may cancel. */
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

/* Lists of what is computed of items: all of it, where that is little. */
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

/* Lists of what is computed of items and not zero: it is counted, then put where it belongs. */
FASTEST
static void list_computed(rows computed, int width, int count, const memory *m) {
    int32_t *next = m->start + 1; /* where an item's next entry goes: in the end, where the next item's begin */
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

/* The keys, or values, as lists of what is not zero: a map from queries to scores, if the weights are the keys. */
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

/* Shares from a table; whether they are good. They are relative to those of the keys that a query attends to most, and
   if there is none of these, so little may be left that what vanished counts. */
FASTEST
static int look_up_shares(const head *h, const pattern *p, const memory *m) {
    int size = vectors(p->queries), lanes = size * LANES, classes = h->query.classes.rows;
    int32_t *class = m->scratch;
    for (int i = 0; i < p->count; i++) class[p->query[i]] = p->asked[i];
    for (int i = p->queries; i < lanes; i++) class[i] = class[0];
    for (int v = 0; v < size; v++) p->total[v] = all(0.0f);
    for (int t = 0; t < p->keys; t++) {
        const float *from = h->shares + (size_t)p->asked[p->count + p->first[t]] * classes;
        float *to = (float *)(p->shares + t * size), *total = (float *)p->total, times = p->times[t];
        for (int i = 0; i < lanes; i++) {
            to[i] = from[class[i]] * times;
            total[i] += to[i];
        }
    }
    words bad = {0};
    for (int v = 0; v < size; v++) bad |= p->total[v] < LEAST;
    return empty(bad);
}

/* What a head attends to. */
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

/* One head on one input: what it reads goes to its rows. */
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

/* The residual stream of some inputs. */
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

/* What the readings keep of the logits of an input, a row of numbers per position; whether some logit is not a number. */
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

/* A block of memory, or only how much of it is needed. */
typedef struct {
    uintptr_t at;
    int real;
} room;

/* The next `count` items of `size`; each list begins at a whole vector. A sanitizer forbids what is between lists. */
static void *next(room *in, size_t count, size_t size) {
    uintptr_t found = in->at, end = found + count * size;
    in->at = (end + GAP + sizeof(vector) - 1) / sizeof(vector) * sizeof(vector);
    if (in->real) FORBID((void *)end, in->at - end);
    return (void *)found;
}

/* Memory for so many inputs at once, from a block; without one, only how much it is. */
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

/* New memory, at the beginning of its block; NULL if there is none. */
static memory *make_memory(const network *net, int length, int at_once, int columns) {
    if (!countable(net, length, columns)) return NULL;
    memory *made = aligned_alloc(sizeof(vector), lay_out(net, length, at_once, columns, NULL).bytes);
    if (made) *made = lay_out(net, length, at_once, columns, made);
    return made;
}

/* Some inputs of one length, and where what is kept of their logits goes. */
typedef struct {
    const network *net;
    const int64_t *ids;
    int64_t inputs;
    int length;
    const reading *readings;
    int count, columns; /* of readings; of what they keep */
    float *out;
    memory *memory; /* of a job before, or NULL; then its own */
    int threads;    /* at most */
    int64_t bad;    /* how often some logit was not a number, or -1 without memory */
} job;

/* Memory for a job: what it was given, if that is right for it. */
static memory *memory_for(const job *j) {
    int at_once = larger(ROW / LANES / vectors(j->length), 1);
    if (at_once > j->inputs) at_once = larger((int)j->inputs, 1);
    memory *given = j->memory;
    if (given && given->length == j->length && given->at_once == at_once && given->columns == j->columns) return given;
    free(given);
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

/* About how many products a job takes. */
static double worth(const job *j) {
    return (double)j->inputs * j->length * ((double)j->net->weights + 4.0 * j->net->heads * j->length);
}

/* A job, in parts by threads where that is worth it; how often some logit was not a number, or -1 without memory. */
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
        if (n) free(part[n].job.memory);
        bad = bad < 0 || part[n].job.bad < 0 ? -1 : bad + part[n].job.bad;
    }
    whole->memory = part[0].job.memory;
    return bad;
}

#endif
