/* The Python module of the forward pass in C (`forward.h`); `kernel.py` calls it. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "coding.h"
#include "forward.h"
#include "network.h"
#include "pack.h"
#include "unpack.h"

#define NAME "tracr.network"
#define SPARE 4000000 /* the most bytes of memory to keep for the next call */
#define QUICK 100000  /* with fewer products than this the lock of Python is not released */

/* Whether a buffer from Python is an array of a type. */
#define HOLDS(buffer, type) \
    (!((size_t)(buffer)->len % sizeof(type)) && !((uintptr_t)(buffer)->buf % _Alignof(type)))

/* The contents of the capsule that Python holds. */
typedef struct {
    network *net;
    int threads;    /* the most to use */
    memory *spare;  /* the memory of the last call, for the next, which may reuse its shares */
    dictionary tokens;
} loaded;

static void discard_loaded(loaded *model) {
    discard(model->net);
    free_block(model->spare);
    discard_dictionary(&model->tokens);
    free(model);
}

static void unload(PyObject *capsule) { discard_loaded(PyCapsule_GetPointer(capsule, NAME)); }

static PyObject *pack(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer weights, sizes;
    packing all = {0};
    PyObject *packed = NULL;
    if (!PyArg_ParseTuple(arguments, "y*y*p", &weights, &sizes, &all.causal)) return NULL;
    int good = HOLDS(&weights, float) && HOLDS(&sizes, int32_t);
    if (!good) all.wrong = "its arrays do not hold 32 bits each";
    if (good && pack_model(&all, sizes.buf, sizes.len / (Py_ssize_t)sizeof(int32_t), weights.buf,
                           weights.len / (Py_ssize_t)sizeof(float)))
        packed = Py_BuildValue("y#y#", (const char *)all.words.item, (Py_ssize_t)all.words.count * 4,
                               all.numbers.item ? (const char *)all.numbers.item : "",
                               (Py_ssize_t)all.numbers.count * 4);
    else if (all.wrong)
        PyErr_Format(PyExc_ValueError, "no model to pack: %s", all.wrong);
    else
        PyErr_NoMemory();
    discard_packing(&all);
    PyBuffer_Release(&weights);
    PyBuffer_Release(&sizes);
    return packed;
}

static PyObject *load(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer words, numbers;
    int threads;
    PyObject *ids, *capsule = NULL;
    const char *wrong = NULL;
    if (!PyArg_ParseTuple(arguments, "y*y*O!i", &words, &numbers, &PyDict_Type, &ids, &threads)) return NULL;
    loaded *model = calloc(1, sizeof(loaded));
    if (model) {
        model->threads = threads;
        model->net = read_network(words.buf, words.len, numbers.buf, numbers.len, &wrong);
        if (make_dictionary(&model->tokens, ids) && model->net) capsule = PyCapsule_New(model, NAME, unload);
        if (!capsule) discard_loaded(model);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&numbers);
    if (wrong) return PyErr_Format(PyExc_ValueError, "no packed network: %s", wrong);
    return capsule || PyErr_Occurred() ? capsule : PyErr_NoMemory();
}

/* The number of kept numbers per position; -1 with an exception if the readings are outside the model's logits. */
static int columns_of(const network *net, const Py_buffer *readings) {
    const reading *all = readings->buf, *end = all + readings->len / (Py_ssize_t)sizeof(reading);
    int64_t columns = 0;
    int good = HOLDS(readings, reading);
    for (const reading *r = all; good && r < end; r++) {
        good = 0 <= r->first && r->first <= r->last && r->last <= net->logits;
        columns += r->largest ? 1 : r->last - r->first;
        good = good && columns <= INT32_MAX;
    }
    if (!good) PyErr_Format(PyExc_ValueError, "the readings are not of %d logits", net->logits);
    return good ? (int)columns : -1;
}

/* Whether the model has these ids and this many positions; sets an exception if not. */
static int has_inputs(const network *net, const int64_t *ids, Py_ssize_t count, Py_ssize_t length) {
    if (length < 1 || length > net->positions.rows) {
        PyErr_Format(PyExc_IndexError, "%zd positions, the model has %d", length, net->positions.rows);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= net->tokens.rows) {
            PyErr_Format(PyExc_IndexError, "id %lld, the model has ids below %d", (long long)ids[i], net->tokens.rows);
            return 0;
        }
    return 1;
}

