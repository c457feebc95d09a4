/* The forward pass of `forward.py` in C, for who wants the answers only; `kernel.py` prepares what it runs on.

   Activations lie transposed, a row of memory per number and a lane per position, and compiled weights are nearly all
   zeros: so a map is a list of its weights that are not zero, each of which is read once and multiplies vectors of
   positions. Inputs of a batch are run a few at a time, as many as make rows of some length. Rows are filled up to whole
   vectors with lanes that nobody looks at. All arithmetic is float32, in one order, whatever the processor.

   A head is two maps with a softmax between: from queries to scores, whose weights are the keys, and from shares to what
   is read, whose weights are the values. Queries, keys and values that depend on nothing but token and position are not
   computed, but looked up; those of tokens that are all the same to the head are taken once, and the shares are those of
   the input before if that asked the same. Where nothing tells the positions of a token apart, an input is the tokens in
   it, and how often each is. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8         /* of a vector */
#define ROW 64          /* lanes worth running at once */
#define BLOCK 8         /* vectors that stay in registers while the weights of an output are read */
#define AT_ONCE 4       /* keys of which there is no need to wait for one another */
#define SMALLEST -87.0f /* below it exp is taken for 0: it is less than the smallest normal number */
#define KEPT 4096       /* vectors of shares that are worth keeping for the next input */
#define SPARE 4000000   /* bytes that are worth keeping for the next call */
#define WORTH 500000    /* products that are worth a thread */
#define MOST_THREADS 64

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t words __attribute__((vector_size(LANES * sizeof(int32_t))));

#define ALWAYS static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define FASTEST __attribute__((target_clones("avx2", "default")))
#else
#define FASTEST
#endif

/* An affine map: for every output, the inputs that it reads and their weights, and a bias (NULL: none). */
typedef struct {
    int outputs;
    const int32_t *target; /* the row that each output goes to; NULL: the first to the first, and so on */
    const int32_t *start;  /* where the entries of an output begin, and behind the last one, where they end */
    const int32_t *input;
    const float *weight;
    const float *bias;
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
    map computed;
    int row; /* the first it is computed to */
    const int32_t *class_of;
    table classes, positions;
} side;

typedef struct {
    const float *scores;    /* [class of key][class of query] if they depend on tokens alone, and are few; or NULL */
    side query, key, value; /* if keys and values both depend on tokens alone they have the same classes */
    int row;                /* the first of what it reads */
} head;

typedef struct {
    int heads;
    head *head;
    map output, in, out;
} layer;

/* A token that was met, and its id. */
typedef struct {
    PyObject *token;
    int64_t id;
} met;

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
    Py_ssize_t weights;   /* of all maps */
    char *packed;         /* where all that points to */
    int threads;          /* to run at most */
    PyObject *ids;        /* a dict of all tokens */
    met *met;             /* the last one of those whose address leads to a place */
    size_t places;        /* a power of two */
    struct memory *spare; /* of the last pass, for the next: what is kept there may serve it */
} network;

/* What is kept of the logits from `first` to `last`: all of them, or the number of the largest. */
typedef struct {
    int first, last, largest;
} reading;

/* Reading what `kernel.py` wrote: its integers and numbers one after another. */

typedef struct {
    const int32_t *words;
    const float *numbers;
    Py_ssize_t weights; /* of maps */
} cursor;

static const int32_t *take_words(cursor *at, Py_ssize_t count) {
    const int32_t *found = at->words;
    at->words += count;
    return found;
}

static int take_word(cursor *at) { return *take_words(at, 1); }

static const float *take_numbers(cursor *at, Py_ssize_t count) {
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
    table entries = take_table(at);
    map found = {entries.rows, take_words(at, entries.rows), entries.start, entries.column, entries.value, NULL};
    found.bias = take_numbers(at, found.outputs);
    at->weights += found.start[found.outputs] + found.outputs;
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
    } else {
        found.row = take_word(at);
        found.computed = take_map(at);
    }
    return found;
}

static int larger(int a, int b) { return a > b ? a : b; }

