import assert from "node:assert/strict";
import { test } from "node:test";
import { matricesOf } from "../src/core/matrices.js";
import { loadModel } from "../src/core/model.js";
import { State } from "../src/state.js";
import { describe, streamCaption } from "../src/view/cell_text.js";
import { explain } from "../src/view/explain.js";
import { computes } from "../src/view/names.js";

const sparse = (shape, entries = {}) => ({
  shape,
  at: Object.keys(entries).map(Number),
  values: Object.values(entries),
});

/**
 * Tokens a and b in dimensions 0 and 1, BOS in 2. The MLP writes `is_a` into dimension 0 in the place of `a`, which it
 * clears: neuron 0 reads a, neuron 1 takes it away. Folded: `folded`, which is read from tokens.
 */
function data() {
  const layer = {
    ...{ W_Q: sparse([0, 3, 0]), b_Q: sparse([0, 0]), W_K: sparse([0, 3, 0]), b_K: sparse([0, 0]) },
    ...{ W_V: sparse([0, 3, 0]), b_V: sparse([0, 0]), W_O: sparse([0, 0, 3]), b_O: sparse([3]) },
    W_in: sparse([3, 2], { 0: 1, 1: 1 }),
    b_in: sparse([2]),
    W_out: sparse([2, 3], { 0: 5, 3: -1 }),
    b_out: sparse([3]),
  };
  const dimension = (label, slot, from, until, writer, special = false) => {
    return { label, slot, from, until, special, writer, readers: [] };
  };
  const group = (label, sop, rows, rest = {}) => {
    const plain = { scratch: false, numerical: false, constant: false, codes: null, dropped: [], settable: true };
    return { label, sop, rows, ...plain, ...rest };
  };
  const part = (id, kind, rest) => {
    const plain = { layer: null, head: null, neurons: null, computes: id, writes: [], clears: [], selector: null };
    return { id, kind, ...plain, ...rest };
  };
  const edge = (source, target, number, cancelled) => {
    return { source, target, input: "in", group: number, plumbing: false, cancelled };
  };
  return {
    ...{ format: "tracr explorer", version: 1, name: "x", causal: false, lengths: [1, 3], bos: "bos", pad: "pad" },
    ...{ input: [0, 1], vocab: [0, 1], words: ["a", "b"], none: 6, selectors: [] },
    values: [
      ["a", null, 0],
      ["b", null, 1],
      ["5", 5, 2],
      ["0", 0, 3],
      ["bos", null, 4],
      ["1", 1, 5],
      ["None", null, 6],
    ],
    sops: [
      { id: 0, label: "tokens", op: { kind: "tokens" }, domain: [0, 1], encoding: "categorical", folded: null },
      { id: 1, label: "is_a", op: lookup([0, 1]), domain: [2, 3], encoding: "numerical", folded: null },
      { id: 2, label: "folded", op: lookup([0, 1]), domain: [5, 3], encoding: "numerical", folded: ["tokens"] },
    ],
    lines: ["tokens", "is_a", "folded"].map((label, id) => ({ kind: "sop", id, label, text: "", row: null })),
    outputs: [{ name: "is_a", sop: 1, start: 0, stop: 1 }],
    weights: {
      W_E: sparse([4, 3], { 0: 1, 4: 1, 8: 1 }),
      W_pos: sparse([4, 3]),
      W_U: sparse([3, 1], { 0: 1 }),
      layers: [layer],
    },
    dimensions: [
      dimension("tokens:a", 0, 0, 2, "embed"),
      dimension("tokens:b", 1, 0, null, "embed"),
      dimension("tokens:bos", 2, 0, null, "embed", true),
      dimension("is_a", 0, 2, null, "blocks.0.mlp"),
    ],
    groups: [
      group("tokens", 0, [
        [0, 0],
        [1, 1],
        [2, 4],
      ]),
      group("is_a", 1, [[3, null]], { numerical: true }),
    ],
    components: [
      part("embed", "embedding", { writes: [0] }),
      part("blocks.0.mlp.0", "neurons", { layer: 0, neurons: [0, 1], writes: [1] }),
      part("blocks.0.mlp.1", "neurons", { layer: 0, neurons: [1, 2], clears: [0], computes: "clears tokens" }),
      part("unembed", "unembedding"),
    ],
    edges: [edge(0, 1, 0, false), edge(0, 2, 0, false), edge(1, 3, 1, false), edge(0, 3, 0, true), edge(2, 3, 0, true)],
  };
}

function lookup(table) {
  return { kind: "lookup", inner: 0, table };
}

test("a dimension holds one thing after the other, and each is read in its turn", () => {
  const model = loadModel(data());
  const run = model.run([0, 1]);
  const [tokens, isA] = model.groups;
  const texts = (group, stage) => [0, 1, 2].map((position) => model.read(group, run, stage, position)?.text ?? null);
  assert.deepEqual(texts(tokens, 1), ["bos", "a", "b"]);
  assert.deepEqual(texts(isA, 1), [null, null, null]);
  assert.deepEqual(texts(isA, 2), ["0", "5", "0"]);
  assert.deepEqual(texts(tokens, 2), ["bos", "a", "b"], "what is not b was a: its direction is the only one cleared");
  assert.equal(model.at(tokens.rows[0], run, 2, 1), 0);
  assert.equal(model.at(isA.rows[0], run, 2, 1), 5);
});

