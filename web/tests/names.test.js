import assert from "node:assert/strict";
import { test } from "node:test";
import { componentNames, count, listed, placeName, stageName } from "../src/view/names.js";
import { brief } from "../src/view/cell_text.js";

const head = (layer, number) => ({ kind: "head", layer, head: number });

test("sub-layers and places in words", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 5].map((stage) => stageName(stage, 5)),
    ["embedding", "attention 0", "MLP 0", "attention 1", "output"],
  );
  assert.equal(placeName("blocks.0.attn.1.q"), "head 1 of attention 0 (query)");
  assert.equal(placeName("blocks.2.mlp"), "MLP 2");
  assert.equal(placeName("unembed"), "unembedding");
});

test("lists, counts, and heads of one layer together", () => {
  assert.equal(listed(["a", "b", "a", "c"]), "a, b and c");
  assert.equal(count(1, "row") + count(1234, "row"), "1 row1,234 rows");
  assert.equal(
    componentNames([head(0, 0), head(0, 1), head(1, 0), { kind: "neurons", layer: 1, neurons: [0, 3] }]),
    "2 heads of attention 0, head 0 of attention 1 and MLP 1",
  );
});

test("values fit their cells", () => {
  const texts = [
    { text: "0.3333333333333333" },
    { text: "True" },
    { text: "2.5", raw: 2.4999 },
    { text: "-0.5" },
    { text: "(1, 2)" },
    { text: "12.25" },
  ];
  assert.deepEqual(
    texts.map((held) => brief(held, 4)),
    [".33", "T", "2.5", "−.5", "(1, 2)", "12.3"],
  );
  assert.equal(brief({ text: "12.25" }, 3), "12");
});
