/* Packs the weights of a model into the integers and numbers that `unpack.h` reads: lists of the nonzero weights.

   The rows of the kernel's memory are the used dimensions of the residual stream, followed by the computed numbers.
   Constant dimensions become part of biases. Queries, keys and values that depend only on the embedding become tables. */

#ifndef TRACR_PACK_H
#define TRACR_PACK_H

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FEW_SHARES 65536  /* the most attention shares in a table */
#define LEAST_SCORE -87.33655 /* exp of a smaller number counts as 0, as in `vectors.h` */
#define WORTH_SORTING 8   /* a map with more inputs than this, and outputs of each, is listed by input */

/* Memory that is freed when packing ends; what was asked for follows. */
typedef struct held {
    struct held *before;
    double begin[];
} held;

typedef struct {
    int32_t *item;
    int64_t count, room;
} int_list;

typedef struct {
    float *item;
    int64_t count, room;
} float_list;

/* An affine map: its nonzero weights with their inputs and outputs, and a bias for each output. */
typedef struct {
    int outputs, entries;
    int32_t *input, *output;
    float *weight, *bias;
} sparse;

/* Rows for each token and for each position, which add up; `varies` if some row of a position is not 0. */
typedef struct {
    float *tokens, *positions;
    int columns, varies;
} known_rows;

/* Queries, keys and values, with tables for those known from the embedding, and the rows of W_O that are written. */
typedef struct {
    sparse side[3];
    int known[3];
    known_rows rows[3];
    int writes;
    const float **written;
} packed_head;

typedef struct {
    int heads;
    packed_head *head;
    sparse attention, neurons, mlp;
} packed_layer;

/* The arrays of a layer, in the order of `LayerParameters`. */
typedef struct {
    int heads, inside, neurons;
    const float *W[3], *b[3], *W_O, *b_O, *W_in, *b_in, *W_out, *b_out;
} dense_layer;

typedef struct {
    int tokens, positions, width, logits, layers, causal;
    const float *W_E, *W_pos, *W_U;
    dense_layer *layer;
    /* For each dimension of the residual stream: `summed` holds a sum of a token's and a position's number. */
    uint8_t *fixed, *read, *written_once, *summed;
    float *constant;
    int32_t *row;
    int stream, rows, widest;
    int_list words;
    float_list numbers;
    held *last;
    const char *wrong; /* the reason of a refusal; NULL if there was not enough memory */
    jmp_buf stopped;
} packing;

static void stop_packing(packing *p, const char *wrong) {
    p->wrong = wrong;
    longjmp(p->stopped, 1);
}

/* Room for some items, all 0, until packing ends. */
static void *room_for(packing *p, int64_t count, size_t size) {
    held *found = count <= INT32_MAX ? calloc(1, sizeof(held) + (size_t)count * size) : NULL;
    if (!found) stop_packing(p, NULL);
    found->before = p->last;
    p->last = found;
    return found->begin;
}

/* Makes room for more items at the end of a list, whose items have 4 bytes. */
static void *lengthened(packing *p, void *items, int64_t *count, int64_t *room, int64_t more) {
    if (*count + more > INT32_MAX) stop_packing(p, "it has too many weights");
    if (*count + more > *room) {
        *room = 2 * (*count + more);
        void *moved = realloc(items, (size_t)*room * 4);
        if (!moved) stop_packing(p, NULL);
        items = moved;
    }
    *count += more;
    return items;
}

static int32_t *more_words(packing *p, int64_t more) {
    p->words.item = lengthened(p, p->words.item, &p->words.count, &p->words.room, more);
    return p->words.item + p->words.count - more;
}

static float *more_numbers(packing *p, int64_t more) {
    p->numbers.item = lengthened(p, p->numbers.item, &p->numbers.count, &p->numbers.room, more);
    return p->numbers.item + p->numbers.count - more;
}

static void put_word(packing *p, int word) { *more_words(p, 1) = word; }

static void put_words(packing *p, const int32_t *words, int count) {
    if (count) memcpy(more_words(p, count), words, (size_t)count * sizeof(int32_t));
}

static void put_numbers(packing *p, const float *numbers, int count) {
    if (count) memcpy(more_numbers(p, count), numbers, (size_t)count * sizeof(float));
}

/* `count` integers from `first` on. */
static int32_t *ascending_from(packing *p, int first, int count) {
    int32_t *found = room_for(p, count, sizeof(int32_t));
    for (int i = 0; i < count; i++) found[i] = first + i;
    return found;
}

