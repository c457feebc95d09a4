/* The forward pass of `forward.py` in C, for who wants the answers only; `kernel.py` prepares what it runs on.

   Compiled weights are nearly all zeros, and a residual stream is narrow and short. So a map is a list of its weights
   that are not zero, and activations lie transposed, a row of memory per dimension and a lane per position: a weight is
   read once and multiplies vectors of positions. Inputs of a batch are run a few at a time, as many as make rows of
   some length. Rows are filled up to whole vectors with lanes that nobody looks at. All arithmetic is float32, in one
   order, whatever the processor. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8         /* of a vector */
#define ROW 64          /* lanes worth running at once */
#define BLOCK 8         /* vectors that stay in registers while the weights of an output are read */
#define SMALLEST -87.0f /* below it exp is taken for 0: it is less than the smallest normal number */

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t words __attribute__((vector_size(LANES * sizeof(int32_t))));

#define ALWAYS static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define FASTEST __attribute__((target_clones("avx2", "default")))
#else
#define FASTEST
#endif

/* An affine map: for every output, the inputs that it reads and their weights, and a bias. */
typedef struct {
    int outputs;
    const int32_t *target; /* the row that each output goes to */
    const int32_t *start;  /* where the entries of an output begin, and behind the last one, where they end */
    const int32_t *input;
    const float *weight;
    const float *bias;
} map;

typedef struct {
    int heads, d_head;
    map query, key, value, output;
    int neurons;
    map in, out;
} layer;

/* An embedding: for every row the dimensions that it writes, and what. */
typedef struct {
    int rows;
    const int32_t *start, *dimension;
    const float *value;
} table;

typedef struct {
    int width, layers, causal;
    table tokens, positions;
    layer *layer;
    map unembed;
    char *packed; /* where all that points to */
} network;

/* What is kept of the logits from `first` to `last`: all of them, or the number of the largest. */
typedef struct {
    int first, last, largest;
} reading;

/* Reading what `kernel.py` wrote: its integers and numbers one after another. */

typedef struct {
    const int32_t *words;
    const float *numbers;
} cursor;

static const int32_t *take_words(cursor *at, Py_ssize_t count) {
    const int32_t *found = at->words;
    at->words += count;
    return found;
}

static const float *take_numbers(cursor *at, Py_ssize_t count) {
    const float *found = at->numbers;
    at->numbers += count;
    return found;
}

static map take_map(cursor *at) {
    map found;
    found.outputs = *take_words(at, 1);
    found.target = take_words(at, found.outputs);
    found.start = take_words(at, found.outputs + 1);
    int entries = found.start[found.outputs];
    found.input = take_words(at, entries);
    found.weight = take_numbers(at, entries);
    found.bias = take_numbers(at, found.outputs);
    return found;
}

static table take_table(cursor *at) {
    table found;
    found.rows = *take_words(at, 1);
    found.start = take_words(at, found.rows + 1);
    int entries = found.start[found.rows];
    found.dimension = take_words(at, entries);
    found.value = take_numbers(at, entries);
    return found;
}

static layer take_layer(cursor *at) {
    layer found = {0};
    found.heads = *take_words(at, 1);
    if (found.heads) {
        found.query = take_map(at);
        found.key = take_map(at);
        found.value = take_map(at);
        found.output = take_map(at);
        found.d_head = found.query.outputs / found.heads;
    }
    found.neurons = *take_words(at, 1);
    if (found.neurons) {
        found.in = take_map(at);
        found.out = take_map(at);
    }
    return found;
}

/* Vectors. */

ALWAYS vector all(float value) { return (vector){0} + value; }

ALWAYS vector choose(words where, vector yes, vector no) {
    return (vector)(((words)yes & where) | ((words)no & ~where));
}

