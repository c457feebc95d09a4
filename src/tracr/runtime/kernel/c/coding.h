/* Converts Python's tokens to ids, and the kept part of the logits to Python's values: `Vocabulary.encode` and
   `Output.decode` for plain input. Without it these take most of the time of a call: see `benchmarks/answering.py`. */

#ifndef TRACR_CODING_H
#define TRACR_CODING_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>

/* A token that was looked up before, and its id. */
typedef struct {
    PyObject *token;
    int64_t id;
} met;

/* All tokens. */
typedef struct {
    PyObject *ids; /* a dict of them */
    met *met;      /* a cache: at each place the last token whose address has this hash */
    size_t places; /* a power of two */
} dictionary;

/* Makes a dictionary from a dict of ids; returns whether there was enough memory. */
static int make_dictionary(dictionary *made, PyObject *ids) {
    Py_INCREF(ids);
    made->ids = ids;
    made->places = 64;
    while (made->places < 4 * (size_t)PyDict_Size(ids)) made->places *= 2;
    made->met = calloc(made->places, sizeof(met));
    return made->met != NULL;
}

static void discard_dictionary(dictionary *old) {
    Py_XDECREF(old->ids);
    for (size_t place = 0; old->met && place < old->places; place++) Py_XDECREF(old->met[place].token);
    free(old->met);
}

/* The id of a token, or -1. Often the same object was looked up before; only texts and integers are cached, because
   they cannot change. The caller holds a reference to the token: comparing it may run Python. */
static int64_t id_of(const dictionary *known, PyObject *token) {
    met *last = known->met + ((uintptr_t)token / 16 * 0x9E3779B1u >> 7 & (known->places - 1));
    if (last->token == token) return last->id;
    PyObject *found = PyDict_GetItemWithError(known->ids, token);
    int64_t id = found ? PyLong_AsLongLong(found) : -1;
    if (found && (PyUnicode_CheckExact(token) || PyLong_CheckExact(token))) {
        PyObject *before = last->token;
        Py_INCREF(token);
        *last = (met){token, id};
        Py_XDECREF(before);
    }
    return id;
}

/* Writes `bos` and then the ids of an input, a list of tokens or a text; 0 if it is not such an input of this length.
   Looking up a token may run Python, which may change the list: therefore a reference to the token is held. */
static int encode(const dictionary *known, PyObject *input, int64_t bos, Py_ssize_t length, int64_t *ids) {
    if (PySequence_Size(input) != length) return 0;
    *ids++ = bos;
    for (Py_ssize_t i = 0; i < length; i++, ids++) {
        PyObject *token = PySequence_GetItem(input, i);
        *ids = token ? id_of(known, token) : -1;
        Py_XDECREF(token);
        if (*ids < 0) return 0;
    }
    return 1;
}

/* Writes the ids of one input, or of a batch of inputs of one length; returns whether all are plain inputs. */
static int encode_all(const dictionary *known, PyObject *given, int batch, int64_t bos, Py_ssize_t inputs,
                      Py_ssize_t length, int64_t *ids) {
    if (!batch) return encode(known, given, bos, length, ids);
    for (Py_ssize_t i = 0; i < inputs; i++) {
        PyObject *input = PySequence_GetItem(given, i);
        int plain = input && PyList_CheckExact(input) && encode(known, input, bos, length, ids + i * (length + 1));
        Py_XDECREF(input);
        if (!plain) return 0;
    }
    return 1;
}

/* How to decode an output from the kept part of its logits, `kept` numbers per position. */
typedef struct {
    PyObject *values;  /* all values; Py_None if the value is the number itself */
    double *middles;   /* midpoints between ascending values; NULL if the index of the value was kept */
    Py_ssize_t between, kept;
} meaning;

static PyObject *value_of(const meaning *output, const float *numbers) {
    int none = output->kept > 1 && numbers[1] > 0.5f;
    PyObject *found = Py_None;
    if (output->values == Py_None && !none) return PyFloat_FromDouble(numbers[0]);
    if (output->values != Py_None) {
        Py_ssize_t low = 0, high = output->between;
        if (!output->middles) low = (Py_ssize_t)numbers[0];
        else if (none) low = PyTuple_Size(output->values) - 1; /* `None` is after the numbers */
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

/* The outputs of all inputs; a new list. */
static PyObject *decode_all(const meaning *output, const float *kept, Py_ssize_t inputs, Py_ssize_t length) {
    PyObject *found = PyList_New(inputs);
    for (Py_ssize_t i = 0; found && i < inputs; i++) {
        PyObject *list = decode(output, kept + (i * (length + 1) + 1) * output->kept, length);
        if (!list) Py_CLEAR(found);
        else PyList_SetItem(found, i, list);
    }
    return found;
}

#endif