static int any_nonzero(const float *numbers, int count) {
    for (int i = 0; i < count; i++)
        if (numbers[i] != 0) return 1;
    return 0;
}

/* Marks the columns of a matrix in which some number is not 0. */
static void mark_columns(const float *matrix, int64_t rows, int columns, uint8_t *mark) {
    for (int64_t r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) mark[c] |= matrix[r * columns + c] != 0;
}

/* Packs entries, sorted by their owner: the first entry of each owner and the end, their columns, their values. */
static void put_entries(packing *p, int owners, int count, const int32_t *owner, const int32_t *column,
                        const float *value) {
    int32_t *next = room_for(p, (int64_t)owners + 1, sizeof(int32_t));
    for (int e = 0; e < count; e++) next[owner[e] + 1]++;
    for (int o = 0; o < owners; o++) next[o + 1] += next[o];
    put_word(p, owners);
    put_words(p, next, owners + 1);
    int32_t *columns = more_words(p, count);
    float *values = more_numbers(p, count);
    for (int e = 0; e < count; e++) {
        int place = next[owner[e]]++;
        columns[place] = column[e];
        values[place] = value[e];
    }
}

/* Packs for each row its nonzero columns and their values. */
static void put_table(packing *p, const float *rows, int count, int columns) {
    put_word(p, count);
    int32_t entries = 0, *starts = more_words(p, (int64_t)count + 1);
    starts[0] = 0;
    for (int r = 0; r < count; r++) {
        for (int c = 0; c < columns; c++) entries += rows[(int64_t)r * columns + c] != 0;
        starts[r + 1] = entries;
    }
    int32_t *column = more_words(p, entries);
    float *value = more_numbers(p, entries);
    for (int r = 0; r < count; r++)
        for (int c = 0; c < columns; c++)
            if (rows[(int64_t)r * columns + c] != 0) {
                *column++ = c;
                *value++ = rows[(int64_t)r * columns + c];
            }
}

static sparse empty_map(packing *p, int outputs, int64_t entries) {
    sparse made = {outputs, 0, NULL, NULL, NULL, NULL};
    made.input = room_for(p, entries, sizeof(int32_t));
    made.output = room_for(p, entries, sizeof(int32_t));
    made.weight = room_for(p, entries, sizeof(float));
    made.bias = room_for(p, outputs, sizeof(float));
    return made;
}

static void add_entry(sparse *map, int input, int output, float weight) {
    map->input[map->entries] = input;
    map->output[map->entries] = output;
    map->weight[map->entries++] = weight;
}

/* The map of a matrix [input, output] whose rows are these; without a bias, it is 0. */
static sparse map_of_rows(packing *p, const float *const *rows, int inputs, int outputs, const float *bias) {
    int64_t entries = 0;
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs; o++) entries += rows[i][o] != 0;
    sparse made = empty_map(p, outputs, entries);
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs; o++)
            if (rows[i][o] != 0) add_entry(&made, i, o, rows[i][o]);
    if (bias) memcpy(made.bias, bias, (size_t)outputs * sizeof(float));
    return made;
}

static sparse map_of(packing *p, const float *matrix, int inputs, int outputs, const float *bias) {
    const float **rows = room_for(p, inputs, sizeof(float *));
    for (int i = 0; i < inputs; i++) rows[i] = matrix + (int64_t)i * outputs;
    return map_of_rows(p, rows, inputs, outputs, bias);
}

/* A map of the residual stream; constant dimensions are part of its bias. */
static sparse map_of_stream(packing *p, const float *matrix, int outputs, const float *bias) {
    sparse whole = map_of(p, matrix, p->width, outputs, bias);
    double *constant = room_for(p, outputs, sizeof(double));
    int entries = whole.entries;
    whole.entries = 0;
    for (int e = 0; e < entries; e++) {
        if (p->fixed[whole.input[e]]) {
            float product = p->constant[whole.input[e]] * whole.weight[e];
            constant[whole.output[e]] += product;
        } else
            add_entry(&whole, whole.input[e], whole.output[e], whole.weight[e]);
    }
    for (int o = 0; o < outputs && whole.entries < entries; o++) whole.bias[o] = (float)(whole.bias[o] + constant[o]);
    return whole;
}