static void take_head(cursor *at, network *net, head *found) {
    found->query = take_side(at, net->tokens.rows);
    found->key = take_side(at, net->tokens.rows);
    found->value = take_side(at, net->tokens.rows);
    found->row = take_word(at);
    if (take_word(at)) found->scores = take_numbers(at, (Py_ssize_t)found->query.classes.rows * found->key.classes.rows);
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
        found->output = take_map(at);
        found->in = take_map(at);
        found->out = take_map(at);
    }
    net->unembed = take_map(at);
    net->logits = take_word(at);
    net->logit = take_words(at, net->logits);
    net->weights = at->weights;
}

/* Vectors. */

ALWAYS vector all(float value) { return (vector){0} + value; }

ALWAYS vector only(words where, vector x) { return (vector)((words)x & where); }

ALWAYS vector choose(words where, vector yes, vector no) { return (vector)(((words)yes & where) | ((words)no & ~where)); }

/* Whether no bit is set. */
ALWAYS int empty(words x) {
    int any = 0;
    for (int i = 0; i < LANES; i++) any |= x[i];
    return !any;
}

/* exp of numbers up to 0: 2^n times the series of what is left, which is at most log(2)/2 from 0. exp(0) is 1. */
ALWAYS vector exponential(vector x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    words tiny = x < SMALLEST;
    x = choose(tiny, all(SMALLEST), x);
    vector n = (x * 1.44269504f + shift) - shift;
    vector r = (x - n * 0.693359375f) + n * 2.12194440e-4f; /* log(2) in two parts: n times the first is exact */
    vector y = all(1.0f / 5040);
    y = y * r + 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r * r + r + 1.0f;
    words power = (__builtin_convertvector(n, words) + 127) << 23;
    return only(~tiny, y * (vector)power);
}

/* Rows of vectors; each begins `stride` vectors behind the one before. */
typedef struct {
    vector *first;
    size_t stride;
} rows;

/* Where the result of a map goes. */
enum { PUT, PUT_POSITIVE, ADD };

/* A map of `count` vectors of each row. */
ALWAYS void apply_block(const map *m, rows x, rows y, int count, int mode) {
    for (int o = 0; o < m->outputs; o++) {
        vector sum[BLOCK];
        for (int b = 0; b < count; b++) sum[b] = all(m->bias ? m->bias[o] : 0.0f);
        for (int e = m->start[o]; e < m->start[o + 1]; e++) {
            const vector *row = x.first + m->input[e] * x.stride;
            float weight = m->weight[e];
            for (int b = 0; b < count; b++) sum[b] += row[b] * weight;
        }
        vector *to = y.first + (m->target ? m->target[o] : o) * y.stride;
        for (int b = 0; b < count; b++) {
            if (mode == ADD) to[b] += sum[b];
            else if (mode == PUT) to[b] = sum[b];
            else to[b] = only(~(sum[b] <= 0.0f), sum[b]);
        }
    }
}

/* A map of the first `size` vectors of rows. */
ALWAYS void apply(const map *m, rows x, rows y, int size, int mode) {
    for (; size >= BLOCK; size -= BLOCK) {
        apply_block(m, x, y, BLOCK, mode);
        x.first += BLOCK;
        y.first += BLOCK;
    }
    switch (size) { /* a copy of the loops for each number, which the compiler unrolls */
    case 1: apply_block(m, x, y, 1, mode); break;
    case 2: apply_block(m, x, y, 2, mode); break;
    case 3: apply_block(m, x, y, 3, mode); break;
    case 4: apply_block(m, x, y, 4, mode); break;
    case 5: apply_block(m, x, y, 5, mode); break;
    case 6: apply_block(m, x, y, 6, mode); break;
    case 7: apply_block(m, x, y, 7, mode); break;
    }
}

FASTEST static void put(const map *m, rows x, rows y, int size) { apply(m, x, y, size, PUT); }
FASTEST static void put_positive(const map *m, rows x, rows y, int size) { apply(m, x, y, size, PUT_POSITIVE); }
FASTEST static void add(const map *m, rows x, rows y, int size) { apply(m, x, y, size, ADD); }

/* What is the largest of the scores of each query, which are `size` vectors apart. */
ALWAYS vector largest(const vector *scores, int keys, int size) {
    vector most[AT_ONCE]; /* none waits for another */
    for (int k = 0; k < AT_ONCE; k++) most[k] = scores[0];
    int t = 0;
    for (; t + AT_ONCE <= keys; t += AT_ONCE)
        for (int k = 0; k < AT_ONCE; k++) {
            vector score = scores[(t + k) * size];
            most[k] = choose(score <= most[k], most[k], score);
        }
    for (; t < keys; t++) most[0] = choose(scores[t * size] <= most[0], most[0], scores[t * size]);
    for (int k = 1; k < AT_ONCE; k++) most[0] = choose(most[k] <= most[0], most[0], most[k]);
    return most[0];
}

