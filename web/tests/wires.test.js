import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange, before } from "../src/core/wires.js";

const parts = [0, 0, 1, 2, 3].map((stage, number) => ({ number, stage }));
const edge = (source, target, group) => ({ source, target, group, input: "in" });

test("a variable is one wire, with a lane in every column it passes", () => {
  const { wires, items, columns } = arrange(parts, [edge(0, 2, 7), edge(0, 4, 7), edge(1, 3, 8)], 3);
  assert.equal(wires.length, 2);
  assert.deepEqual(
    wires.map((wire) => [...wire.lanes.keys()]),
    [[1, 2], [1]],
  );
  assert.deepEqual(
    columns.map((column) => column.length),
    [2, 3, 2, 1],
  );
  const [first] = wires;
  assert.equal(before(first, parts, first.readers[0], items), items.get(0));
  assert.equal(before(first, parts, first.readers[1], items), first.lanes.get(2));
});

test("order follows the neighbours: two straight wires do not cross", () => {
  const square = [0, 0, 1, 1].map((stage, number) => ({ number, stage }));
  const { columns } = arrange(square, [edge(0, 3, 1), edge(1, 2, 2)], 1);
  const order = columns.map((column) => column.map((item) => item.part.number));
  assert.ok(
    JSON.stringify(order) === "[[0,1],[3,2]]" || JSON.stringify(order) === "[[1,0],[2,3]]",
    JSON.stringify(order),
  );
});