/* Marks the outputs that can be other than 0. */
static uint8_t *used_outputs(packing *p, const sparse *map) {
    uint8_t *used = room_for(p, map->outputs, 1);
    for (int o = 0; o < map->outputs; o++) used[o] = map->bias[o] != 0;
    for (int e = 0; e < map->entries; e++) used[map->output[e]] = 1;
    return used;
}

/* The map to the marked outputs, renumbered. */
static sparse only_outputs(packing *p, const sparse *map, const uint8_t *kept) {
    int32_t *number = room_for(p, map->outputs, sizeof(int32_t));
    sparse made = empty_map(p, map->outputs, map->entries);
    made.outputs = 0;
    for (int o = 0; o < map->outputs; o++)
        if (kept[o]) {
            made.bias[made.outputs] = map->bias[o];
            number[o] = made.outputs++;
        }
    for (int e = 0; e < map->entries; e++)
        if (kept[map->output[e]]) add_entry(&made, map->input[e], number[map->output[e]], map->weight[e]);
    return made;
}

/* The outputs of a map for some rows [row, dimension], without the bias; summed in double precision. */
static float *outputs_for(packing *p, const sparse *map, const float *rows, int count) {
    float *found = room_for(p, (int64_t)count * map->outputs, sizeof(float));
    double *sum = room_for(p, map->outputs, sizeof(double));
    for (int r = 0; r < count; r++) {
        memset(sum, 0, (size_t)map->outputs * sizeof(double));
        for (int e = 0; e < map->entries; e++)
            sum[map->output[e]] += (double)rows[(int64_t)r * p->width + map->input[e]] * map->weight[e];
        for (int o = 0; o < map->outputs; o++) found[(int64_t)r * map->outputs + o] = (float)sum[o];
    }
    return found;
}

static void add_to_rows(float *rows, int count, int columns, const float *added) {
    for (int r = 0; r < count; r++)
        for (int c = 0; c < columns; c++) rows[(int64_t)r * columns + c] += added[c];
}

/* Rows of tokens and positions; if all positions have the same part, it is moved to the tokens. */
static known_rows apart(packing *p, float *tokens, float *positions, int columns) {
    known_rows found = {tokens, positions, columns, 0};
    for (int s = 1; s < p->positions; s++)
        for (int c = 0; c < columns; c++) found.varies |= positions[(int64_t)s * columns + c] != positions[c];
    if (found.varies || !p->positions) return found;
    add_to_rows(tokens, p->tokens, columns, positions);
    memset(positions, 0, (size_t)p->positions * (size_t)columns * sizeof(float));
    return found;
}

/* The rows of a map that is known from the embedding; biases, which BOS and PAD cancel, are in the tokens. */
static known_rows tabulated(packing *p, const sparse *side) {
    float *tokens = outputs_for(p, side, p->W_E, p->tokens), *positions = outputs_for(p, side, p->W_pos, p->positions);
    add_to_rows(tokens, p->tokens, side->outputs, side->bias);
    return apart(p, tokens, positions, side->outputs);
}

static uint64_t hash_of_token(const known_rows *const *tables, int count, int token) {
    uint64_t hash = 0;
    for (int t = 0; t < count; t++)
        for (int c = 0; c < tables[t]->columns; c++) {
            uint32_t bits;
            memcpy(&bits, tables[t]->tokens + (int64_t)token * tables[t]->columns + c, sizeof bits);
            hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 29;
        }
    return hash;
}

static int same_tokens(const known_rows *const *tables, int count, int one, int other) {
    for (int t = 0; t < count; t++) {
        size_t columns = (size_t)tables[t]->columns;
        const float *rows = tables[t]->tokens;
        if (memcmp(rows + (size_t)one * columns, rows + (size_t)other * columns, columns * sizeof(float))) return 0;
    }
    return 1;
}

/* Numbers the tokens, equal rows of all tables alike, in the order of their first occurrence: fills the number of each
   token and the first token of each number, and returns how many numbers there are. */
static int group_tokens(packing *p, const known_rows *const *tables, int count, int32_t *number, int32_t *first) {
    size_t places = 64;
    while (places < 4 * (size_t)p->tokens) places *= 2;
    int32_t *known = room_for(p, (int64_t)places, sizeof(int32_t)); /* the number at a place, plus 1 */
    int groups = 0;
    for (int token = 0; token < p->tokens; token++) {
        size_t place = hash_of_token(tables, count, token) & (places - 1);
        while (known[place] && !same_tokens(tables, count, token, first[known[place] - 1]))
            place = (place + 1) & (places - 1);
        if (!known[place]) {
            first[groups] = token;
            known[place] = ++groups;
        }
        number[token] = known[place] - 1;
    }
    return groups;
}