/* Whether no bit is set. */
ALWAYS int empty(words x) {
    uint64_t part[LANES / 2], any = 0;
    memcpy(part, &x, sizeof part);
    for (int i = 0; i < LANES / 2; i++) any |= part[i];
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
    return choose(tiny, all(0.0f), y * (vector)power);
}

/* Where the result of a map goes. */
enum { PUT, PUT_POSITIVE, ADD };

/* A map of `count` vectors of each row; rows are `stride` vectors long. */
ALWAYS void apply_block(const map *m, const vector *x, vector *y, size_t stride, int count, int mode) {
    for (int o = 0; o < m->outputs; o++) {
        vector sum[BLOCK];
        for (int b = 0; b < count; b++) sum[b] = all(m->bias[o]);
        for (int e = m->start[o]; e < m->start[o + 1]; e++) {
            const vector *row = x + m->input[e] * stride;
            float weight = m->weight[e];
            for (int b = 0; b < count; b++) sum[b] += row[b] * weight;
        }
        vector *to = y + m->target[o] * stride;
        for (int b = 0; b < count; b++) {
            if (mode == ADD) to[b] += sum[b];
            else if (mode == PUT) to[b] = sum[b];
            else to[b] = choose(sum[b] <= 0.0f, all(0.0f), sum[b]);
        }
    }
}

/* A map of whole rows. */
ALWAYS void apply(const map *m, const vector *x, vector *y, size_t stride, int mode) {
    size_t v = 0;
    for (; v + BLOCK <= stride; v += BLOCK) apply_block(m, x + v, y + v, stride, BLOCK, mode);
    switch (stride - v) { /* a copy of the loops for each number, which the compiler unrolls */
    case 1: apply_block(m, x + v, y + v, stride, 1, mode); break;
    case 2: apply_block(m, x + v, y + v, stride, 2, mode); break;
    case 3: apply_block(m, x + v, y + v, stride, 3, mode); break;
    case 4: apply_block(m, x + v, y + v, stride, 4, mode); break;
    case 5: apply_block(m, x + v, y + v, stride, 5, mode); break;
    case 6: apply_block(m, x + v, y + v, stride, 6, mode); break;
    case 7: apply_block(m, x + v, y + v, stride, 7, mode); break;
    }
}

FASTEST static void put(const map *m, const vector *x, vector *y, size_t stride) { apply(m, x, y, stride, PUT); }
FASTEST static void put_positive(const map *m, const vector *x, vector *y, size_t stride) {
    apply(m, x, y, stride, PUT_POSITIVE);
}
FASTEST static void add(const map *m, const vector *x, vector *y, size_t stride) { apply(m, x, y, stride, ADD); }

/* One head on one input of `size` vectors a row: `scores` [key][query] are its logits, then what each key counts. */
FASTEST
static void attend(const vector *q, const vector *k, const vector *v, vector *z, int d_head, int length, int size,
                   size_t stride, int causal, vector *scores, vector *total) {
    memset(scores, 0, sizeof(vector) * length * size);
    for (int d = 0; d < d_head; d++)
        for (int b = 0; b < size; b++) {
            if (empty((words)k[d * stride + b])) continue;
            for (int t = b * LANES; t < length && t < (b + 1) * LANES; t++) {
                float key = ((const float *)(k + d * stride))[t];
                if (key == 0.0f) continue;
                for (int p = 0; p < size; p++) scores[t * size + p] += q[d * stride + p] * key;
            }
        }
    if (causal)
        for (int t = 1; t < length; t++)
            for (int p = 0; p < t; p++) ((float *)(scores + t * size))[p] = -INFINITY;
    for (int p = 0; p < size; p++) {
        vector most = scores[p], sum = all(0.0f);
        for (int t = 1; t < length; t++) most = choose(scores[t * size + p] <= most, most, scores[t * size + p]);
        for (int t = 0; t < length; t++) {
            vector score = scores[t * size + p] - most;
            words full = score == 0.0f, part = ~(full | (score < SMALLEST));
            vector share = empty(part) ? choose(full, all(1.0f), all(0.0f)) : exponential(score);
            scores[t * size + p] = share;
            sum += share;
        }
        total[p] = sum;
    }
    for (int d = 0; d < d_head; d++) {
        vector *to = z + d * stride;
        memset(to, 0, sizeof(vector) * size);
        for (int b = 0; b < size; b++) {
            if (empty((words)v[d * stride + b])) continue;
            for (int t = b * LANES; t < length && t < (b + 1) * LANES; t++) {
                float value = ((const float *)(v + d * stride))[t];
                if (value == 0.0f) continue;
                for (int p = 0; p < size; p++) to[p] += scores[t * size + p] * value;
            }
        }
        for (int p = 0; p < size; p++) to[p] /= total[p];
    }
}

