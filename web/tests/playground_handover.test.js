import assert from "node:assert/strict";
import { test } from "node:test";
import { choices, restore } from "../src/playground/handover.js";

/** As much of an explorer's state as is carried over. */
function state(labels, text = "a b") {
  const sops = new Map(labels.map((label, id) => [id, { label }]));
  return {
    model: {
      sops,
      lines: labels.map((_, id) => ({ kind: "sop", id })),
      groups: labels.map((label, number) => ({ label, number })),
      source: "text",
    },
    open: new Set([0]),
    written: false,
    plumbing: false,
    text,
    line: 0,
    get current() {
      return this.model.lines[this.line];
    },
    select(line) {
      this.line = line;
    },
    setInput(typed) {
      this.text = typed;
    },
  };
}

function carried(old, change, next) {
  const first = choices(old);
  change(old);
  restore(next, first, choices(old));
  return next;
}

test("the reader's line, open variables, switches and input are kept by name", () => {
  const change = (old) => {
    old.select(2);
    old.open = new Set([1]);
    old.plumbing = true;
    old.written = true;
    old.setInput("b b");
  };
  const next = carried(state(["tokens", "same", "hist"]), change, state(["tokens", "new", "same", "hist"]));
  assert.deepEqual([next.line, [...next.open], next.plumbing, next.written, next.text], [3, [2], true, true, "b b"]);
});

test("what the reader did not choose is the new explorer's choice", () => {
  const fresh = state(["tokens", "hist"]);
  fresh.select(1);
  const next = carried(state(["tokens", "same"]), () => {}, fresh);
  assert.deepEqual([next.line, [...next.open], next.written], [1, [0], false]);
});

test("a name that is gone, or another example, changes nothing", () => {
  const change = (old) => {
    old.select(1);
    old.setInput("b b");
  };
  const next = carried(state(["tokens", "same"]), change, state(["tokens", "hist"], "c c"));
  assert.deepEqual([next.line, next.text], [0, "c c"]);
});