/* Marks the dimensions that a layer writes. */
static void mark_written(const packing *p, const dense_layer *layer, uint8_t *mark) {
    mark_columns(layer->W_O, (int64_t)layer->heads * layer->inside, p->width, mark);
    mark_columns(layer->b_O, 1, p->width, mark);
    mark_columns(layer->W_out, layer->neurons, p->width, mark);
    mark_columns(layer->b_out, 1, p->width, mark);
}

/* Finds the dimensions that hold the same number everywhere, and those that hold sums. */
static void find_constants(packing *p) {
    uint8_t *changed = room_for(p, p->width, 1);
    for (int l = 0; l < p->layers; l++) mark_written(p, p->layer + l, changed);
    for (int d = 0; d < p->width; d++) {
        int same = !changed[d] && p->tokens && p->positions;
        for (int t = 1; same && t < p->tokens; t++) same = p->W_E[(int64_t)t * p->width + d] == p->W_E[d];
        for (int s = 1; same && s < p->positions; s++) same = p->W_pos[(int64_t)s * p->width + d] == p->W_pos[d];
        p->fixed[d] = (uint8_t)same;
        if (same) p->constant[d] = p->W_E[d] + p->W_pos[d];
    }
    uint8_t *by_position = room_for(p, p->width, 1);
    mark_columns(p->W_E, p->tokens, p->width, p->summed);
    mark_columns(p->W_pos, p->positions, p->width, by_position);
    for (int d = 0; d < p->width; d++) p->summed[d] &= by_position[d];
}

/* A head without the parts whose product with other weights is 0; returns whether it writes anything. `changed` marks
   the dimensions that earlier layers write. */
static int make_head(packing *p, const dense_layer *layer, int number, const uint8_t *changed, packed_head *made) {
    int inside = layer->inside;
    sparse whole[3];
    uint8_t *kept[3];
    for (int s = 0; s < 3; s++) {
        whole[s] = map_of_stream(p, layer->W[s] + (int64_t)number * p->width * inside, inside,
                                 layer->b[s] + (int64_t)number * inside);
        kept[s] = used_outputs(p, whole + s);
    }
    made->written = room_for(p, inside, sizeof(float *));
    for (int i = 0; i < inside; i++) {
        const float *writes = layer->W_O + ((int64_t)number * inside + i) * p->width;
        kept[0][i] = kept[1][i] &= kept[0][i];
        kept[2][i] &= any_nonzero(writes, p->width);
        if (kept[2][i]) made->written[made->writes++] = writes;
    }
    for (int s = 0; s < 3 && made->writes; s++) {
        made->side[s] = only_outputs(p, whole + s, kept[s]);
        made->known[s] = 1;
        for (int e = 0; e < made->side[s].entries; e++) {
            int dimension = made->side[s].input[e]; /* a table has the parts of a sum apart, which may cancel */
            made->known[s] &= !changed[dimension] && !p->summed[dimension];
        }
        if (made->known[s]) made->rows[s] = tabulated(p, made->side + s);
    }
    return made->writes > 0;
}

static packed_layer make_layer(packing *p, const dense_layer *layer, uint8_t *changed) {
    packed_layer made = {0};
    made.head = room_for(p, layer->heads, sizeof(packed_head));
    for (int h = 0; h < layer->heads; h++)
        if (make_head(p, layer, h, changed, made.head + made.heads)) made.heads++;
        else made.head[made.heads] = (packed_head){0};
    mark_written(p, layer, changed);
    int writes = 0;
    for (int h = 0; h < made.heads; h++) writes += made.head[h].writes;
    const float **rows = room_for(p, writes, sizeof(float *));
    for (int h = 0, at = 0; h < made.heads; at += made.head[h++].writes)
        memcpy(rows + at, made.head[h].written, (size_t)made.head[h].writes * sizeof(float *));
    made.attention = map_of_rows(p, rows, writes, p->width, layer->heads ? layer->b_O : NULL);
    made.neurons = map_of_stream(p, layer->W_in, layer->neurons, layer->b_in);
    made.mlp = map_of(p, layer->W_out, layer->neurons, p->width, layer->neurons ? layer->b_out : NULL);
    return made;
}

