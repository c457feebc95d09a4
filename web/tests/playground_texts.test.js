import assert from "node:assert/strict";
import { test } from "node:test";
import { completions, definedNames } from "../src/playground/completion.js";
import { nextToken, rasp } from "../src/playground/language.js";
import { Memory } from "../src/playground/memory.js";
import { underlined } from "../src/playground/places.js";
import { FIRST, settingsFrom } from "../src/playground/settings.js";
import { fragmentOf, settingsIn } from "../src/playground/share.js";
import { readTokens, readVocabulary, writeTokens, writeVocabulary } from "../src/playground/tokens.js";
import { differences, shown } from "../src/playground/values_table.js";

test("vocabularies: characters, words, numbers, quotes and ranges", () => {
  assert.deepEqual(readVocabulary("abc"), ["a", "b", "c"]);
  assert.deepEqual(readVocabulary("(){}"), ["(", ")", "{", "}"]);
  assert.deepEqual(readVocabulary("a, b  cat"), ["a", "b", "cat"]);
  assert.deepEqual(readVocabulary('1 -2 0.5 "1" "a b" ","'), [1, -2, 0.5, "1", "a b", ","]);
  assert.deepEqual(readVocabulary("0..3 a..c"), [0, 1, 2, 3, "a", "b", "c"]);
  assert.deepEqual(readVocabulary("12"), [12]);
  assert.deepEqual(readVocabulary("a b a"), ["a", "b"]);
  assert.deepEqual(readVocabulary("  "), []);
  assert.deepEqual(readVocabulary("9..1"), ["9..1"]);
  assert.deepEqual(readVocabulary("0..99999999"), ["0..99999999"]);
});

test("a vocabulary that is written reads as itself", () => {
  const pieces = [
    "a",
    "1",
    1,
    -3,
    0.25,
    "",
    " ",
    ",",
    '"',
    "\\",
    "a b",
    "0..3",
    "a..c",
    "abc",
    "é☃",
    "😀",
    "b,c",
    "<b>",
  ];
  const drawn = (seed) => pieces.filter((_, place) => (seed >> place) & 1);
  for (let seed = 1; seed < 1 << pieces.length; seed += 37) {
    const vocab = drawn(seed);
    assert.deepEqual(readVocabulary(writeVocabulary(vocab)), vocab, writeVocabulary(vocab));
  }
  for (const piece of pieces) assert.deepEqual(readVocabulary(writeVocabulary([piece])), [piece]);
});

test("inputs: tokens of the vocabulary, none for an empty text, else a message", () => {
  assert.deepEqual(readTokens("", ["a"], 3), { tokens: null });
  assert.deepEqual(readTokens("abba", ["a", "b"], 4), { tokens: ["a", "b", "b", "a"] });
  assert.deepEqual(readTokens("3 1, 2", [1, 2, 3], 4), { tokens: [3, 1, 2] });
  assert.match(readTokens("x", ["a"], 3).problem, /not in the vocabulary/);
  assert.match(readTokens("aaaa", ["a"], 3).problem, /at most 3/);
});

test("an input that is written reads as itself, whatever the tokens are", () => {
  const vocab = ["a", "1", 1, "", " ", ",", "b c", "b", '"', 0.5];
  for (let seed = 1; seed < 4000; seed += 7) {
    const tokens = Array.from({ length: 5 }, (_, place) => vocab[Math.floor(seed / 3 ** place) % vocab.length]);
    assert.deepEqual(readTokens(writeTokens(tokens, vocab), vocab, 9), { tokens }, writeTokens(tokens, vocab));
  }
  assert.deepEqual(readTokens("0 1 1", ["0", "1"], 3), { tokens: ["0", "1", "1"] });
  assert.equal(writeTokens(null, vocab), "");
});

