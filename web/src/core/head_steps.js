// One head at one query, in numbers: scores, softmax, and the weighted sum that it writes. Computed from the stream
// before the head, as the forward pass does.

/**
 * The computation of a head for the query at `position` (BOS is 0), from the run of a model.
 * Returns, for every key it may attend to, `scores` and `weights`; and for the directions of the variables it writes
 * `rows` [{label, parts, sum}]: what each key would write there alone, and the sum of weight times part.
 */
export function headSteps(model, run, part, position) {
  const { transformer } = model;
  const layer = transformer.layers[part.layer],
    head = layer.heads[part.head];
  const stream = run.streams[part.stage - 1];
  const pattern = run.patterns[part.layer][part.head];
  const keys = Array.from({ length: transformer.causal ? position + 1 : run.length }, (_, k) => k);
  const at = (p) => stream.subarray(p * run.width, (p + 1) * run.width);
  const query = vector(at(position), head.W_Q, head.b_Q);
  const scores = keys.map((k) => dot(query, vector(at(k), head.W_K, head.b_K)));
  const weights = keys.map((k) => pattern[position * run.length + k]);
  const written = keys.map((k) => vector(vector(at(k), head.W_V, head.b_V), head.W_O));
  const directions = part.writes.flatMap((number) => model.groups[number].rows);
  const rows = directions.map(({ label, slot }) => {
    const parts = written.map((out) => out[slot]);
    return { label, slot, parts, sum: dot(weights, parts) };
  });
  return { keys, scores, weights, rows };
}

/** x @ matrix + bias. */
function vector(x, matrix, bias) {
  const out = new Float64Array(matrix.columns);
  if (bias) bias.at.forEach((place, i) => (out[place] = bias.values[i]));
  matrix.each((row, column, value) => (out[column] += x[row] * value));
  return out;
}

function dot(a, b) {
  return a.reduce((sum, x, i) => sum + x * b[i], 0);
}