static void mark_inputs(packing *p, const sparse *map) {
    for (int e = 0; e < map->entries; e++) p->read[map->input[e]] = 1;
}

/* Gives a row of memory to each dimension that is read, and finds those that only one part of the model writes. */
static void number_dimensions(packing *p, const packed_layer *layers, const sparse *unembed) {
    int32_t *writers = room_for(p, p->width, sizeof(int32_t));
    uint8_t *written[2] = {room_for(p, p->width, 1), room_for(p, p->width, 1)};
    mark_columns(p->W_E, p->tokens, p->width, written[0]);
    mark_columns(p->W_pos, p->positions, p->width, written[1]);
    for (int d = 0; d < p->width; d++) writers[d] = written[0][d] + written[1][d];
    for (int l = 0; l < p->layers; l++) {
        const packed_layer *layer = layers + l;
        for (int h = 0; h < layer->heads; h++)
            for (int s = 0; s < 3; s++)
                if (!layer->head[h].known[s]) mark_inputs(p, layer->head[h].side + s);
        mark_inputs(p, &layer->neurons);
        uint8_t *by_heads = used_outputs(p, &layer->attention), *by_neurons = used_outputs(p, &layer->mlp);
        for (int d = 0; d < p->width; d++) writers[d] += by_heads[d] + by_neurons[d];
    }
    mark_inputs(p, unembed);
    for (int d = 0; d < p->width; d++) {
        p->written_once[d] = writers[d] == 1;
        p->row[d] = p->stream + p->read[d] - 1;
        p->stream += p->read[d];
    }
    p->rows = p->stream;
}

/* Packs the embedding, and the number of kinds of tokens with the kind of each; 0 kinds if the position of a token makes
   a difference. */
static void put_embedding(packing *p, const packed_layer *layers) {
    float *tokens = room_for(p, (int64_t)p->tokens * p->stream, sizeof(float));
    float *positions = room_for(p, (int64_t)p->positions * p->stream, sizeof(float));
    int heads = 0, count = 0;
    for (int d = 0; d < p->width; d++) {
        if (!p->read[d]) continue;
        for (int t = 0; t < p->tokens; t++) tokens[(int64_t)t * p->stream + p->row[d]] = p->W_E[(int64_t)t * p->width + d];
        for (int s = 0; s < p->positions; s++)
            positions[(int64_t)s * p->stream + p->row[d]] = p->W_pos[(int64_t)s * p->width + d];
    }
    known_rows stream = apart(p, tokens, positions, p->stream);
    put_table(p, stream.tokens, p->tokens, p->stream);
    put_table(p, stream.positions, p->positions, p->stream);
    for (int l = 0; l < p->layers; l++) heads += layers[l].heads;
    const known_rows **tables = room_for(p, 3 * (int64_t)heads + 1, sizeof(known_rows *));
    tables[count++] = &stream;
    for (int l = 0; l < p->layers; l++)
        for (int h = 0; h < layers[l].heads; h++)
            for (int s = 0; s < 3; s++)
                if (layers[l].head[h].known[s]) tables[count++] = layers[l].head[h].rows + s;
    int varies = p->causal;
    for (int t = 0; t < count; t++) varies |= tables[t]->varies;
    if (varies) {
        put_word(p, 0);
        return;
    }
    int32_t *kind = room_for(p, p->tokens, sizeof(int32_t)), *first = room_for(p, p->tokens, sizeof(int32_t));
    put_word(p, group_tokens(p, tables, count, kind, first));
    put_words(p, kind, p->tokens);
}

/* Packs the shares of attention between classes of keys and of queries. */
static void put_shares(packing *p, const float *queries, int many_queries, const float *keys, int many_keys, int width) {
    double *scores = room_for(p, many_keys, sizeof(double));
    float *shares = more_numbers(p, (int64_t)many_keys * many_queries);
    for (int q = 0; q < many_queries; q++) {
        double largest = -INFINITY;
        for (int k = 0; k < many_keys; k++) {
            scores[k] = 0;
            for (int i = 0; i < width; i++) scores[k] += (double)keys[k * width + i] * queries[q * width + i];
            if (scores[k] > largest) largest = scores[k];
        }
        for (int k = 0; k < many_keys; k++) {
            double score = scores[k] - largest;
            shares[k * many_queries + q] = score < LEAST_SCORE ? 0 : (float)exp(score);
        }
    }
}

