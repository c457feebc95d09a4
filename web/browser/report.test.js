// The report of a laboratory run: its numbers, sorting, filters, circuits, sizes, themes and accessibility.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fixture, launch, open } from "./browser.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [
  [390, 844],
  [1440, 900],
];
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const quiet = (page) => assert.deepEqual([page.requests, page.problems], [[], []]);

/** The visible rows of a table, as texts. */
const rows = (page, table) =>
  page
    .locator(`#table-${table} tbody tr:not([hidden])`)
    .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));

const column = async (page, table, name) => {
  const heads = await page.locator(`#table-${table} thead th`).allTextContents();
  const place = heads.indexOf(name);
  return (await rows(page, table)).map((cells) => cells[place]);
};

const numbers = (texts) => texts.map((text) => Number(text.split(" ")[0].replace("−", "-")));

async function openCase(page, place = 1) {
  const details = page.locator("details.case").nth(place);
  await details.locator("summary").click();
  await details.locator(".found table").waitFor();
  return details;
}

test("the leaderboard shows the means over cases of the means over seeds", async () => {
  const page = await open(browser, "report");
  const groups = new Map();
  for (const [realisation, dials, method, name, auroc] of fixture("report.json")) {
    const label = [realisation, ...Object.entries(JSON.parse(dials)).map(([dial, value]) => `${dial}=${value}`)];
    const key = `${label.join(":")} ${method}`;
    if (!groups.has(key)) groups.set(key, new Map());
    groups.get(key).set(name, [...(groups.get(key).get(name) ?? []), auroc]);
  }
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  let compared = 0;
  for (const [realisation, method, cell] of await rows(page, "leaderboard")) {
    const cases = groups.get(`${realisation} ${method}`);
    if (realisation === "compiled" && method !== "random") continue; // rows of it failed, or were not admitted
    assert.ok(Math.abs(Number(cell.split(" ")[0]) - mean([...cases.values()].map(mean))) <= 0.0005001, method);
    assert.match(cell, /^\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\]$/);
    compared += 1;
  }
  assert.ok(compared >= 10);
  quiet(page);
  await page.close();
});

test("columns are sorted by mouse and by keyboard, and say so", async () => {
  const page = await open(browser, "report");
  const head = page.locator("#table-leaderboard thead th", { hasText: "AUROC" });
  const sorted = (values, sign) => values.every((value, n) => n === 0 || sign * (value - values[n - 1]) >= 0);
  assert.equal(await head.getAttribute("aria-sort"), "none");
  await head.locator("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  assert.ok(sorted(numbers(await column(page, "leaderboard", "AUROC")), -1));
  await head.locator("button").focus();
  await page.keyboard.press("Enter");
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  assert.ok(sorted(numbers(await column(page, "leaderboard", "AUROC")), 1));
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "AUROC");
  assert.equal(await page.textContent("#status"), "Sorted by AUROC, ascending");
  const method = page.locator("#table-leaderboard thead th", { hasText: "method" });
  await method.locator("button").focus();
  await page.keyboard.press("Space");
  assert.equal(await method.getAttribute("aria-sort"), "ascending");
  assert.equal(await head.getAttribute("aria-sort"), "none");
  const names = await column(page, "leaderboard", "method");
  assert.deepEqual(names, [...names].sort((x, y) => x.localeCompare(y)));
  quiet(page);
  await page.close();
});

test("what is undefined is last in both directions", async () => {
  const page = await open(browser, "report");
  const head = page.locator("#table-parts thead th button", { hasText: /^decoy or other program reported$/ });
  for (let click = 0; click < 2; click++) {
    await head.click();
    const cells = await column(page, "parts", "decoy or other program reported");
    const first = cells.indexOf("–");
    assert.ok(first > 0 && cells.slice(first).every((cell) => cell === "–"), cells.join());
  }
  await page.close();
});

test("filters of realisations, methods, cases and scores", async () => {
  const page = await open(browser, "report");
  await page.selectOption("#filter-realisation", "rotated");
  await page.selectOption("#filter-method", "eap");
  assert.deepEqual((await rows(page, "leaderboard")).map((cells) => cells.slice(0, 2)), [["rotated", "eap"]]);
  await page.fill("#filter-case", "HIST");
  const shown = await page.locator("details.case:not([hidden]) summary b").allTextContents();
  assert.ok(shown.length > 0 && shown.every((name) => name.includes("hist")), shown.join());
  assert.equal((await rows(page, "cases")).length, shown.length);
  const details = page.locator("details.case:not([hidden])").first();
  await details.locator("summary").click();
  assert.equal(await details.locator(".found tbody tr:not([hidden])").count(), 1);
  const heading = page.locator("#plots .panels:not([hidden]) h3").first();
  assert.equal(await heading.textContent(), "AUROC");
  await page.selectOption("#filter-score", "cpr");
  assert.equal(await heading.textContent(), "CPR");
  await page.selectOption("#filter-realisation", "");
  await page.selectOption("#filter-method", "");
  await page.fill("#filter-case", "");
  assert.equal((await rows(page, "leaderboard")).length, 16);
  quiet(page);
  await page.close();
});