/* The stream of some inputs, of `size` vectors a row each. */
static void embed(const network *net, const int64_t *ids, int inputs, int length, int size, vector *stream) {
    size_t stride = (size_t)inputs * size * LANES;
    memset(stream, 0, sizeof(float) * net->width * stride);
    for (int i = 0; i < inputs; i++)
        for (int p = 0; p < length; p++) {
            int64_t id = ids[i * length + p];
            float *lane = (float *)(stream + i * size) + p;
            for (int e = net->tokens.start[id]; e < net->tokens.start[id + 1]; e++)
                lane[net->tokens.dimension[e] * stride] = net->tokens.value[e];
            for (int e = net->positions.start[p]; e < net->positions.start[p + 1]; e++)
                lane[net->positions.dimension[e] * stride] += net->positions.value[e];
        }
}

/* What the readings keep of the logits, a row of `kept` numbers per position; whether some logit is not a number. */
FASTEST
static int read_out(const vector *logits, const reading *readings, int count, int kept, int inputs, int length, int size,
                    float *out) {
    size_t stride = (size_t)inputs * size;
    words bad = {0};
    for (int i = 0; i < inputs; i++)
        for (int v = 0; v < size; v++) {
            int place = 0, positions = length - v * LANES < LANES ? length - v * LANES : LANES;
            float *to = out + ((size_t)i * length + v * LANES) * kept;
            for (int r = 0; r < count; r++) {
                vector most = all(-INFINITY), number = all(0.0f);
                for (int c = readings[r].first; c < readings[r].last; c++) {
                    vector value = logits[c * stride + i * size + v];
                    bad |= value != value;
                    words more = value > most;
                    most = choose(more, value, most);
                    number = choose(more, all((float)(c - readings[r].first)), number);
                    if (!readings[r].largest) {
                        for (int p = 0; p < positions; p++) to[p * kept + place] = value[p];
                        place++;
                    }
                }
                if (readings[r].largest) {
                    for (int p = 0; p < positions; p++) to[p * kept + place] = number[p];
                    place++;
                }
            }
        }
    int any = 0;
    for (int p = 0; p < LANES; p++) any |= bad[p];
    return any != 0;
}

/* Memory of a pass. */
typedef struct {
    vector *stream, *q, *k, *v, *z, *neurons, *logits, *scores, *total;
} memory;

static void run_layers(const network *net, int inputs, int length, int size, const memory *m) {
    size_t stride = (size_t)inputs * size;
    for (int l = 0; l < net->layers; l++) {
        const layer *at = net->layer + l;
        if (at->heads) {
            put(&at->query, m->stream, m->q, stride);
            put(&at->key, m->stream, m->k, stride);
            put(&at->value, m->stream, m->v, stride);
            for (int h = 0; h < at->heads; h++)
                for (int i = 0; i < inputs; i++) {
                    size_t from = h * at->d_head * stride + (size_t)i * size;
                    attend(m->q + from, m->k + from, m->v + from, m->z + from, at->d_head, length, size, stride,
                           net->causal, m->scores, m->total);
                }
            add(&at->output, m->z, m->stream, stride);
        }
        if (at->neurons) {
            put_positive(&at->in, m->stream, m->neurons, stride);
            add(&at->out, m->neurons, m->stream, stride);
        }
    }
    put(&net->unembed, m->stream, m->logits, stride);
}

