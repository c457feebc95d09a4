/* The pass in C (`forward.h`) for Python; `kernel.py` calls it. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "network.h"
#include "vectors.h"
#include "forward.h"

#define NAME "tracr.network"
#define SPARE 4000000 /* bytes of memory that are worth keeping for the next call */
#define QUICK 100000  /* products that are not worth letting other threads run meanwhile */

/* A token that was met, and its id. */
typedef struct {
    PyObject *token;
    int64_t id;
} met;

/* What Python holds, in a capsule. */
typedef struct {
    network *net;
    int threads;    /* to run at most */
    memory *spare;  /* of the last call, for the next: what is kept there may serve it */
    PyObject *ids;  /* a dict of all tokens */
    met *met;       /* at each place the last token that was met whose address leads there */
    size_t places;  /* a power of two */
} loaded;

static void discard_loaded(loaded *model) {
    discard(model->net);
    free(model->spare);
    Py_XDECREF(model->ids);
    for (size_t place = 0; model->met && place < model->places; place++) Py_XDECREF(model->met[place].token);
    free(model->met);
    free(model);
}

static void unload(PyObject *capsule) { discard_loaded(PyCapsule_GetPointer(capsule, NAME)); }

static PyObject *load(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer words, numbers;
    int threads;
    PyObject *ids, *capsule = NULL;
    if (!PyArg_ParseTuple(arguments, "y*y*O!i", &words, &numbers, &PyDict_Type, &ids, &threads)) return NULL;
    loaded *model = calloc(1, sizeof(loaded));
    if (model) {
        Py_INCREF(ids);
        model->ids = ids;
        model->threads = threads;
        model->places = 64;
        while (model->places < 4 * (size_t)PyDict_Size(ids)) model->places *= 2;
        model->met = calloc(model->places, sizeof(met));
        model->net = read_network(words.buf, words.len, numbers.buf, numbers.len);
        if (model->met && model->net) capsule = PyCapsule_New(model, NAME, unload);
        if (!capsule) discard_loaded(model);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&numbers);
    return capsule || PyErr_Occurred() ? capsule : PyErr_NoMemory();
}

/* How often some logit was not a number, or -1 with an exception. There is room for `size` numbers. */
static Py_ssize_t run_checked(loaded *model, const Py_buffer *readings, const int64_t *ids, Py_ssize_t inputs,
                              Py_ssize_t length, float *out, Py_ssize_t size) {
    const network *net = model->net;
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
    job whole = {net, ids, inputs, (int)length, reads, count, columns, out, model->spare, model->threads, 0};
    model->spare = NULL; /* another thread makes its own */
    if (worth(&whole) < QUICK) bad = run_parts(&whole);
    else {
        Py_BEGIN_ALLOW_THREADS
        bad = run_parts(&whole);
        Py_END_ALLOW_THREADS
    }
    if (model->spare || (whole.memory && whole.memory->bytes > SPARE)) free(whole.memory);
    else model->spare = whole.memory;
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
    loaded *model = PyCapsule_GetPointer(capsule, NAME);
    if (model && (length < 1 || tokens % length))
        PyErr_SetString(PyExc_ValueError, "the ids are not inputs of this length");
    else if (model)
        bad = run_checked(model, &readings, ids.buf, tokens / length, length, out.buf,
                          out.len / (Py_ssize_t)sizeof(float));
    PyBuffer_Release(&readings);
    PyBuffer_Release(&ids);
    PyBuffer_Release(&out);
    return bad < 0 ? NULL : PyLong_FromSsize_t(bad);
}

/* The id of a token, or -1. Often it is an object that was met before; what it is cannot change if it is a text or an
   integer. */
static int64_t id_of(const loaded *model, PyObject *token) {
    met *last = model->met + ((uintptr_t)token / 16 * 0x9E3779B1u >> 7 & (model->places - 1));
    if (last->token == token) return last->id;
    Py_INCREF(token); /* comparing tokens may run Python */
    PyObject *found = PyDict_GetItemWithError(model->ids, token), *before = token;
    int64_t id = found ? PyLong_AsLongLong(found) : -1;
    if (found && (PyUnicode_CheckExact(token) || PyLong_CheckExact(token))) {
        before = last->token;
        *last = (met){token, id};
    }
    Py_XDECREF(before);
    return id;
}

/* Put the ids of a list of tokens behind `bos`; 0 if it is no such list. */
static int encode(const loaded *model, PyObject *list, int64_t bos, Py_ssize_t length, int64_t *ids) {
    if (!PyList_Check(list) || PyList_Size(list) != length) return 0;
    *ids++ = bos;
    for (Py_ssize_t i = 0; i < length; i++, ids++) {
        PyObject *token = PyList_GetItem(list, i);
        *ids = token ? id_of(model, token) : -1;
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
static PyObject *answer_plain(loaded *model, const Py_buffer *readings, int64_t bos, const meaning *output,
                              PyObject *tokens, Py_ssize_t inputs, Py_ssize_t length, int batch) {
    Py_ssize_t row = length + 1, places = inputs * row;
    int64_t *ids = malloc(sizeof(int64_t) * places + sizeof(float) * places * output->kept);
    if (!ids) return PyErr_NoMemory();
    float *kept = (float *)(ids + places);
    PyObject *found = NULL;
    int plain = 1;
    for (Py_ssize_t i = 0; plain && i < inputs; i++) {
        PyObject *input = batch ? PyList_GetItem(tokens, i) : tokens;
        plain = input && encode(model, input, bos, length, ids + i * row);
    }
    PyErr_Clear(); /* of tokens that cannot be looked up */
    if (plain && run_checked(model, readings, ids, inputs, row, kept, places * output->kept) == 0) {
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
    loaded *model = PyCapsule_GetPointer(arguments[0], NAME);
    int64_t bos = PyLong_AsLongLong(arguments[2]);
    Py_buffer readings, middles = {0};
    if (!model || PyErr_Occurred() || PyObject_GetBuffer(arguments[1], &readings, PyBUF_SIMPLE)) return NULL;
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
    if (length > 0 && length < model->net->positions.rows)
        found = answer_plain(model, &readings, bos, &output, tokens, batch ? inputs : 1, length, batch);
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
