// The README's picture of the explorer: `node screenshot.js PAGE.html OUT.png` (make images).

import { launch, open } from "./browser.js";

const [source, target] = process.argv.slice(2);
const browser = await launch();
const width = 1280;
const page = await open(browser, source, { width, height: 900 });
await page.getByRole("button", { name: "no, thanks" }).click();
const last = await page.locator(".listing li").count();
for (let line = 0; line < last; line++) await page.keyboard.press("j");
await page.evaluate(() => scrollTo(0, 0));
const height = await page.evaluate(() =>
  Math.ceil(document.querySelector(".body").getBoundingClientRect().bottom + 16),
);
await page.setViewportSize({ width, height });
await page.screenshot({ path: target });
await browser.close();
