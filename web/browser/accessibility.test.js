// The explorer can be used by everyone, as far as axe can tell: phones and large windows, light and dark.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

for (const [width, height] of [
  [390, 844],
  [1440, 900],
])
  for (const scheme of ["light", "dark"])
    test(`axe finds nothing at ${width}×${height}, ${scheme}`, async () => {
      for (const name of ["frac_prevs", "rasp-dyck1-2", "several", "gallery"]) {
        const page = await open(browser, name, { width, height, scheme });
        const check = async (what) => {
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
          const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3)}`);
          assert.deepEqual(told, [], `${name}, ${what}`);
        };
        await check("at first");
        if (name === "gallery") {
          await page.close();
          continue;
        }
        if (width < 760) await page.locator("[data-key=panel-detail]").click();
        await page.evaluate(() => globalThis.tracr.state.select(globalThis.tracr.model.lines.length - 1));
        for (let i = 0; i < 3; i++) await page.locator("[data-key=step-on]").click();
        await page.locator(".told").hover();
        await check("step by step");
        if (width < 760) await page.locator("[data-key=panel-map]").click();
        await page.locator(".stream .name").first().hover();
        await check("with a tooltip");
        await page.mouse.move(1, 1);
        await page.locator(".start").click();
        await check("in the tour");
        await page.close();
      }
    });