test("a case: the circuit, and which edges were found, missed and extra", async () => {
  const page = await open(browser, "report");
  const details = await openCase(page);
  const name = await details.getAttribute("data-case");
  const expected = await page.evaluate((one) => {
    const content = JSON.parse(document.getElementById("lab-data").textContent).cases[one];
    return content.rows.map((row) => row[3] && [content.truths[row[5]].length - row[6].length, row[6].length, row[7].length]);
  }, name);
  const buttons = details.locator(".seeds button");
  assert.equal(await buttons.count(), expected.length);
  for (const place of [0, 3, 7, expected.length - 1]) {
    await buttons.nth(place).click();
    const count = (kind) => details.locator(`.circuit .is-${kind}`).count();
    const got = [await count("found"), await count("missed"), await count("extra")];
    assert.deepEqual(got, expected[place]);
    const said = await details.locator(".edges-said").textContent();
    assert.match(said, new RegExp(`: ${got[0]} found .*${got[1]} missed .*${got[2]} extra`));
    assert.equal(await details.locator('button[aria-pressed="true"]').count(), 1);
  }
  await buttons.nth(expected.length - 1).click();
  assert.equal(await details.locator(".circuit.chosen, .overlay path").count(), 0);
  quiet(page);
  await page.close();
});

test("failed rows and models that were not admitted are marked", async () => {
  const page = await open(browser, "report");
  const details = await openCase(page, 0);
  const other = await page.locator("details.case").evaluateAll((all) => all.length);
  assert.equal(other, 12);
  let [failed, unknown] = [0, 0];
  for (let place = 0; place < other; place++) {
    const one = page.locator("details.case").nth(place);
    if (!(await one.getAttribute("open"))) await one.evaluate((element) => (element.open = true));
    await one.locator(".found table").waitFor();
    failed += await one.locator(".seeds .none", { hasText: "failed" }).count();
    unknown += await one.locator(".seeds button", { hasText: "not admitted" }).count();
  }
  assert.deepEqual([failed, unknown], [1, 1]);
  assert.ok(await details.isVisible());
  assert.match(await page.textContent("#left-out"), /it did not work/);
  await page.close();
});

test("one case has no interval, and no number is given for it", async () => {
  const page = await open(browser, "report-single");
  for (const cells of await rows(page, "leaderboard")) assert.equal(cells[2], "one case: no interval");
  assert.match(await page.textContent("#question-1"), /no method can be called the best/);
  assert.match(await page.textContent("#question-3"), /There is one seed/);
  quiet(page);
  await page.close();
});

test("hostile names are text", async () => {
  const page = await open(browser, "report-odd");
  assert.equal(await page.textContent("h1"), "</script><img src=x onerror=alert(1)>");
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  for (let place = 0; place < 5; place++) {
    const details = await openCase(page, place);
    await details.locator(".seeds button").first().click();
  }
  await page.selectOption("#filter-method", { index: 1 });
  assert.ok((await rows(page, "leaderboard")).length > 0);
  quiet(page);
  await page.close();
});

for (const [width, height] of SIZES)
  for (const scheme of ["light", "dark"])
    test(`axe finds nothing, and nothing sticks out, at ${width} by ${height}, ${scheme}`, async () => {
      for (const name of ["report", "report-odd", "report-single"]) {
        const page = await open(browser, name, { width, height, scheme });
        const details = await openCase(page, 0);
        await details.locator(".seeds button").first().click();
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
        const told = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120))}`);
        assert.deepEqual(told, [], name);
        quiet(page);
        await page.close();
      }
    });

test("the text of plots and circuits has a contrast of at least 4.5", async () => {
  for (const scheme of ["light", "dark"]) {
    const page = await open(browser, "report", { scheme });
    const details = await openCase(page);
    await details.locator(".seeds button").first().click();
    const low = await page.evaluate(() => {
      const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
      const light = ([r, g, b]) =>
        [r, g, b]
          .map((x) => x / 255)
          .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
          .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
      const behind = (element) => {
        const box = element.closest(".node")?.querySelector("rect");
        return parse(box ? getComputedStyle(box).fill : getComputedStyle(element.closest("section")).backgroundColor);
      };
      return [...document.querySelectorAll("svg text")]
        .filter((element) => element.checkVisibility())
        .filter((element) => {
          const [a, b] = [light(parse(getComputedStyle(element).fill)), light(behind(element))].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05) < 4.5;
        })
        .map((element) => element.textContent);
    });
    assert.deepEqual(low, [], scheme);
    await page.close();
  }
});

test("light and dark, by the system and by the button", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await open(browser, "report-single");
  const dark = await open(browser, "report-single", { scheme: "dark" });
  const [day, night] = [await background(light), await background(dark)];
  assert.notEqual(day, night);
  await light.locator("#theme").click();
  await dark.locator("#theme").click();
  assert.deepEqual([await background(light), await background(dark)], [night, day]);
  await light.close();
  await dark.close();
});

test("a large report loads, sorts and opens cases quickly", async () => {
  const page = await open(browser, "report-large");
  const took = await page.evaluate(() => {
    const start = performance.now();
    document.querySelector("#table-leaderboard thead button").click();
    const details = document.querySelectorAll("details.case")[50];
    details.open = true;
    return performance.now() - start;
  });
  assert.ok(took < 1000, `${took} ms`);
  await page.locator("details.case").nth(50).locator(".found table").waitFor();
  assert.equal(await page.locator("details.case").count(), 100);
  assert.equal((await rows(page, "leaderboard")).length, 48);
  quiet(page);
  await page.close();
});