/* All inputs; how often some logit was not a number, or -1 without memory. */
static Py_ssize_t run_network(const network *net, const int64_t *ids, Py_ssize_t inputs, int length,
                              const reading *readings, int count, int kept, float *out) {
    int size = (length + LANES - 1) / LANES, at_once = ROW / LANES / size > 1 ? ROW / LANES / size : 1;
    if (at_once > inputs) at_once = inputs ? (int)inputs : 1;
    size_t stride = (size_t)at_once * size, heads = 0, neurons = 0, scores = (size_t)length * size;
    for (int l = 0; l < net->layers; l++) {
        const layer *at = net->layer + l;
        size_t columns = (size_t)at->heads * at->d_head;
        if (columns > heads) heads = columns;
        if ((size_t)at->neurons > neurons) neurons = at->neurons;
    }
    size_t rows = net->width + 4 * heads + neurons + net->unembed.outputs;
    char *held = malloc(sizeof(vector) * (rows * stride + scores + size + 1));
    if (!held) return -1;
    memory m;
    m.stream = (vector *)(held + (sizeof(vector) - (uintptr_t)held % sizeof(vector)));
    m.q = m.stream + net->width * stride;
    m.k = m.q + heads * stride;
    m.v = m.k + heads * stride;
    m.z = m.v + heads * stride;
    m.neurons = m.z + heads * stride;
    m.logits = m.neurons + neurons * stride;
    m.scores = m.logits + net->unembed.outputs * stride;
    m.total = m.scores + scores;
    Py_ssize_t bad = 0;
    for (Py_ssize_t first = 0; first < inputs; first += at_once) {
        int now = inputs - first < at_once ? (int)(inputs - first) : at_once;
        embed(net, ids + first * length, now, length, size, m.stream);
        run_layers(net, now, length, size, &m);
        bad += read_out(m.logits, readings, count, kept, now, length, size, out + first * length * kept);
    }
    free(held);
    return bad;
}

/* Python: a network is a capsule, which owns what it was loaded from. */

#define NAME "tracr.network"

static void unload(PyObject *capsule) {
    network *net = PyCapsule_GetPointer(capsule, NAME);
    free(net->layer);
    free(net->packed);
    free(net);
}

static PyObject *load(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer words, numbers;
    if (!PyArg_ParseTuple(arguments, "y*y*", &words, &numbers)) return NULL;
    network *net = calloc(1, sizeof(network));
    char *packed = malloc(words.len + numbers.len);
    layer *layers = malloc(sizeof(layer) * (((const int32_t *)words.buf)[1] + 1));
    if (net && packed && layers) {
        memcpy(packed, words.buf, words.len);
        memcpy(packed + words.len, numbers.buf, numbers.len);
        cursor at = {(const int32_t *)packed, (const float *)(packed + words.len)};
        net->packed = packed;
        net->width = *take_words(&at, 1);
        net->layers = *take_words(&at, 1);
        net->causal = *take_words(&at, 1);
        net->tokens = take_table(&at);
        net->positions = take_table(&at);
        net->layer = layers;
        for (int l = 0; l < net->layers; l++) layers[l] = take_layer(&at);
        net->unembed = take_map(&at);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&numbers);
    PyObject *capsule = net && packed && layers ? PyCapsule_New(net, NAME, unload) : PyErr_NoMemory();
    if (!capsule) {
        free(layers);
        free(packed);
        free(net);
    }
    return capsule;
}