/* A score, neither 0 nor vanishing, and its exponential. */
typedef struct {
    float score, share;
} sample;

/* The exponentials of `count` scores. Most often they are 0, vanish, or are what was met last. */
ALWAYS void exponentials(vector *scores, int size, int count, vector most, sample *last) {
    words explained = ~(words){0};
    vector share[AT_ONCE];
    for (int k = 0; k < count; k++) {
        vector score = scores[k * size] - most;
        words full = score == 0.0f, same = score == last->score;
        explained &= full | same | (score < SMALLEST);
        share[k] = (vector)((words)only(full, all(1.0f)) | (words)only(same, all(last->share)));
    }
    if (empty(~explained))
        for (int k = 0; k < count; k++) scores[k * size] = share[k];
    else
        for (int k = 0; k < count; k++) {
            vector score = scores[k * size] - most, found = exponential(score);
            scores[k * size] = found;
            for (int i = 0; i < LANES; i++)
                if (score[i] < 0.0f && found[i] > 0.0f) *last = (sample){score[i], found[i]};
        }
}

/* Scores [key][query] become what each key counts, `times` over; `total` what they count together. */
FASTEST
static void softmax(vector *scores, const float *times, int keys, int size, vector *total) {
    sample last = {1.0f, 0.0f};
    for (int p = 0; p < size; p++) {
        vector most = largest(scores + p, keys, size), sum = all(0.0f);
        int t = 0;
        for (; t + AT_ONCE <= keys; t += AT_ONCE) exponentials(scores + t * size + p, size, AT_ONCE, most, &last);
        for (; t < keys; t++) exponentials(scores + t * size + p, size, 1, most, &last);
        for (t = 0; t < keys; t++) sum += scores[t * size + p] *= times[t];
        total[p] = sum;
    }
}

/* What is read of the `values`, of which there are `width` per key, with these shares of the `total`. */
FASTEST
static void read_values(const map *values, int width, const vector *shares, int size, const vector *total, rows z) {
    for (int d = 0; d < width; d++)
        for (int p = 0; p < size; p++) z.first[d * z.stride + p] = all(0.0f);
    for (int t = 0; t < values->outputs; t++)
        for (int e = values->start[t]; e < values->start[t + 1]; e++) {
            vector *to = z.first + values->input[e] * z.stride;
            for (int p = 0; p < size; p++) to[p] += shares[t * size + p] * values->weight[e];
        }
    for (int p = 0; p < size; p++) {
        if (empty(total[p] != 1.0f)) continue;
        for (int d = 0; d < width; d++) z.first[d * z.stride + p] /= total[p];
    }
}

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

ALWAYS int vectors(int lanes) { return (lanes + LANES - 1) / LANES; }

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

/* The keys, or values, as lists of what is not zero: a map from queries to scores, if the weights are the keys. */
static map by_key(const side *s, const int32_t *class, const pattern *p, rows computed, const memory *m) {
    int entries = 0;
    for (int t = 0; t < p->keys; t++) {
        int at = p->first[t];
        m->start[t] = entries;
        if (s->known) {
            const table *parts[] = {&s->classes, &s->positions};
            int row[] = {class[at], at};
            for (int k = 0; k < 2; k++)
                for (int e = parts[k]->start[row[k]]; e < parts[k]->start[row[k] + 1]; e++, entries++) {
                    m->input[entries] = parts[k]->column[e];
                    m->weight[entries] = parts[k]->value[e];
                }
        } else
            for (int d = 0; d < s->width; d++) {
                m->input[entries] = d;
                m->weight[entries] = ((const float *)(computed.first + d * computed.stride))[at];
                entries += m->weight[entries] != 0.0f;
            }
    }
    m->start[p->keys] = entries;
    return (map){p->keys, NULL, m->start, m->input, m->weight, NULL};
}

/* The rows from `first` on of one of the inputs. */
static rows rows_of(const memory *m, int first, int input) {
    return (rows){m->all.first + first * m->all.stride + (size_t)input * m->size, m->all.stride};
}

