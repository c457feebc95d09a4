// The reader's choices as a fragment of the address, and back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choicesIn, fragmentOf } from "../src/address.js";

test("what is written is read again, odd characters included", () => {
  const choices = {
    input: "a & #b =é ☃",
    line: 'x"y',
    patches: [
      ["is_x", 2, "True"],
      ["a:b", 0, "&"],
    ],
    open: ["tokens", "one,two"],
    wires: true,
    at: 0,
  };
  const read = choicesIn(`#${fragmentOf(choices)}`);
  assert.deepEqual(read, { ...choices, wires: "1", at: "0" });
});

test("what is not set is not written", () => {
  assert.equal(fragmentOf({ input: undefined, wires: false, patches: [] }), "");
});

test("a fragment of someone else changes nothing", () => {
  for (const odd of ["#", "#section-2", "#patch={&open=1", "#patch=[1]&open=%5B", "#%E0%A4%A"])
    assert.deepEqual(choicesIn(odd).patches, []);
});