test("of several directions that are cleared nothing tells which it was; of none that is left, nothing at all", () => {
  const several = data();
  several.values.push(["c", null, 7]);
  several.groups[0].dropped = [7];
  let model = loadModel(several);
  assert.deepEqual(model.read(model.groups[0], model.run([0]), 2, 1), { code: null, text: "…", oneOf: ["c", "a"] });
  const gone = data();
  gone.dimensions[1].until = 2;
  model = loadModel(gone);
  assert.equal(model.read(model.groups[0], model.run([0, 1]), 2, 1), null);
  assert.equal(model.read(model.groups[0], model.run([0, 1]), 2, 0).text, "bos");
});

test("values in bits: read, set, and what is left of them", () => {
  const coded = data();
  coded.dimensions.slice(0, 2).forEach((dimension, bit) => (dimension.label = `tokens:bit${bit}`));
  coded.groups[0].rows = [
    [0, null],
    [1, null],
    [2, 4],
  ];
  coded.groups[0].codes = [
    [0, [1, 1]],
    [1, [-1, 1]],
  ];
  coded.weights.W_E = sparse([4, 3], { 0: 1, 1: 1, 3: -1, 4: 1, 8: 1 });
  const model = loadModel(coded);
  const [tokens] = model.groups;
  const read = (run, stage) => [0, 1, 2].map((position) => model.read(tokens, run, stage, position)?.text);
  assert.deepEqual(read(model.run([0, 1]), 0), ["bos", "a", "b"]);
  assert.deepEqual(read(model.run([0, 1]), 2), ["bos", "…", "…"]);
  assert.deepEqual(read(model.run([0, 1], [{ sop: 0, position: 0, code: 1 }]), 0), ["bos", "b", "b"]);
  assert.deepEqual(
    tokens.rows.map((row) => row.name),
    ["bit0", "bit1", "bos"],
  );
});

test("weights have the names of their time", () => {
  const model = loadModel(data());
  const names = (part) => matricesOf(model, part).map(({ rows, columns }) => [rows, columns]);
  const [, writes, clears, unembed] = model.components;
  assert.deepEqual(names(writes), [
    [["tokens:a"], ["neuron 0"]],
    [["neuron 0"], ["is_a"]],
  ]);
  assert.deepEqual(names(clears), [
    [["tokens:a"], ["neuron 1"]],
    [["neuron 1"], ["tokens:a"]],
  ]);
  assert.deepEqual(names(unembed), [[["is_a"], ["is_a"]]]);
});

test("a patch stays in its turn: what differs is what is there", () => {
  const model = loadModel(data());
  const state = new State(model, () => {});
  const [tokens, isA] = model.groups;
  state.patch(0, 0, 1);
  assert.deepEqual([...state.now.run.logits], [0, 0, 0]);
  assert.ok(state.differs(tokens, 1, 1) && !state.differs(isA, 1, 1));
  assert.ok(!state.cellDiffers(tokens.rows[0], 2, 1) && state.cellDiffers(isA.rows[0], 2, 1));
  assert.deepEqual(
    model.components.map((part) => state.affected(part)),
    [true, true, true, false],
  );
  state.unpatch();
  state.patch(1, 1, 0);
  assert.deepEqual([...state.now.run.logits], [0, 5, 5]);
  assert.ok(!state.differs(tokens, 2, 2));
});

test("a component that clears is not one that computes the variable", () => {
  const model = loadModel(data());
  const state = new State(model, () => {});
  assert.deepEqual(
    model.componentsOf(0).map((part) => part.id),
    ["embed"],
  );
  state.selectComponent(2);
  assert.equal(state.current.label, "tokens");
  assert.match(computes(model.components[2]), /^clears tokens, after the last reader/);
});

test("in words: turns, what is cleared, what is folded", () => {
  const model = loadModel(data());
  const state = new State(model, () => {});
  const [tokens, isA] = model.groups;
  const said = (group, dimension, stage) =>
    Object.fromEntries(describe(state, { group, dimension }, { stage, position: 1 }).slice(1));
  const a = said(tokens, tokens.rows[0], 2);
  assert.equal(a.value, "cleared; its dimension holds is_a");
  assert.equal(a.dimension, "0 holds tokens:a until MLP 0, then is_a");
  assert.equal(said(isA, isA.rows[0], 0).value, "not written yet; its dimension holds tokens:a");
  assert.equal(said(isA, null, 0).value, "not written yet");
  assert.equal(said(tokens, null, 2)["cleared by"], "MLP 0 (1 of its 2 directions), after its last reader");
  assert.match(explain(model, model.lines[2]), /folded into its readers.*they read tokens instead/);
  assert.match(streamCaption(model), /^3 dimensions for 4 directions of 2 variables/);
});
