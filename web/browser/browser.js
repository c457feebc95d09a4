// A headless Chromium for the tests: the system's, or the one named in CHROMIUM. `make browser` makes the pages.

import { existsSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const folder = fileURLToPath(new URL("../../build/explorer", import.meta.url));
const NAMES = ["chromium", "chromium-browser", "google-chrome"];

export function fixture(name) {
  return JSON.parse(readFileSync(join(folder, name), "utf8"));
}

export function launch() {
  const candidates = NAMES.flatMap((name) => process.env.PATH.split(delimiter).map((place) => join(place, name)));
  const executablePath = process.env.CHROMIUM ?? candidates.find(existsSync);
  if (!executablePath)
    throw new Error("there is no Chromium: install it (apt-get install chromium), or name one in CHROMIUM");
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** A page from disk. `page.requests` are the requests for other files, `page.problems` the errors of the page. */
export async function open(browser, name, { width = 1440, height = 900, scheme = "light" } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  const url = pathToFileURL(name.includes("/") ? resolve(name) : join(folder, `${name}.html`)).href;
  page.requests = [];
  page.problems = [];
  page.on("request", (request) => request.url() !== url && page.requests.push(request.url()));
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  await page.goto(url);
  return page;
}

/** The exact texts in a row of the results: "model", "program" or "before". */
export function outcome(page, row) {
  return page
    .locator(`.outcome tr.${row} td`)
    .evaluateAll((cells) => cells.map((cell) => cell.title || cell.textContent));
}