/* Packs the classes of tokens of a known side; returns the row of each class, and how many there are. */
static float *put_classes(packing *p, const packed_head *head, int side, int *count) {
    const known_rows *own = head->rows + side, *tables[2] = {own, own};
    int together = side > 0 && head->known[1] && head->known[2] && !head->rows[1].varies && !head->rows[2].varies;
    if (together) { /* a token's key and value share a class */
        tables[0] = head->rows + 1;
        tables[1] = head->rows + 2;
    }
    int32_t *class_of = room_for(p, p->tokens, sizeof(int32_t)), *first = room_for(p, p->tokens, sizeof(int32_t));
    *count = group_tokens(p, tables, together ? 2 : 1, class_of, first);
    float *rows = room_for(p, (int64_t)*count * own->columns, sizeof(float));
    for (int c = 0; c < *count; c++)
        memcpy(rows + (int64_t)c * own->columns, own->tokens + (int64_t)first[c] * own->columns,
               (size_t)own->columns * sizeof(float));
    put_words(p, class_of, p->tokens);
    put_table(p, rows, *count, own->columns);
    put_table(p, own->positions, p->positions, own->columns);
    return rows;
}

/* Packs a head, whose computed numbers begin at row `free`; returns the next free row. */
static int put_head(packing *p, const packed_head *head, int free) {
    float *classes[3] = {0};
    int count[3] = {0};
    for (int s = 0; s < 3; s++) {
        int width = head->side[s].outputs;
        put_word(p, width);
        put_word(p, head->known[s]);
        if (width > p->widest) p->widest = width;
        if (head->known[s]) classes[s] = put_classes(p, head, s, count + s);
        else {
            put_word(p, free);
            free += width;
        }
    }
    int by_token = classes[0] && classes[1] && !head->rows[0].varies && !head->rows[1].varies;
    int shares = by_token && (int64_t)count[0] * count[1] <= FEW_SHARES;
    put_word(p, shares);
    if (shares) put_shares(p, classes[0], count[0], classes[1], count[1], head->side[0].outputs);
    return free;
}

/* Packs the entries of a map that reads these rows, listed by output. */
static void put_by_output(packing *p, const sparse *map, const int32_t *row) {
    int32_t *rows = room_for(p, map->entries, sizeof(int32_t));
    for (int e = 0; e < map->entries; e++) rows[e] = row[map->input[e]];
    put_word(p, 0);
    put_entries(p, map->outputs, map->entries, map->output, rows, map->weight);
}

/* Packs a map from the residual stream to the rows from `first` on; by input if many inputs have many outputs. */
static void put_computed(packing *p, const sparse *map, int first) {
    int32_t *number = room_for(p, p->width, sizeof(int32_t)), *source = room_for(p, p->width, sizeof(int32_t));
    int inputs = 0;
    for (int e = 0; e < map->entries; e++) number[map->input[e]] = 1;
    for (int d = 0; d < p->width; d++)
        if (number[d]) {
            source[inputs] = p->row[d];
            number[d] = inputs++;
        }
    if (inputs > WORTH_SORTING && map->entries > (int64_t)WORTH_SORTING * inputs) {
        int32_t *owner = room_for(p, map->entries, sizeof(int32_t)), *target = room_for(p, map->entries, sizeof(int32_t));
        for (int e = 0; e < map->entries; e++) {
            owner[e] = number[map->input[e]];
            target[e] = first + map->output[e];
        }
        put_word(p, inputs);
        put_words(p, source, inputs);
        put_entries(p, inputs, map->entries, owner, target, map->weight);
    } else
        put_by_output(p, map, p->row);
    put_word(p, map->outputs);
    put_words(p, ascending_from(p, first, map->outputs), map->outputs);
    put_numbers(p, map->bias, map->outputs);
}

/* Packs a map from some rows that adds to the residual stream, without dimensions that are never read. */
static void put_written(packing *p, const sparse *map, const int32_t *row) {
    uint8_t *kept = used_outputs(p, map);
    int32_t *targets = room_for(p, map->outputs, sizeof(int32_t));
    for (int d = 0, next = 0; d < map->outputs; d++) {
        kept[d] &= p->read[d];
        if (kept[d]) targets[next++] = p->row[d];
    }
    sparse own = only_outputs(p, map, kept);
    put_by_output(p, &own, row);
    put_word(p, own.outputs);
    put_words(p, targets, own.outputs);
    put_numbers(p, own.bias, own.outputs);
}

