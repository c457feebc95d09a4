// The forward pass on one input, with the model's weights in float32. As in tracr/runtime/forward.py.

/** A matrix that lists its nonzero entries. */
export class Sparse {
  constructor({ shape, at, values }) {
    this.shape = shape;
    this.at = Uint32Array.from(at);
    this.values = Float32Array.from(values);
    this.columns = shape[shape.length - 1];
  }

  /** One of the matrices of a stack, such as a head's. */
  slice(number) {
    const size = this.shape.slice(1).reduce((a, b) => a * b, 1);
    const at = [],
      values = [];
    this.at.forEach((place, i) => {
      if (Math.floor(place / size) === number) {
        at.push(place % size);
        values.push(this.values[i]);
      }
    });
    return new Sparse({ shape: this.shape.slice(1), at, values });
  }

  /** All numbers, with the zeros. */
  dense() {
    const all = new Float32Array(this.shape.reduce((a, b) => a * b, 1));
    this.at.forEach((place, i) => (all[place] = this.values[i]));
    return all;
  }

  /** Call f(row, column, value) for every nonzero entry. */
  each(f) {
    this.at.forEach((place, i) => f(Math.floor(place / this.columns), place % this.columns, this.values[i]));
  }
}

/** x [length, rows] @ matrix [rows, columns] + bias, accumulated in float64 and rounded once. */
function project(x, length, matrix, bias) {
  const [rows, columns] = matrix.shape;
  const sums = new Float64Array(length * columns);
  if (bias)
    for (let p = 0; p < length; p++) bias.at.forEach((place, i) => (sums[p * columns + place] = bias.values[i]));
  matrix.each((row, column, value) => {
    for (let p = 0; p < length; p++) sums[p * columns + column] += x[p * rows + row] * value;
  });
  return Float32Array.from(sums);
}

function add(a, b) {
  return a.map((x, i) => x + b[i]);
}

const RELU = (x) => Math.max(x, 0);
const ABOVE = [1.1283791, 0.19040728, 0.052748833, 0.003765653, 0.00028488375, 2.0500836e-6],
  BELOW = [1, 0.5020768, 0.11410945, 0.014969287, 0.0011625447, 3.809173e-5]; // as in tracr/natural/activations.py

function erf(x) {
  const near = Math.max(-3.92, Math.min(3.92, x));
  const polynomial = (terms) => terms.reduceRight((sum, term) => sum * near * near + term, 0);
  return Math.max(-1, Math.min(1, (near * polynomial(ABOVE)) / polynomial(BELOW)));
}

/** The functions of neurons, by name. */
const ACTIVATIONS = {
  relu: RELU,
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  gelu_new: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};
const EPSILON = 1e-5; // of a layer norm

/** A layer norm without gain and bias, at every position. */
function normed(stream, width) {
  const out = new Float32Array(stream.length);
  for (let start = 0; start < stream.length; start += width) {
    const row = stream.subarray(start, start + width);
    const mean = row.reduce((sum, x) => sum + x, 0) / width;
    const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / width;
    row.forEach((x, d) => (out[start + d] = (x - mean) / Math.sqrt(variance + EPSILON)));
  }
  return out;
}

/** The weights of a model, ready to run. Compiled models have no layer norms, and ReLU. */
export class Transformer {
  constructor(weights, { causal, layer_norm = false, activation = "relu" }) {
    const sparse = (part) => new Sparse(part);
    this.causal = causal;
    this.norm = layer_norm ? (stream) => normed(stream, this.width) : (stream) => stream;
    this.activate = ACTIVATIONS[activation];
    this.W_E = sparse(weights.W_E);
    this.W_pos = sparse(weights.W_pos);
    this.W_U = sparse(weights.W_U);
    this.width = this.W_E.columns;
    this.layers = weights.layers.map((given) => {
      const layer = Object.fromEntries(Object.entries(given).map(([name, part]) => [name, sparse(part)]));
      const [heads, d_head] = layer.b_Q.shape;
      layer.heads = Array.from({ length: heads }, (_, head) =>
        Object.fromEntries(
          ["W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O"].map((name) => [name, layer[name].slice(head)]),
        ),
      );
      layer.d_head = d_head;
      layer.neurons = layer.W_in.shape[1];
      return layer;
    });
    this.embedding = this.W_E.dense();
    this.positions = this.W_pos.dense();
  }

  /** The number of stages: the embedding, every attention and every MLP. */
  get stages() {
    return 1 + 2 * this.layers.length;
  }

  /**
   * Run on token ids, BOS first. `edit(stage, stream)` may change the stream in place after each stage.
   * Returns the stream after every stage, the attention patterns [layer][head], and the logits.
   */
  run(ids, edit = () => {}) {
    const length = ids.length,
      { width } = this;
    let stream = new Float32Array(length * width);
    ids.forEach((id, p) => {
      for (let d = 0; d < width; d++)
        stream[p * width + d] = this.embedding[id * width + d] + this.positions[p * width + d];
    });
    edit(0, stream);
    const streams = [stream],
      patterns = [];
    this.layers.forEach((layer, number) => {
      patterns.push([]);
      const read = this.norm(stream);
      if (layer.heads.length) {
        const total = layer.heads.reduce(
          (sum, head) => {
            const { pattern, out } = this.attend(head, layer.d_head, read, length);
            patterns[number].push(pattern);
            return sum.map((x, i) => x + out[i]);
          },
          new Float64Array(length * width),
        );
        stream = add(stream, Float32Array.from(total));
      } else stream = stream.slice();
      edit(1 + 2 * number, stream);
      streams.push(stream);
      if (layer.neurons) {
        const hidden = project(this.norm(stream), length, layer.W_in, layer.b_in).map(this.activate);
        stream = add(stream, project(hidden, length, layer.W_out, layer.b_out));
      } else stream = stream.slice();
      edit(2 + 2 * number, stream);
      streams.push(stream);
    });
    return { length, width, streams, patterns, logits: project(this.norm(stream), length, this.W_U) };
  }

  attend(head, size, stream, length) {
    const [q, k, v] = ["Q", "K", "V"].map((part) => project(stream, length, head[`W_${part}`], head[`b_${part}`]));
    const pattern = new Float32Array(length * length);
    const z = new Float32Array(length * size);
    for (let i = 0; i < length; i++) {
      const last = this.causal ? i : length - 1;
      const scores = [];
      for (let j = 0; j <= last; j++) {
        let score = 0;
        for (let d = 0; d < size; d++) score += q[i * size + d] * k[j * size + d];
        scores.push(Math.fround(score));
      }
      const top = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - top));
      const total = weights.reduce((a, b) => a + b, 0);
      weights.forEach((weight, j) => (pattern[i * length + j] = weight / total));
      for (let d = 0; d < size; d++) {
        let sum = 0;
        for (let j = 0; j <= last; j++) sum += pattern[i * length + j] * v[j * size + d];
        z[i * size + d] = sum;
      }
    }
    return { pattern, out: project(z, length, head.W_O) };
  }
}