/* Scores from a table. */
FASTEST
static void look_up_scores(const head *h, const pattern *p, const memory *m) {
    int lanes = vectors(p->queries) * LANES, classes = h->query.classes.rows;
    int32_t *class = m->scratch;
    memset(class, 0, sizeof(int32_t) * lanes);
    for (int i = 0; i < p->count; i++) class[p->query[i]] = p->asked[i];
    for (int t = 0; t < p->keys; t++) {
        const float *from = h->scores + (size_t)p->asked[p->count + p->first[t]] * classes;
        float *to = (float *)p->shares + t * lanes;
        for (int i = 0; i < lanes; i++) to[i] = from[class[i]];
    }
}

/* What a head attends to. */
static void attend(const head *h, pattern *p, int input, int causal, const memory *m) {
    group_queries(h, m, causal, p);
    group_keys(h, m->inputs + input, m, causal, p);
    int size = vectors(p->queries);
    if (h->scores) look_up_scores(h, p, m);
    else {
        rows queries = h->query.known ? look_up_queries(&h->query, p, m) : rows_of(m, h->query.row, input);
        map keys = by_key(&h->key, p->asked + p->count, p, rows_of(m, h->key.row, input), m);
        put(&keys, queries, (rows){p->shares, size}, size);
    }
    if (causal)
        for (int t = 1; t < p->keys; t++)
            for (int i = 0; i < t; i++) ((float *)(p->shares + t * size))[i] = -INFINITY;
    softmax(p->shares, p->times, p->keys, size, p->total);
    p->made = p->keeps;
}

