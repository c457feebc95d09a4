import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR, Finite, Interval, UNREACHED, shortNumber } from "../src/core/domains.js";

const value = (text, number, key, isNone = false) => ({ text, number, key, isNone });
const thirds = new Finite([
  value("1.0", 1, 0),
  value("0.0", 0, 1),
  value("0.3333333333333333", 1 / 3, 2),
  value("None", null, 3, true),
]);

test("numbers snap to the values they are, and to nothing else", () => {
  assert.equal(thirds.snap(1 / 3 + 1e-12), 2);
  assert.equal(thirds.snap(0.34), UNREACHED);
  assert.equal(thirds.snap(NaN), 3);
  assert.equal(new Finite([value("a", null, 0)]).snap(NaN), ERROR);
});

test("the nearest value, ends and midpoints included", () => {
  assert.deepEqual(
    [-5, 0.1, 1 / 6, 0.17, 0.9, 7].map((x) => thirds.nearest(x)),
    [1, 1, 1, 2, 0, 0],
  );
  assert.equal(new Finite([value("a", null, 0)]).nearest(1), -1);
});

test("the string None is not None", () => {
  const domain = new Finite([value("None", null, 0), value("None", null, 1, true)]);
  assert.equal(domain.none, 1);
  assert.equal(domain.numeric, false);
});

test("equal values have one code", () => {
  const domain = new Finite([value("True", 1, 4)]);
  assert.equal(domain.codeOf(value("1", 1, 4)), 0);
  assert.equal(domain.codeOf(value("2", 2, 5)), ERROR);
});

test("values that differ by rounding count as one", () => {
  const domain = new Finite([
    value("0.6", 0.6, 0),
    value("0.6000000000000001", 0.6000000000000001, 1),
    value("0.61", 0.61, 2),
  ]);
  assert.ok(domain.same(0, 1));
  assert.ok(!domain.same(0, 2));
});

test("an interval keeps numbers as they are", () => {
  const domain = new Interval({ low: 0, high: 9, none: true });
  assert.equal(domain.snap(4.5), 4.5);
  assert.equal(domain.text(NaN), "None");
  assert.ok(domain.same(NaN, NaN) && !domain.same(NaN, 0));
});

test("numbers in few characters", () => {
  assert.deepEqual(
    [1 / 3, 2, -0.5, 1e-7, 0].map((x) => shortNumber(x)),
    ["0.333", "2", "−0.5", "1e-7", "0"],
  );
});
