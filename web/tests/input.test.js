import assert from "node:assert/strict";
import { test } from "node:test";
import { readInput, writeInput } from "../src/core/input.js";

const model = (words, lengths = [1, 4]) => ({
  vocab: words.map((text) => ({ text })),
  lengths,
  bos: "bos",
  pad: "pad",
});

test("tokens by spaces or commas; single characters need neither", () => {
  for (const text of ["a b a", "aba", " ab  a ", "a, b, a"])
    assert.deepEqual(readInput(text, model(["a", "b"])).codes, [0, 1, 0]);
  assert.deepEqual(readInput("10 2", model(["2", "10"])).codes, [1, 0]);
  assert.deepEqual(readInput(", a", model(["a", ","])).codes, [1, 0]);
  assert.deepEqual(readInput("", model(["a"])).codes, []);
  assert.deepEqual(readInput("new york, york (1, 2)", model(["york", "new york", "(1, 2)"])).codes, [1, 0, 2]);
});

test("what is written can be read", () => {
  for (const words of [
    ["a", "b"],
    ["1", "10"],
    [",", "x"],
    ["(1, 2)", "(1, 2), 3"],
    ["a", "a b"],
  ])
    assert.deepEqual(readInput(writeInput([1, 0, 1], model(words)), model(words)).codes, [1, 0, 1]);
});

test("messages say what is wrong and what to write", () => {
  assert.match(readInput("a q", model(["a", "b"])).problem, /“q” \(position 1\) is not in the vocabulary: a b/);
  assert.match(readInput("ab", model(["a"])).problem, /“b” \(position 1\)/);
  assert.match(readInput("a a a a a", model(["a"])).problem, /5 tokens; this model was compiled for at most 4/);
  assert.match(readInput("a", model(["a"], [2, 2])).problem, /1 token; this program takes at least 2/);
  assert.match(readInput("bos a", model(["a"])).problem, /Leave out “bos”/);
  assert.match(readInput("a pad", model(["a"])).problem, /Leave out “pad”/);
  assert.match(readInput("?", model([...Array(30).keys()].map((x) => `t${x}`))).problem, /t11 … \(30 tokens\)/);
});