/* One head on one input: what it reads goes to its rows. */
static void run_head(const head *h, pattern *p, int number, int causal, const memory *m) {
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
        attend(h, p, number, causal, m);
    }
    int size = vectors(p->queries);
    map values = by_key(&h->value, value, p, rows_of(m, h->value.row, number), m);
    rows found = rows_of(m, h->row, number), results = p->grouped ? (rows){m->results, size} : found;
    read_values(&values, h->value.width, p->shares, size, p->total, results);
    if (!p->grouped) return;
    for (int d = 0; d < h->value.width; d++) {
        const float *from = (const float *)(results.first + d * results.stride);
        float *to = (float *)(found.first + d * found.stride);
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
        for (const head *h = at->head; h < at->head + at->heads; h++, patterns++) {
            const side *sides[] = {&h->query, &h->key, &h->value};
            for (int s = 0; s < 3; s++)
                if (!sides[s]->known) put(&sides[s]->computed, m->all, m->all, size);
            for (int n = 0; n < inputs; n++) run_head(h, patterns, n, net->causal, m);
        }
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

/* The next `count` items of `size` of a block of memory; all of them are whole vectors. */
static void *next(uintptr_t *block, size_t count, size_t size) {
    uintptr_t found = *block;
    *block += (count * size + sizeof(vector) - 1) / sizeof(vector) * sizeof(vector);
    return (void *)found;
}

/* Memory for so many inputs at once, from a block; without one, only how much it is. */
static memory lay_out(const network *net, int length, int at_once, int columns, void *block) {
    uintptr_t at = (uintptr_t)block;
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
    size_t lanes = (size_t)m.size * LANES, entries = 2 * (size_t)length * net->width + 1, shares = (size_t)length * m.size;
    m.all.stride = (size_t)at_once * m.size;
    m.all.first = next(&at, net->rows * m.all.stride, sizeof(vector));
    m.queries = next(&at, (size_t)net->width * m.size, sizeof(vector));
    m.results = next(&at, (size_t)net->width * m.size, sizeof(vector));
    m.asked = next(&at, 4 * lanes, sizeof(int32_t));
    m.slot = next(&at, net->classes, sizeof(int32_t));
    m.scratch = next(&at, lanes + 1, sizeof(int32_t));
    m.start = next(&at, length + 1, sizeof(int32_t));
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
    m.bytes = at - (uintptr_t)block;
    return m;
}

/* New memory, at the beginning of its block; NULL if there is none. */
static memory *make_memory(const network *net, int length, int at_once, int columns) {
    memory *made = aligned_alloc(sizeof(vector), lay_out(net, length, at_once, columns, NULL).bytes);
    if (made) *made = lay_out(net, length, at_once, columns, made);
    return made;
}

/* Some inputs of one length, and where what is kept of their logits goes. */
typedef struct {
    const network *net;
    const int64_t *ids;
    Py_ssize_t inputs;
    int length;
    const reading *readings;
    int count, columns; /* of readings; of what they keep */
    float *out;
    memory *memory; /* NULL: it makes its own */
    Py_ssize_t bad; /* how often some logit was not a number, or -1 without memory */
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
    for (Py_ssize_t done = 0; m && done < j->inputs; done += m->at_once) {
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

/* A job, in parts by threads where that is worth it; how often some logit was not a number, or -1 without memory. */
static Py_ssize_t run_parts(job *whole) {
    Py_ssize_t products = whole->net->weights + 4 * (Py_ssize_t)whole->net->heads * whole->length;
    Py_ssize_t parts = 1 + whole->inputs * whole->length * products / WORTH, bad = 0;
    if (parts > whole->net->threads) parts = whole->net->threads;
    if (parts > whole->inputs) parts = larger((int)whole->inputs, 1);
    struct { job job; pthread_t thread; int runs; } part[MOST_THREADS];
    for (Py_ssize_t n = parts - 1; n >= 0; n--) {
        Py_ssize_t first = n * whole->inputs / parts;
        part[n].job = *whole;
        part[n].job.ids += first * whole->length;
        part[n].job.out += first * whole->length * whole->columns;
        part[n].job.inputs = (n + 1) * whole->inputs / parts - first;
        if (n) part[n].job.memory = NULL;
        part[n].runs = n && !pthread_create(&part[n].thread, NULL, run_job, &part[n].job);
        if (!part[n].runs) run_job(&part[n].job);
    }
    for (Py_ssize_t n = 0; n < parts; n++) {
        if (part[n].runs) pthread_join(part[n].thread, NULL);
        if (n) free(part[n].job.memory);
        bad = bad < 0 || part[n].job.bad < 0 ? -1 : bad + part[n].job.bad;
    }
    whole->memory = part[0].job.memory;
    return bad;
}

/* Python: a network is a capsule, which owns what it was loaded from. */

#define NAME "tracr.network"

static void discard(network *net) {
    Py_XDECREF(net->ids);
    for (size_t place = 0; net->met && place < net->places; place++) Py_XDECREF(net->met[place].token);
    free(net->met);
    free(net->spare);
    free(net->layer);
    free(net->head);
    free(net->packed);
    free(net);
}

static void unload(PyObject *capsule) { discard(PyCapsule_GetPointer(capsule, NAME)); }

static PyObject *load(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer words, numbers;
    int threads;
    PyObject *ids;
    if (!PyArg_ParseTuple(arguments, "y*y*O!i", &words, &numbers, &PyDict_Type, &ids, &threads)) return NULL;
    network *net = calloc(1, sizeof(network));
    PyObject *capsule = NULL;
    if (net) {
        cursor at = {words.buf, NULL, 0};
        net->rows = take_word(&at);
        net->stream = take_word(&at);
        net->layers = take_word(&at);
        net->heads = take_word(&at);
        net->causal = take_word(&at);
        net->threads = threads < MOST_THREADS ? threads : MOST_THREADS;
        net->ids = ids;
        Py_INCREF(ids);
        net->places = 8;
        while (net->places < 4 * (size_t)PyDict_Size(ids)) net->places *= 2;
        net->met = calloc(net->places, sizeof(met));
        net->packed = malloc(words.len + numbers.len);
        net->layer = calloc(net->layers + 1, sizeof(layer));
        net->head = calloc(net->heads + 1, sizeof(head));
        if (net->met && net->packed && net->layer && net->head) {
            memcpy(net->packed, words.buf, words.len);
            memcpy(net->packed + words.len, numbers.buf, numbers.len);
            at.words = (const int32_t *)net->packed + (at.words - (const int32_t *)words.buf);
            at.numbers = (const float *)(net->packed + words.len);
            take_network(&at, net);
            capsule = PyCapsule_New(net, NAME, unload);
        }
        if (!capsule) discard(net);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&numbers);
    return capsule || PyErr_Occurred() ? capsule : PyErr_NoMemory();
}

/* How often some logit was not a number, or -1 with an exception. There is room for `size` numbers. */
static Py_ssize_t run_checked(network *net, const Py_buffer *readings, const int64_t *ids, Py_ssize_t inputs,
                              Py_ssize_t length, float *out, Py_ssize_t size) {
    const reading *reads = readings->buf;
    int count = (int)(readings->len / (Py_ssize_t)sizeof(reading)), columns = 0;
    for (int r = 0; r < count; r++) columns += reads[r].largest ? 1 : reads[r].last - reads[r].first;
    if (inputs * length * columns != size) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not fit together");
        return -1;
    }
    if (length < 1 || length > net->positions.rows) {
        PyErr_Format(PyExc_IndexError, "%zd positions, the model has %d", length, net->positions.rows);
        return -1;
    }
    for (Py_ssize_t i = 0; i < inputs * length; i++)
        if (ids[i] < 0 || ids[i] >= net->tokens.rows) {
            PyErr_Format(PyExc_IndexError, "id %lld, the model has ids below %d", (long long)ids[i], net->tokens.rows);
            return -1;
        }
    Py_ssize_t bad;
    job whole = {net, ids, inputs, (int)length, reads, count, columns, out, net->spare, 0};
    net->spare = NULL; /* another thread makes its own */
    Py_BEGIN_ALLOW_THREADS
    bad = run_parts(&whole);
    Py_END_ALLOW_THREADS
    if (net->spare || (whole.memory && whole.memory->bytes > SPARE)) free(whole.memory);
    else net->spare = whole.memory;
    if (bad < 0) PyErr_NoMemory();
    return bad;
}

static PyObject *run(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *capsule;
    Py_buffer readings, ids, out;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "Oy*y*nw*", &capsule, &readings, &ids, &length, &out)) return NULL;
    Py_ssize_t bad = -1, tokens = ids.len / (Py_ssize_t)sizeof(int64_t);
    network *net = PyCapsule_GetPointer(capsule, NAME);
    if (net && (length < 1 || tokens % length))
        PyErr_SetString(PyExc_ValueError, "the ids are not inputs of this length");
    else if (net)
        bad = run_checked(net, &readings, ids.buf, tokens / length, length, out.buf,
                          out.len / (Py_ssize_t)sizeof(float));
    PyBuffer_Release(&readings);
    PyBuffer_Release(&ids);
    PyBuffer_Release(&out);
    return bad < 0 ? NULL : PyLong_FromSsize_t(bad);
}

