/* Vectors of lanes, rows of vectors, and operations on them. */

#ifndef TRACR_VECTORS_H
#define TRACR_VECTORS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "network.h"

#define LANES 8         /* lanes of a vector */
#define BLOCK 8         /* vectors that stay in registers while the weights of an output are read */
#define AT_ONCE 4       /* keys to process together, without waiting for each other */
#define SMALLEST -87.33655f /* exp of a smaller number counts as 0: it is below the smallest normal number, 2^-126 */

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t words __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef int64_t half __attribute__((vector_size(LANES * sizeof(int32_t) / 2)));

#define ALWAYS static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define FASTEST __attribute__((target_clones("avx2", "default")))
#else
#define FASTEST
#endif

ALWAYS int vectors(int lanes) { return (lanes + LANES - 1) / LANES; }

ALWAYS vector all(float value) { return (vector){0} + value; }

ALWAYS vector only(words where, vector x) { return (vector)((words)x & where); }

ALWAYS vector choose(words where, vector yes, vector no) { return (vector)(((words)yes & where) | ((words)no & ~where)); }

/* The numbers, with negative ones replaced by 0. */
ALWAYS vector positive(vector x) { return only(~(x <= 0.0f), x); }

/* Whether no bit is set. */
ALWAYS int empty(words x) {
    half part[2];
    memcpy(part, &x, sizeof x);
    part[0] |= part[1];
    return !(part[0][0] | part[0][1]);
}

/* exp of numbers up to 0: 2^n times the series of the remainder, which is at most log(2)/2 from 0. exp(0) is 1. */
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

/* Rows of vectors; each begins `stride` vectors after the one before. */
typedef struct {
    vector *first;
    size_t stride;
} rows;

/* What to do with the result of a map: put it, put its positive part, or add it. */
enum { PUT, PUT_POSITIVE, ADD };

/* Applies a map to `count` vectors of each row. */
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
            else to[b] = positive(sum[b]);
        }
    }
}

/* Applies a map to the first `size` vectors of each row. */
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

/* The same for a map listed by input: inputs that are zero, as most coordinates of a code, cost nothing. */
ALWAYS void spread(const map *m, rows x, rows y, int size, int mode) {
    for (int o = 0; o < m->outputs; o++)
        for (int v = 0; v < size; v++) y.first[m->target[o] * y.stride + v] = all(m->bias[o]);
    for (int i = 0; i < m->inputs; i++)
        for (int v = 0; v < size; v++) {
            vector value = x.first[m->source[i] * x.stride + v];
            if (empty((words)value)) continue;
            for (int e = m->start[i]; e < m->start[i + 1]; e++)
                y.first[m->input[e] * y.stride + v] += value * m->weight[e];
        }
    for (int o = 0; o < m->outputs && mode == PUT_POSITIVE; o++)
        for (int v = 0; v < size; v++) {
            vector *to = y.first + m->target[o] * y.stride + v;
            *to = positive(*to);
        }
}

FASTEST static void put(const map *m, rows x, rows y, int size) {
    if (m->inputs) spread(m, x, y, size, PUT);
    else apply(m, x, y, size, PUT);
}
FASTEST static void put_positive(const map *m, rows x, rows y, int size) {
    if (m->inputs) spread(m, x, y, size, PUT_POSITIVE);
    else apply(m, x, y, size, PUT_POSITIVE);
}
FASTEST static void add(const map *m, rows x, rows y, int size) { apply(m, x, y, size, ADD); }

/* The largest score of each query; the scores of a query are `size` vectors apart. */
ALWAYS vector largest(const vector *scores, int keys, int size) {
    vector most[AT_ONCE]; /* independent of each other, for speed */
    for (int k = 0; k < AT_ONCE; k++) most[k] = scores[0];
    for (int t = 0; t < keys; t += AT_ONCE)
        for (int k = 0; k < AT_ONCE; k++) {
            vector score = scores[(t + k) * size];
            most[k] = choose(score <= most[k], most[k], score);
        }
    for (int k = 1; k < AT_ONCE; k++) most[0] = choose(most[k] <= most[0], most[0], most[k]);
    return most[0];
}

/* A score, neither 0 nor vanishing, and its exponential. */
typedef struct {
    float score, share;
} sample;

/* The exponentials of the scores of some keys. Most scores are 0, vanish, or equal the last other score. */
ALWAYS void exponentials(vector *scores, int size, vector most, sample *last) {
    words explained = ~(words){0};
    vector share[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++) {
        vector score = scores[k * size] - most;
        words full = score == 0.0f, same = score == last->score;
        explained &= full | same | (score < SMALLEST);
        share[k] = (vector)((words)only(full, all(1.0f)) | (words)only(same, all(last->share)));
    }
    if (empty(~explained))
        for (int k = 0; k < AT_ONCE; k++) scores[k * size] = share[k];
    else
        for (int k = 0; k < AT_ONCE; k++) {
            vector score = scores[k * size] - most, found = exponential(score);
            scores[k * size] = found;
            for (int i = 0; i < LANES; i++)
                if (score[i] < 0.0f && found[i] > 0.0f) *last = (sample){score[i], found[i]};
        }
}

/* Replaces scores [key][query] by exponentials times `times`, with their sums in `total`. There must be room for
   `AT_ONCE` - 1 more keys. */
FASTEST
static void softmax(vector *scores, const float *times, int keys, int size, vector *total) {
    sample last = {1.0f, 0.0f};
    for (int p = 0; p < (AT_ONCE - 1) * size; p++) scores[keys * size + p] = all(-INFINITY);
    for (int p = 0; p < size; p++) {
        vector most = largest(scores + p, keys, size), sum = all(0.0f);
        for (int t = 0; t < keys; t += AT_ONCE) exponentials(scores + t * size + p, size, most, &last);
        for (int t = 0; t < keys; t++) sum += scores[t * size + p] *= times[t];
        total[p] = sum;
    }
}

/* The result of a head: the `values`, `width` per key, weighted with these shares of the `total`; `row` has the row in
   `z` of each number. */
FASTEST
static void read_values(const map *values, int width, const vector *shares, int size, const vector *total, rows z,
                        const int32_t *row) {
    for (int d = 0; d < width; d++)
        for (int p = 0; p < size; p++) z.first[row[d] * z.stride + p] = all(0.0f);
    for (int t = 0; t < values->outputs; t++)
        for (int e = values->start[t]; e < values->start[t + 1]; e++) {
            vector *to = z.first + row[values->input[e]] * z.stride;
            for (int p = 0; p < size; p++) to[p] += shares[t * size + p] * values->weight[e];
        }
    for (int p = 0; p < size; p++) {
        if (empty(total[p] != 1.0f)) continue;
        for (int d = 0; d < width; d++) z.first[row[d] * z.stride + p] /= total[p];
    }
}

#endif