/* How often some logit was not a number, or -1 with an exception. There is room for `size` numbers. */
static Py_ssize_t run_checked(const network *net, const Py_buffer *readings, const int64_t *ids, Py_ssize_t inputs,
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
    Py_BEGIN_ALLOW_THREADS
    bad = run_network(net, ids, inputs, (int)length, reads, count, columns, out);
    Py_END_ALLOW_THREADS
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
    const network *net = PyCapsule_GetPointer(capsule, NAME);
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

/* Put the ids of a list of tokens behind `bos`; 0 if something is not among the `known`. */
static int encode(PyObject *list, PyObject *known, int64_t bos, Py_ssize_t length, int64_t *ids) {
    if (!PyList_Check(list) || PyList_Size(list) != length) return 0;
    *ids++ = bos;
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *token = PyList_GetItem(list, i);
        if (!token) return 0;
        Py_INCREF(token); /* comparing tokens may run Python */
        PyObject *id = PyDict_GetItemWithError(known, token);
        *ids++ = id ? PyLong_AsLongLong(id) : -1;
        Py_DECREF(token);
        if (!id) return 0;
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
static PyObject *answer_plain(const network *net, const Py_buffer *readings, PyObject *known, int64_t bos,
                              const meaning *output, PyObject *tokens, Py_ssize_t inputs, Py_ssize_t length, int batch) {
    Py_ssize_t row = length + 1, places = inputs * row;
    int64_t *ids = malloc(sizeof(int64_t) * places + sizeof(float) * places * output->kept);
    if (!ids) return PyErr_NoMemory();
    float *kept = (float *)(ids + places);
    PyObject *found = NULL;
    int plain = 1;
    for (Py_ssize_t i = 0; plain && i < inputs; i++) {
        PyObject *input = batch ? PyList_GetItem(tokens, i) : tokens;
        plain = input && encode(input, known, bos, length, ids + i * row);
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
    if (count != 7) {
        PyErr_SetString(PyExc_TypeError, "answer(network, readings, known, bos, values, middles, tokens)");
        return NULL;
    }
    const network *net = PyCapsule_GetPointer(arguments[0], NAME);
    int64_t bos = PyLong_AsLongLong(arguments[3]);
    Py_buffer readings, middles = {0};
    if (!net || PyErr_Occurred() || PyObject_GetBuffer(arguments[1], &readings, PyBUF_SIMPLE)) return NULL;
    int numerical = arguments[5] != Py_None;
    if (numerical && PyObject_GetBuffer(arguments[5], &middles, PyBUF_SIMPLE)) {
        PyBuffer_Release(&readings);
        return NULL;
    }
    const reading *only = readings.buf;
    meaning output = {arguments[4], numerical ? middles.buf : NULL, middles.len / (Py_ssize_t)sizeof(double),
                      only->largest ? 1 : only->last - only->first};
    PyObject *tokens = arguments[6], *found = NULL;
    Py_ssize_t inputs = PyList_Check(tokens) ? PyList_Size(tokens) : 0;
    PyObject *first = inputs ? PyList_GetItem(tokens, 0) : NULL;
    int batch = first && PyList_Check(first);
    Py_ssize_t length = batch ? PyList_Size(first) : inputs;
    if (length > 0 && length < net->positions.rows)
        found = answer_plain(net, &readings, arguments[2], bos, &output, tokens, batch ? inputs : 1, length, batch);
    if (numerical) PyBuffer_Release(&middles);
    PyBuffer_Release(&readings);
    if (!found && !PyErr_Occurred()) {
        found = Py_None;
        Py_INCREF(found);
    }
    return found;
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, "A network from the integers and numbers that `kernel.py` packs."},
    {"run", run, METH_VARARGS,
     "run(network, readings, ids, length, out): fill `out`; how often some logit was not a number."},
    {"answer", (PyCFunction)(void (*)(void))answer, METH_FASTCALL,
     "answer(network, readings, known, bos, values, middles, tokens): the output for a list of tokens, or a list of such "
     "lists of one length, if they all are `known`; None for anything else."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", "The forward pass in C.", 0, methods, 0, 0, 0, 0};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&module); }
