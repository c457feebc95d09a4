// Every program of the library in the browser, against numpy and the reference interpreter.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fixture, launch, open, outcome } from "./browser.js";

const TYPED = [
  "frac_prevs",
  "hist",
  "sort",
  "reverse",
  "dyck1",
  "dyck2",
  "induction",
  "shuffle_dyck2",
  "most_freq",
  "pair_balance",
  "shuffle_dyck-2",
  "hist2-2",
  "reverse-2",
  "sort_freq-2",
];
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

for (const { name, cases } of fixture("library.json"))
  test(`${name}: the forward pass is numpy's on ${cases.length} inputs`, async () => {
    assert.equal(cases.length, 200);
    const page = await open(browser, name);
    const got = await page.evaluate(
      (inputs) =>
        inputs.map((codes) => {
          const { model } = globalThis.tracr;
          const run = model.run(codes),
            program = model.evaluate(codes);
          const [output] = model.outputs,
            { domain } = model.sops.get(output.sop);
          return {
            logits: [...run.logits],
            stream: run.streams.at(-1).reduce((sum, x) => sum + Math.abs(x), 0),
            model: codes.map((_, p) => domain.text(model.decode(output, run, p))),
            program: program.errors.length ? null : codes.map((_, p) => domain.text(program.codes.get(output.sop)[p])),
          };
        }),
      cases.map(({ codes }) => codes),
    );
    for (const [i, expected] of cases.entries()) {
      assert.equal(got[i].logits.length, expected.logits.length);
      got[i].logits.forEach((x, k) => close(x, expected.logits[k], expected.text));
      close(got[i].stream, expected.stream, expected.text);
      assert.deepEqual(got[i].model, expected.model, expected.text);
      if (expected.interpreter) same(got[i].program, expected.interpreter, expected.text);
    }
    assert.deepEqual([page.requests, page.problems], [[], []]);
    await page.close();
  });

for (const name of TYPED)
  test(`${name}: what is typed gives the interpreter's output`, async () => {
    const { cases } = fixture("library.json").find((program) => program.name === name);
    const page = await open(browser, name);
    for (const { text, interpreter } of cases.filter((one) => one.interpreter).slice(0, 12)) {
      await page.fill("#input", text);
      same(await outcome(page, "model"), interpreter, text);
      same(await outcome(page, "program"), interpreter, text);
      assert.match(await page.textContent(".verdict"), /^✓/);
    }
    assert.deepEqual([page.requests, page.problems], [[], []]);
    await page.close();
  });

const clearing = new Set(); // pages on which a variable of the program is cleared
for (const { name, cases } of fixture("turns.json"))
  test(`${name}: every variable is there in its turn, after every sub-layer, and not before or after`, async () => {
    const page = await open(browser, name);
    const got = await page.evaluate(
      (inputs) =>
        inputs.map((codes) => {
          const { model } = globalThis.tracr;
          const run = model.run(codes);
          const held = [...model.groupOfSop.values()].map((group) => [
            group.label,
            run.streams.map((_, stage) => codes.map((_, p) => model.read(group, run, stage, p + 1)?.text ?? null)),
          ]);
          return Object.fromEntries(held);
        }),
      cases.map(({ codes }) => codes),
    );
    for (const [i, { held, codes }] of cases.entries()) {
      assert.deepEqual(Object.keys(got[i]).sort(), Object.keys(held).sort());
      for (const [label, stages] of Object.entries(held))
        stages.forEach((expected, stage) => {
          const shown = got[i][label][stage].map((text, p) => (text === "…" ? expected[p] : text));
          if (expected !== "?") assert.deepEqual(shown, expected, `${label} after ${stage} on ${codes}`);
          if (stage > 0 && expected[0] === null && stages[stage - 1][0] !== null) clearing.add(name);
        });
    }
    await page.close();
  });

test("variables are cleared on most of those pages", () => assert.ok(clearing.size > 3, [...clearing].join()));

test("each line of each program: its value in the model is the interpreter's, and it lights up what computes it", async () => {
  let lines = 0;
  for (const { name } of fixture("library.json")) {
    const page = await open(browser, name);
    const seen = await page.evaluate(() => {
      const { state } = globalThis.tracr;
      return state.model.lines.map((_, line) => {
        state.select(line);
        const count = (selector) => document.querySelectorAll(selector).length;
        const where = document.querySelector(".listing li.current .where").textContent.replace(/folded|absorbed/, "");
        return { where, wrong: count(".detail .wrong"), nodes: count(".node.lit"), stages: count(".stage.lit") };
      });
    });
    for (const [line, { where, wrong, nodes, stages }] of seen.entries()) {
      assert.equal(wrong, 0, `${name}, line ${line}`);
      if (where) assert.ok(nodes > 0 && stages > 0, `${name}, line ${line}`);
    }
    lines += seen.length;
    assert.deepEqual(page.problems, []);
    await page.close();
  }
  assert.ok(lines > 150);
});

/** Equal texts; numbers up to rounding (2/3 and 1 - 1/3 are neighbours in a domain). */
function same(got, expected, what) {
  assert.equal(got.length, expected.length, what);
  got.forEach((text, p) => {
    const [x, y] = [Number(text), Number(expected[p])];
    assert.ok(text === expected[p] || Math.abs(x - y) <= 1e-12, `${what}: ${text} and ${expected[p]}`);
  });
}

function close(x, y, what) {
  assert.ok(Math.abs(x - y) <= 1e-4 * Math.max(1, Math.abs(y)), `${what}: ${x} and ${y}`);
}
