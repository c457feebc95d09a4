import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR, Finite, Interval } from "../src/core/domains.js";
import { evaluate, mean } from "../src/core/program.js";

const VALUES = ["a", "b", "0", "1", "0.5", "None"].map((text, key) => ({
  text,
  key,
  number: key > 1 && key < 5 ? Number(text) : null,
  isNone: text === "None",
}));
const [A, B, ZERO, ONE, HALF, NONE] = VALUES;

/** A program over tokens a and b: s-ops [id, op, domain], selectors [id, ...]. */
function program(sops, selectors = [], causal = false) {
  const all = [
    [0, { kind: "tokens" }, [A, B]],
    [1, { kind: "indices" }, [0, 1, 2].map((x) => ({ text: `${x}`, number: x, key: 100 + x }))],
    ...sops,
  ];
  return {
    causal,
    lengths: [1, 3],
    values: VALUES,
    sops: new Map(
      all.map(([id, op, domain]) => [id, { id, op, domain: Array.isArray(domain) ? new Finite(domain) : domain }]),
    ),
    selectors: new Map(selectors.map((selector) => [selector.id, { counts: [0, 1, 2, 3], ...selector }])),
  };
}

const isA = [2, { kind: "lookup", inner: 0, table: [1, 0] }, [ZERO, ONE]];
const before = { id: 10, kind: "table", keys: 1, queries: 1, table: ["000", "100", "110"] };
const same = { id: 11, kind: "table", keys: 0, queries: 0, table: ["10", "01"] };
const text = (p, id, tokens, patches) => {
  const { codes } = evaluate(p, tokens, patches);
  return [...codes.get(id)].map((code) => p.sops.get(id).domain.text(code));
};

test("tables, widths, means and their default", () => {
  const p = program(
    [
      isA,
      [3, { kind: "aggregation", selector: 10, value: 2, default: 5, copies: false }, [ZERO, HALF, ONE, NONE]],
      [4, { kind: "width", selector: 11 }, [ZERO, ONE, { text: "2", number: 2, key: 9 }]],
    ],
    [before, same],
  );
  assert.deepEqual(text(p, 3, [0, 1, 1]), ["None", "1", "0.5"]);
  assert.deepEqual(text(p, 4, [0, 1, 1]), ["1", "2", "2"]);
});

test("means are exact, in any order", () => {
  assert.equal(mean([1e16, 1, -1e16]), 1 / 3);
  assert.equal(mean([1, -1e16, 1e16]), 1 / 3);
  assert.equal(mean([0.1, 0.2, 0.3]), mean([0.3, 0.2, 0.1]));
  assert.equal(mean([2]), 2);
});

test("a causal mask hides keys to the right", () => {
  const width = [4, { kind: "width", selector: 11 }, [ZERO, ONE, { text: "2", number: 2, key: 9 }]];
  assert.deepEqual(text(program([width], [same], true), 4, [0, 1, 0]), ["1", "1", "2"]);
});

test("composite selectors: and, or, not, nested", () => {
  const parts = [
    before,
    same,
    { id: 12, kind: "and", parts: [10, 11] },
    { id: 13, kind: "not", parts: [12] },
    { id: 14, kind: "or", parts: [12, 13] },
  ];
  const widths = [12, 13, 14].map((selector) => [
    selector + 100,
    { kind: "width", selector },
    [0, 1, 2, 3].map((x) => ({ text: `${x}`, number: x, key: 200 + x })),
  ]);
  const p = program(widths, parts);
  assert.deepEqual(text(p, 112, [0, 1, 0]), ["0", "0", "1"]);
  assert.deepEqual(text(p, 113, [0, 1, 0]), ["3", "3", "2"]);
  assert.deepEqual(text(p, 114, [0, 1, 0]), ["3", "3", "3"]);
});