test("a link has everything, in any letters, and nothing else is taken from it", () => {
  const settings = {
    ...FIRST,
    source: 'y = "é☃😀</script>";\n'.repeat(50),
    vocab: ["é", 1],
    level: 2,
    causal: true,
    input: null,
  };
  const fragment = fragmentOf(settings);
  assert.match(fragment, /^#program=[\w-]+$/);
  assert.deepEqual(settingsIn(fragment), settings);
  assert.equal(settingsIn("#program=%%%"), null);
  assert.equal(settingsIn(fragment.slice(0, -9)), null);
  assert.equal(settingsIn("#puzzles"), null);
  const forged = { source: "y = 1;", level: 7, vocab: "abc", max_len: -1, causal: "yes", input: [{}], extra: 1 };
  assert.deepEqual(settingsFrom(forged), { ...FIRST, source: "y = 1;", input: null });
  assert.equal(settingsFrom({ source: 3 }), null);
});

test("memory: drafts and puzzles, also where there is no storage", () => {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  const memory = new Memory(() => storage);
  assert.equal(memory.draft, null);
  memory.draft = FIRST;
  assert.deepEqual(new Memory(() => storage).draft, FIRST);
  memory.remember("sort", { hints: 2 });
  memory.solved("sort", 4, "s = 1;");
  memory.solved("sort", 5, "s = 1;");
  assert.deepEqual(memory.puzzle("sort"), { solved: true, layers: 4, hints: 2, source: null, solution: "s = 1;" });
  assert.equal(memory.puzzle("other").solved, false);
  kept.set("tracr.puzzles", "not JSON");
  assert.equal(memory.puzzle("sort").solved, false);
  const without = new Memory(() => {
    throw new Error("blocked");
  });
  without.draft = FIRST;
  assert.equal(without.draft, null);
});

test("places: to the end, a word, an operator, and behind the text; columns count characters", () => {
  const text = 'a = 1;\n"😀" + word == 2;\n';
  const part = (place) => {
    const { from, to } = underlined(text, place);
    return text.slice(from, to);
  };
  assert.equal(part({ line: 2, column: 7 }), "word");
  assert.equal(part({ line: 2, column: 12 }), "==");
  assert.equal(part({ line: 2, column: 1, end_line: 2, end_column: 11 }), '"😀" + word');
  assert.equal(part({ line: 3, column: 1 }), ";");
  assert.equal(part({ line: 99, column: 99 }), ";");
  assert.deepEqual(underlined("", { line: 1, column: 1 }), { from: 0, to: 0 });
});

test("completions: names of assignments, functions, arguments and loops, not of strings and comments", () => {
  const text = `x, y = 1, 2; z = x == y; # old = 1;
def f(a, b) { inner = "s = 1"; return a; }
for i, j in zip(range(3), range(3)) { total += i; }
[c for c in range(3)];`;
  assert.deepEqual(
    definedNames(text)
      .map(({ label }) => label)
      .sort(),
    [..."abcfijxyz", "inner"].sort(),
  );
  assert.equal(definedNames(text).find(({ label }) => label === "f").detail, "(a, b)");
});

test("completions are offered in code only, and do not offer the word being typed", () => {
  const labels = (text, explicit = false) =>
    completions(text, text.length, explicit)?.options.map(({ label }) => label) ?? null;
  assert.ok(labels("same = sel").includes("selector_width"));
  assert.ok(labels("mine = 1;\ny = m").includes("mine"));
  assert.ok(!labels("y = mi").includes("mi"));
  assert.equal(labels('y = "sel'), null);
  assert.equal(labels("# sel"), null);
  assert.ok(labels('y = "a" + sel').length);
  assert.equal(labels("y = "), null);
  assert.ok(labels("y = ", true).length);
});

test("colours of words", () => {
  const read = (line) => {
    const state = rasp.startState(),
      found = [];
    let rest = line;
    const stream = {
      eatSpace: () => rest !== (rest = rest.trimStart()),
      match: (pattern) => {
        const hit = pattern.exec(rest);
        if (hit) rest = rest.slice(hit[0].length);
        return hit;
      },
      next: () => (rest = rest.slice(1)),
    };
    while (rest) {
      const before = rest,
        colour = nextToken(stream, state);
      if (colour) found.push([before.slice(0, before.length - rest.length), colour]);
    }
    return Object.fromEntries(found);
  };
  assert.deepEqual(read("def f(x) { return select(x, tokens, ==); } # end"), {
    def: "keyword",
    f: "variableName.definition",
    "(": "bracket",
    x: "variableName",
    ")": "bracket",
    "{": "bracket",
    return: "keyword",
    select: "variableName.standard",
    ",": "punctuation",
    tokens: "variableName.special",
    "==": "compareOperator",
    ";": "punctuation",
    "}": "bracket",
    "# end": "comment",
  });
  assert.deepEqual(read('y = "a" if 1.5 else True ? 2;')["?"], "invalid");
});

test("values as text", () => {
  const values = [1, 0.5, 1 / 3, "a", true, false, null, { tuple: ["a", 1] }, { fraction: [1, 3] }, { int: "0x20" }];
  assert.deepEqual(values.map(shown), ["1", "0.5", "0.333333", "a", "True", "False", "none", "(a, 1)", "1/3", "0x20"]);
  assert.deepEqual(differences([1, "1", 2], [1, 1]), [false, false, true]);
});
