// Several models in one page: chosen, side by side, with one input.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fixture, launch, open, outcome } from "./browser.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const sides = (page) => page.locator(".side .model-name").allTextContents();

test("levels: a table with sizes and outputs; two of them side by side follow each other", async () => {
  const page = await open(browser, "gallery");
  assert.equal(await page.locator(".models tbody tr").count(), 3);
  assert.deepEqual(await sides(page), ["hist, level 0"]);
  await page.getByRole("button", { name: "show hist, level 2 on the right" }).click();
  assert.deepEqual(await sides(page), ["hist, level 0", "hist, level 2"]);
  const inputs = page.locator(".side .input input");
  await inputs.nth(1).fill("a a b");
  assert.equal(await inputs.nth(0).inputValue(), "a a b");
  for (const side of [0, 1])
    assert.deepEqual(await page.locator(".side").nth(side).locator(".outcome tr.model td").allTextContents(), ["2", "2", "1"]);
  assert.deepEqual(await page.locator(".models .outputs").allTextContents(), ["221", "221", "221"]);
  await page.locator(".side").nth(0).getByRole("button", { name: "program" }).click();
  await page.locator(".side").nth(0).locator(".listing li").last().click();
  const current = await page.locator(".side .listing li.current b").allTextContents();
  assert.equal(current[0], current[1]);
  await page.getByRole("button", { name: "show hist, level 2 on the right" }).click();
  assert.deepEqual(await sides(page), ["hist, level 0"]);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a link to a gallery restores the models, the input and the line", async () => {
  const page = await open(browser, "gallery");
  await page.getByRole("button", { name: "show hist, level 2 on the right" }).click();
  await page.locator(".side .input input").first().fill("b b");
  const link = await page.evaluate(() => location.href);
  const other = await browser.newPage();
  await other.goto(link);
  assert.deepEqual(await sides(other), ["hist, level 0", "hist, level 2"]);
  assert.equal(await other.locator(".side .input input").nth(1).inputValue(), "b b");
  await other.close();
  await page.close();
});

test("original and patched: outputs that differ are marked, and the patch stays with another input", async () => {
  const page = await open(browser, "gallery-patched");
  assert.deepEqual(await sides(page), ["frac_prevs", "frac_prevs, patched"]);
  assert.equal(await page.locator(".models .changed").count(), 2);
  await page.locator(".side .input input").first().fill("a a c");
  assert.match(await page.locator(".side").nth(1).locator(".note").textContent(), /is_x at position 1/);
  await page.close();
});

test("a patched page opens beside the original", async () => {
  const page = await open(browser, "frac_prevs");
  await page.fill("#input", "a a x");
  await page.locator(".detail tr.model button").first().click();
  await page.locator(".menu").getByRole("button", { name: "True" }).click();
  const [before, now] = [await outcome(page, "before"), await outcome(page, "model")];
  await page.getByRole("button", { name: "side by side" }).click();
  const shown = (side) => page.locator(".side").nth(side).locator(".outcome tr.model td").allTextContents();
  assert.deepEqual((await shown(0)).map(Number).map((x) => x.toFixed(2)), before.map((x) => Number(x).toFixed(2)));
  assert.deepEqual((await shown(1)).map(Number).map((x) => x.toFixed(2)), now.map((x) => Number(x).toFixed(2)));
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("compiled and twin: the twin runs with its own weights, as numpy runs them", async () => {
  const page = await open(browser, "gallery-twin");
  const { input, outputs, pattern } = fixture("twin.json");
  await page.locator(".side .input input").first().fill(input);
  assert.equal(await page.locator(".side .input input").nth(1).inputValue(), input);
  assert.deepEqual(await page.locator(".side").nth(1).locator(".outcome tr.model td").allTextContents(), outputs);
  const shown = await page
    .locator(".pair .grid")
    .nth(1)
    .locator(".cell")
    .evaluateAll((cells) => cells.map((cell) => Number(cell.style.getPropertyValue("--x"))));
  pattern.forEach((x, i) => assert.ok(Math.abs(x - shown[i]) < 1e-3, `${i}: ${x} and ${shown[i]}`));
  assert.deepEqual(page.problems, []);
  await page.close();
});
