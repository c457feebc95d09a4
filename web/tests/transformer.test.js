import assert from "node:assert/strict";
import { test } from "node:test";
import { Sparse, Transformer } from "../src/core/transformer.js";

const sparse = (shape, entries = {}) => ({
  shape,
  at: Object.keys(entries).map(Number),
  values: Object.values(entries),
});

/** Two tokens and BOS, two directions: a head that copies direction 0 of every key into direction 1, then 2 neurons. */
function tiny(causal) {
  const none = { W_Q: sparse([1, 2, 1]), b_Q: sparse([1, 1]), W_K: sparse([1, 2, 1]), b_K: sparse([1, 1]) };
  const layer = {
    ...none,
    W_V: sparse([1, 2, 1], { 0: 1 }),
    b_V: sparse([1, 1]),
    W_O: sparse([1, 1, 2], { 1: 1 }),
    b_O: sparse([2]),
  };
  const mlp = {
    W_in: sparse([2, 2], { 2: 1, 3: -1 }),
    b_in: sparse([2], { 1: 1 }),
    W_out: sparse([2, 2], { 0: 1, 2: 10 }),
    b_out: sparse([2]),
  };
  return new Transformer(
    {
      W_E: sparse([3, 2], { 0: 1, 2: 3 }),
      W_pos: sparse([3, 2]),
      W_U: sparse([2, 1], { 0: 1 }),
      layers: [{ ...layer, ...mlp }],
    },
    { causal },
  );
}

test("uniform attention averages over all keys", () => {
  const run = tiny(false).run([2, 0, 1]);
  assert.deepEqual(
    [...run.patterns[0][0]].map((x) => x.toFixed(4)),
    Array(9).fill("0.3333"),
  );
  assert.equal(run.streams[1][1].toFixed(4), (4 / 3).toFixed(4));
});

test("with a causal mask over those to the left only", () => {
  const run = tiny(true).run([2, 0, 1]);
  assert.deepEqual(
    [...run.patterns[0][0]].map((x) => Number(x.toFixed(2))),
    [1, 0, 0, 0.5, 0.5, 0, 0.33, 0.33, 0.33],
  );
  assert.deepEqual([run.streams[1][1], run.streams[1][3]], [0, 0.5]);
});

test("neurons, biases and the unembedding", () => {
  const run = tiny(true).run([2, 0]);
  assert.equal(run.streams[2][2], 1 + 0.5 + 10 * 0.5); // stream + relu(x) + 10 relu(1 - x), x = 0.5
  assert.deepEqual([...run.logits], [run.streams[2][0], run.streams[2][2]]);
});

test("an edit changes what comes later", () => {
  const model = tiny(true);
  const run = model.run([2, 0], (stage, stream) => {
    if (stage === 0) stream[2] = 5;
  });
  assert.equal(run.streams[1][3], 2.5);
});

test("slices of a stack", () => {
  const stack = new Sparse(sparse([2, 2, 2], { 1: 7, 6: 8 }));
  assert.deepEqual([...stack.slice(0).dense()], [0, 7, 0, 0]);
  assert.deepEqual([...stack.slice(1).dense()], [0, 0, 8, 0]);
});
