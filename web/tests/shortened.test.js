// Names that are cut: short, and never two the same.

import assert from "node:assert/strict";
import { test } from "node:test";
import { abbreviated, shortened } from "../src/view/names.js";

test("short names stay, long ones lose their middle", () => {
  assert.deepEqual([...shortened(["hist", "selector_width_2"], 10).values()], ["hist", "select…h_2"]);
});

test("no two labels become the same text, and none is too long", () => {
  const words = ["sequence", "map", "selector", "width", "a", "aggregate", "frac", "bos"];
  let seed = 1;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let round = 0; round < 300; round++) {
    const labels = Array.from({ length: 2 + random(12) }, () =>
      Array.from({ length: 1 + random(4) }, () => words[random(words.length)]).join("_"),
    );
    labels.push(...labels.map((label, i) => `${label}_${i}`), "sequence_map_2_share", "sequence_map_3_share");
    const most = 7 + random(14);
    const texts = shortened(labels, most);
    assert.equal(new Set(texts.values()).size, new Set(labels).size, `${most}: ${[...texts]}`);
    for (const [label, text] of texts) assert.ok(text.length <= Math.max(most, 0) || label === text, `${text} in ${most}`);
  }
});

test("abbreviations are initials, and differ", () => {
  const labels = ["tokens", "sequence_map_2", "sequence_map_12", "select_map", "some_more"];
  assert.deepEqual([...abbreviated(labels, 4).values()], ["toke", "sm2", "sm12", "sm", "sm·2"]);
});