test("a predicate that raises makes the whole input an error, inside a combination and behind the mask too", () => {
  const raising = { id: 10, kind: "table", keys: 0, queries: 0, table: ["1e", "11"] };
  const width = (selector) => [4, { kind: "width", selector }, [ZERO, ONE]];
  assert.equal(evaluate(program([width(10)], [raising]), [0, 0]).errors.length, 2); // a width of 2 is not in the domain
  assert.ok(evaluate(program([width(10)], [raising], true), [0, 1]).errors.length);
  assert.equal(evaluate(program([width(10)], [raising], true), [0]).errors.length, 0);
  const both = program([width(11)], [raising, { id: 11, kind: "or", parts: [10, 10] }]);
  assert.ok(evaluate(both, [0, 1]).errors.length);
});

test("None alone is copied, among others an error", () => {
  const maybe = [2, { kind: "lookup", inner: 0, table: [1, 0] }, [ONE, NONE]];
  const mean = (selector) => [
    3,
    { kind: "aggregation", selector, value: 2, default: 2, copies: false },
    [ZERO, ONE, NONE],
  ];
  assert.deepEqual(text(program([maybe, mean(10)], [before]), 3, [0, 1]), ["0", "None"]);
  assert.ok(
    evaluate(program([maybe, mean(10)], [before]), [0, 1, 1]).errors.some(
      (error) => error.sop === 3 && error.position === 2,
    ),
  );
});

test("words are copied, several of them are an error", () => {
  const copy = [3, { kind: "aggregation", selector: 10, value: 0, default: 5, copies: true }, [A, B, NONE]];
  assert.deepEqual(text(program([copy], [before]), 3, [1, 0]), ["None", "b"]);
  assert.equal(evaluate(program([copy], [before]), [1, 0, 0]).codes.get(3)[2], ERROR);
});

test("sums, and errors that spread", () => {
  const sum = [
    3,
    {
      kind: "linear",
      terms: [
        [2, 0.5],
        [1, 2],
      ],
      constant: -1,
    },
    new Interval({ low: -9, high: 9 }),
  ];
  const p = program([isA, sum]);
  assert.deepEqual([...evaluate(p, [0, 1]).codes.get(3)], [-0.5, 1]);
  const failing = program([
    [2, { kind: "lookup", inner: 0, table: [ERROR, 0] }, [ZERO]],
    [3, { kind: "lookup", inner: 2, table: [0] }, [ONE]],
  ]);
  assert.deepEqual(evaluate(failing, [1, 0]).errors, [
    { sop: 2, position: 1 },
    { sop: 3, position: 1 },
  ]);
});

test("a patch replaces a value, and the rest follows", () => {
  const p = program(
    [isA, [3, { kind: "aggregation", selector: 10, value: 2, default: 5, copies: false }, [ZERO, HALF, ONE, NONE]]],
    [before],
  );
  assert.deepEqual(text(p, 3, [0, 1, 1], [{ sop: 2, position: 1, code: 1 }]), ["None", "1", "1"]);
});

test("a patch that leads where no input does is an error", () => {
  const one = { ...before, counts: [0, 1] };
  const p = program(
    [isA, [3, { kind: "aggregation", selector: 10, value: 2, default: 5, copies: true }, [ZERO, ONE, NONE]]],
    [one],
  );
  assert.ok(evaluate(p, [0, 1, 1], [{ sop: 2, position: 0, code: 0 }]).errors.length); // two keys where one was proved
  const interval = new Interval({ low: 0, high: 0.5, none: false });
  const half = program([isA, [3, { kind: "linear", terms: [[2, 0.5]], constant: 0 }, interval]]);
  assert.deepEqual(evaluate(half, [0], [{ sop: 2, position: 0, code: 0 }]).errors, []);
  const twice = program([isA, [3, { kind: "linear", terms: [[2, 1]], constant: 0 }, interval]]);
  assert.deepEqual(evaluate(twice, [1], [{ sop: 2, position: 0, code: 1 }]).errors, [{ sop: 3, position: 0 }]);
});
