// Explorers in a page of someone else: mounted, given new data, removed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** The host's page with an explorer in `a`, and one in `b` if there are two names. */
async function hosted(...names) {
  const page = await open(browser, "host");
  await page.evaluate((wanted) => {
    globalThis.data = JSON.parse(document.getElementById("given").textContent);
    globalThis.explorers = wanted.map((name, i) =>
      globalThis.tracr.mount(document.getElementById("ab"[i]), globalThis.data[name]),
    );
  }, names);
  return page;
}

const current = (page, root) => page.textContent(`#${root} .listing li.current`);

test("an explorer is mounted, shows other data, and is removed without a trace", async () => {
  const page = await hosted("frac_prevs");
  assert.match(await current(page, "a"), /^is_x/);
  await page.evaluate(() => globalThis.explorers[0].update(globalThis.data.hist));
  assert.equal(await page.textContent("#a .model-name"), "hist");
  assert.equal(await page.locator("#a .frame").count(), 1);
  await page.evaluate(() => globalThis.explorers[0].remove());
  assert.equal(await page.innerHTML("#a"), "");
  await page.keyboard.press("ArrowDown");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("new data keeps the reader's choices that fit: the input typed, the line, the patches", async () => {
  const page = await hosted("frac_prevs");
  await page.fill("#input", "a a x");
  await page.locator("#a .listing li", { hasText: /^frac_prevs/ }).click();
  await page.locator("#a .listing li", { hasText: /^is_x/ }).click();
  await page.locator("#a .detail tr.model button").first().click();
  await page.locator("#a .menu").getByRole("button", { name: "True" }).click();
  const shown = () => page.locator("#a .outcome tr.model td").allTextContents();
  const patched = await shown();
  await page.evaluate(() => globalThis.explorers[0].update(globalThis.data.frac_prevs));
  assert.match(await current(page, "a"), /^is_x/);
  assert.equal(await page.inputValue("#input"), "a a x");
  assert.deepEqual(await shown(), patched);
  await page.evaluate(() => globalThis.explorers[0].update(globalThis.data.hist)); // x is not in its vocabulary
  assert.notEqual(await page.inputValue("#input"), "a a x");
  assert.equal(await page.locator("#a .note").count(), 0);
  await page.close();
});

test("a new input in the data replaces the one typed", async () => {
  const page = await hosted("frac_prevs");
  await page.fill("#input", "a a x");
  await page.evaluate(() => globalThis.explorers[0].update({ ...globalThis.data.frac_prevs, input: [0] }));
  assert.equal(await page.inputValue("#input"), "a");
  await page.close();
});

test("a component of the old model is not taken for one of the new", async () => {
  const page = await hosted("frac_prevs");
  await page.locator("#a .listing li", { hasText: /^frac_prevs/ }).click();
  await page.evaluate(() => globalThis.explorers[0].update(globalThis.data.hist));
  const { line, parts } = await page.evaluate(() => {
    const { state } = globalThis.explorers[0].page;
    return { line: state.current.label, parts: state.partsOf(state.current).some((part) => part.number === state.component) };
  });
  assert.equal(line, "hist");
  assert.ok(parts);
  await page.close();
});

test("data that cannot be read is refused, and the explorer stays", async () => {
  const page = await hosted("frac_prevs");
  const refused = await page.evaluate(() => {
    try {
      globalThis.explorers[0].update({ format: "other" });
    } catch (error) {
      return error.message;
    }
  });
  assert.match(refused, /cannot read this model/);
  assert.match(await current(page, "a"), /^is_x/);
  await page.close();
});

test("two explorers in one page: no id twice, keys go to the one with the focus, the host's style stays", async () => {
  const page = await hosted("frac_prevs", "hist");
  const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((one) => one.id));
  assert.equal(new Set(ids).size, ids.length);
  const [before, other] = [await current(page, "a"), await current(page, "b")];
  await page.keyboard.press("ArrowDown"); // no explorer has the focus
  assert.equal(await current(page, "a"), before);
  await page.focus("#a .listing");
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await current(page, "a"), before);
  assert.equal(await current(page, "b"), other);
  const font = await page.evaluate(() => getComputedStyle(document.querySelector("body > h1")).fontFamily);
  assert.doesNotMatch(font, /mono/);
  await page.close();
});