/* The rows for the results of heads, and the map still to write. A result that is the only content of a dimension is
   stored directly in the row of that dimension. */
static int32_t *in_place(packing *p, sparse *attention, int first, int writes) {
    int32_t *rows = ascending_from(p, first, writes);
    int32_t *of_input = room_for(p, writes, sizeof(int32_t)), *of_output = room_for(p, p->width, sizeof(int32_t));
    for (int e = 0; e < attention->entries; e++) {
        of_input[attention->input[e]]++;
        of_output[attention->output[e]]++;
    }
    int entries = attention->entries;
    attention->entries = 0;
    for (int e = 0; e < entries; e++) {
        int input = attention->input[e], output = attention->output[e];
        int alone = of_input[input] == 1 && of_output[output] == 1 && attention->weight[e] == 1;
        if (alone && attention->bias[output] == 0 && p->read[output] && p->written_once[output])
            rows[input] = p->row[output];
        else add_entry(attention, input, output, attention->weight[e]);
    }
    return rows;
}

/* The computed sides of all heads as one map, whose outputs are one after another. */
static sparse computed_sides(packing *p, const packed_layer *layer) {
    int64_t entries = 0, outputs = 0;
    for (int h = 0; h < layer->heads; h++)
        for (int s = 0; s < 3; s++)
            if (!layer->head[h].known[s]) {
                entries += layer->head[h].side[s].entries;
                outputs += layer->head[h].side[s].outputs;
            }
    if (outputs > INT32_MAX || entries > INT32_MAX) stop_packing(p, "it has too many weights");
    sparse made = empty_map(p, (int)outputs, entries);
    int at = 0;
    for (int h = 0; h < layer->heads; h++)
        for (int s = 0; s < 3; s++) {
            const sparse *side = layer->head[h].side + s;
            if (layer->head[h].known[s]) continue;
            for (int e = 0; e < side->entries; e++) add_entry(&made, side->input[e], at + side->output[e], side->weight[e]);
            memcpy(made.bias + at, side->bias, (size_t)side->outputs * sizeof(float));
            at += side->outputs;
        }
    return made;
}

/* Packs a layer; the rows after the residual stream are free again after attention, and after the MLP. */
static void put_layer(packing *p, packed_layer *layer) {
    sparse sides = computed_sides(p, layer);
    int first = p->stream + sides.outputs, writes = 0, free = p->stream, at = 0;
    for (int h = 0; h < layer->heads; h++) writes += layer->head[h].writes;
    int32_t *rows = in_place(p, &layer->attention, first, writes);
    put_word(p, layer->heads);
    for (int h = 0; h < layer->heads; h++) {
        free = put_head(p, layer->head + h, free);
        put_words(p, rows + at, layer->head[h].writes);
        at += layer->head[h].writes;
    }
    put_computed(p, &sides, p->stream);
    put_written(p, &layer->attention, rows);
    put_computed(p, &layer->neurons, p->stream);
    put_written(p, &layer->mlp, ascending_from(p, p->stream, layer->neurons.outputs));
    if (p->rows < first + writes) p->rows = first + writes;
    if (p->rows < p->stream + layer->neurons.outputs) p->rows = p->stream + layer->neurons.outputs;
}

/* Packs the unembedding; logits that are dimensions of the residual stream are read there. */
static void put_unembedding(packing *p, const sparse *unembed) {
    int32_t *entries = room_for(p, unembed->outputs, sizeof(int32_t));
    int32_t *row = room_for(p, unembed->outputs, sizeof(int32_t));
    uint8_t *computed = room_for(p, unembed->outputs, 1);
    for (int e = 0; e < unembed->entries; e++) {
        entries[unembed->output[e]]++;
        row[unembed->output[e]] = unembed->weight[e] == 1 ? p->row[unembed->input[e]] : -1;
    }
    int next = p->stream;
    for (int o = 0; o < unembed->outputs; o++) {
        computed[o] = entries[o] != 1 || unembed->bias[o] != 0 || row[o] < 0;
        if (computed[o]) row[o] = next++;
    }
    if (p->rows < next) p->rows = next;
    sparse own = only_outputs(p, unembed, computed);
    put_computed(p, &own, p->stream);
    put_word(p, unembed->outputs);
    put_words(p, row, unembed->outputs);
}