/* The id of a token, or -1. Often it is an object that was met before; what it is cannot change if it is a text or an
   integer. */
static int64_t id_of(const network *net, PyObject *token) {
    met *last = net->met + ((uintptr_t)token / 16 * 0x9E3779B1u >> 7 & (net->places - 1));
    if (last->token == token) return last->id;
    Py_INCREF(token); /* comparing tokens may run Python */
    PyObject *found = PyDict_GetItemWithError(net->ids, token), *before = token;
    int64_t id = found ? PyLong_AsLongLong(found) : -1;
    if (found && (PyUnicode_CheckExact(token) || PyLong_CheckExact(token))) {
        before = last->token;
        *last = (met){token, id};
    }
    Py_XDECREF(before);
    return id;
}

/* Put the ids of a list of tokens behind `bos`; 0 if it is no such list. */
static int encode(const network *net, PyObject *list, int64_t bos, Py_ssize_t length, int64_t *ids) {
    if (!PyList_Check(list) || PyList_Size(list) != length) return 0;
    *ids++ = bos;
    for (Py_ssize_t i = 0; i < length; i++, ids++) {
        PyObject *token = PyList_GetItem(list, i);
        *ids = token ? id_of(net, token) : -1;
        if (*ids < 0) return 0;
    }
    return 1;
}

/* How an output's values are told from what is kept of its logits, which is `kept` numbers per position. */
typedef struct {
    PyObject *values;  /* all of them; or Py_None: the number itself */
    double *middles;   /* between values in ascending order; NULL where the number of the value was kept */
    Py_ssize_t between, kept;
} meaning;

static PyObject *value_of(const meaning *output, const float *numbers) {
    int none = output->kept > 1 && numbers[1] > 0.5f;
    PyObject *found = Py_None;
    if (output->values == Py_None && !none) return PyFloat_FromDouble(numbers[0]);
    if (output->values != Py_None) {
        Py_ssize_t low = 0, high = output->between;
        if (!output->middles) low = (Py_ssize_t)numbers[0];
        else if (none) low = PyTuple_Size(output->values) - 1; /* `None` stands behind the numbers */
        else
            while (low < high) {
                Py_ssize_t half = (low + high) / 2;
                if (output->middles[half] < (double)numbers[0]) low = half + 1;
                else high = half;
            }
        found = PyTuple_GetItem(output->values, low);
    }
    Py_XINCREF(found);
    return found;
}