/* The number of inputs with a NaN logit, or -1 with an exception. There is room for `size` numbers. */
static Py_ssize_t run_checked(loaded *model, const Py_buffer *readings, const int64_t *ids, Py_ssize_t inputs,
                              Py_ssize_t length, float *out, Py_ssize_t size) {
    const network *net = model->net;
    int columns = columns_of(net, readings), count = (int)(readings->len / (Py_ssize_t)sizeof(reading));
    Py_ssize_t kept;
    if (columns < 0 || !has_inputs(net, ids, inputs * length, length)) return -1;
    if (__builtin_mul_overflow(inputs * length, columns, &kept) || kept != size) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not fit together");
        return -1;
    }
    Py_ssize_t bad;
    job whole = {net, ids, inputs, (int)length, readings->buf, count, columns, out, model->spare, model->threads, 0};
    model->spare = NULL; /* another thread allocates its own */
    if (worth(&whole) < QUICK) bad = run_parts(&whole);
    else {
        Py_BEGIN_ALLOW_THREADS
        bad = run_parts(&whole);
        Py_END_ALLOW_THREADS
    }
    if (model->spare || (whole.memory && whole.memory->bytes > SPARE)) free_block(whole.memory);
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
    if (model && (length < 1 || tokens % length || !HOLDS(&ids, int64_t) || !HOLDS(&out, float)))
        PyErr_SetString(PyExc_ValueError, "the arrays are not ids of inputs of this length, and room for numbers");
    else if (model)
        bad = run_checked(model, &readings, ids.buf, tokens / length, length, out.buf,
                          out.len / (Py_ssize_t)sizeof(float));
    PyBuffer_Release(&readings);
    PyBuffer_Release(&ids);
    PyBuffer_Release(&out);
    return bad < 0 ? NULL : PyLong_FromSsize_t(bad);
}

/* The outputs for inputs of one length. NULL with an exception on an error; NULL without one if they are not plain. */
static PyObject *answer_plain(loaded *model, const Py_buffer *readings, int64_t bos, const meaning *output,
                              PyObject *given, Py_ssize_t inputs, Py_ssize_t length, int batch) {
    Py_ssize_t places, room;
    if (__builtin_mul_overflow(inputs, length + 1, &places) ||
        __builtin_mul_overflow(places, (Py_ssize_t)sizeof(int64_t) + (Py_ssize_t)sizeof(float) * output->kept, &room))
        return PyErr_NoMemory();
    int64_t *ids = malloc(room);
    if (!ids) return PyErr_NoMemory();
    float *kept = (float *)(ids + places);
    PyObject *found = NULL;
    int plain = encode_all(&model->tokens, given, batch, bos, inputs, length, ids);
    PyErr_Clear(); /* the error of tokens that cannot be looked up */
    if (plain && run_checked(model, readings, ids, inputs, length + 1, kept, places * output->kept) == 0)
        found = batch ? decode_all(output, kept, inputs, length) : decode(output, kept + output->kept, length);
    free(ids);
    return found;
}

/* The output for a text, a list of tokens, or a list of lists of one length; NULL for any other input. */
static PyObject *answer_given(loaded *model, const Py_buffer *readings, int64_t bos, const meaning *output,
                              PyObject *given) {
    if (!PyList_CheckExact(given) && !PyUnicode_CheckExact(given)) return NULL;
    Py_ssize_t length = PySequence_Size(given), inputs = 1;
    PyObject *first = length && PyList_CheckExact(given) ? PyList_GetItem(given, 0) : NULL;
    int batch = first && PyList_CheckExact(first);
    if (batch) {
        inputs = length;
        length = PyList_Size(first);
    }
    if (length < 1 || length >= model->net->positions.rows) return NULL;
    return answer_plain(model, readings, bos, output, given, inputs, length, batch);
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
    meaning output = {arguments[3], numerical ? middles.buf : NULL, middles.len / (Py_ssize_t)sizeof(double),
                      columns_of(model->net, &readings)};
    PyObject *found = NULL;
    int numbered = !numerical && output.values != Py_None; /* values are found by index */
    int good = output.kept > 0 && HOLDS(&middles, double);
    if (good && (!numbered || ((const reading *)readings.buf)->largest))
        found = answer_given(model, &readings, bos, &output, arguments[5]);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "the arrays do not say what an output is");
    if (numerical) PyBuffer_Release(&middles);
    PyBuffer_Release(&readings);
    if (!found && !PyErr_Occurred()) {
        found = Py_None;
        Py_INCREF(found);
    }
    return found;
}

static PyMethodDef methods[] = {
    {"pack", pack, METH_VARARGS,
     "pack(weights, sizes, causal): the integers and the numbers of a network, from all weights of a model."},
    {"load", load, METH_VARARGS,
     "load(words, numbers, ids, threads): a network from what `pack` packs, and a dict of its tokens' ids."},
    {"run", run, METH_VARARGS,
     "run(network, readings, ids, length, out): fill `out`; how often some logit was not a number."},
    {"answer", (PyCFunction)(void (*)(void))answer, METH_FASTCALL,
     "answer(network, readings, bos, values, middles, tokens): the output for a text or a list of tokens, or for a list "
     "of lists of one length, if all have ids; None for anything else."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", "The forward pass in C.", 0, methods, 0, 0, 0, 0};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&module); }