/* Puts the sizes of the network in front of its other integers. */
static void put_sizes(packing *p, int heads) {
    int64_t others = p->words.count, count = 6 + (int64_t)p->widest;
    more_words(p, count);
    memmove(p->words.item + count, p->words.item, (size_t)others * sizeof(int32_t));
    int32_t sizes[6] = {p->rows, p->stream, p->layers, heads, p->causal, p->widest};
    memcpy(p->words.item, sizes, sizeof sizes);
    for (int i = 0; i < p->widest; i++) p->words.item[6 + i] = i;
}

static void pack_network(packing *p) {
    find_constants(p);
    uint8_t *changed = room_for(p, p->width, 1);
    packed_layer *layers = room_for(p, p->layers, sizeof(packed_layer));
    int heads = 0;
    for (int l = 0; l < p->layers; l++) {
        layers[l] = make_layer(p, p->layer + l, changed);
        heads += layers[l].heads;
    }
    sparse unembed = map_of_stream(p, p->W_U, p->logits, NULL);
    number_dimensions(p, layers, &unembed);
    put_embedding(p, layers);
    for (int l = 0; l < p->layers; l++) put_layer(p, layers + l);
    put_unembedding(p, &unembed);
    put_sizes(p, heads);
}

/* The next array of a model's weights, of this shape. */
static const float *take_array(packing *p, const float **weights, int64_t *left, int first, int second, int third) {
    int64_t count;
    if (__builtin_mul_overflow((int64_t)first * second, third, &count) || count > *left)
        stop_packing(p, "its weights end too early");
    const float *found = *weights;
    *weights += count;
    *left -= count;
    return found;
}

/* Finds the arrays among all weights, which are one after another. The sizes are those of tokens, positions, dimensions,
   logits, and for each layer its heads, their inside and its neurons. */
static void take_arrays(packing *p, const int32_t *sizes, int64_t count, const float *weights, int64_t left) {
    if (count < 4 || (count - 4) % 3 || count > INT32_MAX) stop_packing(p, "its sizes are not those of layers");
    for (int64_t s = 0; s < count; s++)
        if (sizes[s] < 0) stop_packing(p, "a size is negative");
    p->tokens = sizes[0];
    p->positions = sizes[1];
    p->width = sizes[2];
    p->logits = sizes[3];
    p->layers = (int)((count - 4) / 3);
    p->layer = room_for(p, p->layers, sizeof(dense_layer));
    p->W_E = take_array(p, &weights, &left, p->tokens, p->width, 1);
    p->W_pos = take_array(p, &weights, &left, p->positions, p->width, 1);
    for (int l = 0; l < p->layers; l++) {
        dense_layer *layer = p->layer + l;
        int heads = layer->heads = sizes[4 + 3 * l], inside = layer->inside = sizes[5 + 3 * l];
        int neurons = layer->neurons = sizes[6 + 3 * l];
        for (int s = 0; s < 3; s++) {
            layer->W[s] = take_array(p, &weights, &left, heads, p->width, inside);
            layer->b[s] = take_array(p, &weights, &left, heads, inside, 1);
        }
        layer->W_O = take_array(p, &weights, &left, heads, inside, p->width);
        layer->b_O = take_array(p, &weights, &left, p->width, 1, 1);
        layer->W_in = take_array(p, &weights, &left, p->width, neurons, 1);
        layer->b_in = take_array(p, &weights, &left, neurons, 1, 1);
        layer->W_out = take_array(p, &weights, &left, neurons, p->width, 1);
        layer->b_out = take_array(p, &weights, &left, p->width, 1, 1);
    }
    p->W_U = take_array(p, &weights, &left, p->width, p->logits, 1);
    if (left) stop_packing(p, "its weights go on behind its end");
}

/* Packs a model; returns whether it could. The lists of `p` are then its integers and numbers. */
static int pack_model(packing *p, const int32_t *sizes, int64_t count, const float *weights, int64_t left) {
    if (setjmp(p->stopped)) return 0;
    take_arrays(p, sizes, count, weights, left);
    p->fixed = room_for(p, p->width, 1);
    p->read = room_for(p, p->width, 1);
    p->written_once = room_for(p, p->width, 1);
    p->summed = room_for(p, p->width, 1);
    p->constant = room_for(p, p->width, sizeof(float));
    p->row = room_for(p, p->width, sizeof(int32_t));
    pack_network(p);
    return 1;
}

static void discard_packing(packing *p) {
    while (p->last) {
        held *before = p->last->before;
        free(p->last);
        p->last = before;
    }
    free(p->words.item);
    free(p->numbers.item);
}

#endif