/* The values of an input; a new list. */
static PyObject *decode(const meaning *output, const float *numbers, Py_ssize_t length) {
    PyObject *list = PyList_New(length);
    for (Py_ssize_t i = 0; list && i < length; i++) {
        PyObject *value = value_of(output, numbers + i * output->kept);
        if (!value) Py_CLEAR(list);
        else PyList_SetItem(list, i, value);
    }
    return list;
}

/* The answers to inputs of one length, or NULL: with an exception, or without one if they are not plain. */
static PyObject *answer_plain(network *net, const Py_buffer *readings, int64_t bos, const meaning *output,
                              PyObject *tokens, Py_ssize_t inputs, Py_ssize_t length, int batch) {
    Py_ssize_t row = length + 1, places = inputs * row;
    int64_t *ids = malloc(sizeof(int64_t) * places + sizeof(float) * places * output->kept);
    if (!ids) return PyErr_NoMemory();
    float *kept = (float *)(ids + places);
    PyObject *found = NULL;
    int plain = 1;
    for (Py_ssize_t i = 0; plain && i < inputs; i++) {
        PyObject *input = batch ? PyList_GetItem(tokens, i) : tokens;
        plain = input && encode(net, input, bos, length, ids + i * row);
    }
    PyErr_Clear(); /* of tokens that cannot be looked up */
    if (plain && run_checked(net, readings, ids, inputs, row, kept, places * output->kept) == 0) {
        found = batch ? PyList_New(inputs) : decode(output, kept + output->kept, length);
        for (Py_ssize_t i = 0; batch && found && i < inputs; i++) {
            PyObject *list = decode(output, kept + (i * row + 1) * output->kept, length);
            if (!list) Py_CLEAR(found);
            else PyList_SetItem(found, i, list);
        }
    }
    free(ids);
    return found;
}

static PyObject *answer(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    (void)self;
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "answer(network, readings, bos, values, middles, tokens)");
        return NULL;
    }
    network *net = PyCapsule_GetPointer(arguments[0], NAME);
    int64_t bos = PyLong_AsLongLong(arguments[2]);
    Py_buffer readings, middles = {0};
    if (!net || PyErr_Occurred() || PyObject_GetBuffer(arguments[1], &readings, PyBUF_SIMPLE)) return NULL;
    int numerical = arguments[4] != Py_None;
    if (numerical && PyObject_GetBuffer(arguments[4], &middles, PyBUF_SIMPLE)) {
        PyBuffer_Release(&readings);
        return NULL;
    }
    const reading *only = readings.buf;
    meaning output = {arguments[3], numerical ? middles.buf : NULL, middles.len / (Py_ssize_t)sizeof(double),
                      only->largest ? 1 : only->last - only->first};
    PyObject *tokens = arguments[5], *found = NULL;
    Py_ssize_t inputs = PyList_Check(tokens) ? PyList_Size(tokens) : 0;
    PyObject *first = inputs ? PyList_GetItem(tokens, 0) : NULL;
    int batch = first && PyList_Check(first);
    Py_ssize_t length = batch ? PyList_Size(first) : inputs;
    if (length > 0 && length < net->positions.rows)
        found = answer_plain(net, &readings, bos, &output, tokens, batch ? inputs : 1, length, batch);
    if (numerical) PyBuffer_Release(&middles);
    PyBuffer_Release(&readings);
    if (!found && !PyErr_Occurred()) {
        found = Py_None;
        Py_INCREF(found);
    }
    return found;
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS,
     "load(words, numbers, ids, threads): a network from what `packed.py` packs, and a dict of its tokens' ids."},
    {"run", run, METH_VARARGS,
     "run(network, readings, ids, length, out): fill `out`; how often some logit was not a number."},
    {"answer", (PyCFunction)(void (*)(void))answer, METH_FASTCALL,
     "answer(network, readings, bos, values, middles, tokens): the output for a list of tokens, or a list of such lists "
     "of one length, if all have ids; None for anything else."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", "The forward pass in C.", 0, methods, 0, 0, 0, 0};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&module); }
