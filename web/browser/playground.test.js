import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch } from "./browser.js";
import { serve, visit } from "./playground_server.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [
  [390, 844],
  [1440, 900],
];
const SHIFT = 'shifted = aggregate(select(indices, indices - 1, ==), tokens, "_");\n';
let browser, server;
before(async () => ([browser, server] = await Promise.all([launch(), serve()])));
after(() => Promise.all([browser?.close(), server?.stop()]));

const open = (fragment = "", options = {}) => visit(browser, server.address + fragment, options);
const compiled = (page, name) => page.locator(".status b", { hasText: new RegExp(`^${name}$`) }).waitFor();
const row = (page, label) => page.locator(`.seeing tr.${label} td`).allTextContents();
const program = (page) =>
  page.locator(".cm-line").evaluateAll((lines) => lines.map((line) => line.textContent).join("\n"));

/** Replace the program. */
async function write(page, text) {
  await page.locator(".cm-content").focus(); // a click could hit a list of completions
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

/** The explorer's frame, when it shows a program. */
async function explorer(page, name) {
  const frame = page.frameLocator(".workbench > .inside > .explorer iframe");
  await frame.locator("h1", { hasText: new RegExp(`^${name}$`) }).waitFor();
  return frame;
}

const quiet = async (page) => {
  assert.deepEqual([page.requests, page.problems], [[], []]);
  await page.context().close();
};

test("typing compiles: values, drawing and explorer follow", async () => {
  const page = await open();
  await compiled(page, "histogram");
  assert.deepEqual(await row(page, "model"), ["3", "1", "3", "1", "3"]);
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("twice = 2 * histogram;", { delay: 20 });
  await compiled(page, "twice");
  assert.deepEqual(await row(page, "program"), ["6", "2", "6", "2", "6"]);
  assert.deepEqual(await row(page, "model"), ["6", "2", "6", "2", "6"]);
  const drawing = page.locator(".seeing .paper img");
  assert.match(await drawing.getAttribute("alt"), /^Drawing of twice on a b a c a: it gives 6 2 6 2 6$/);
  assert.ok(await drawing.evaluate((image) => image.decode().then(() => image.naturalWidth > 50)));
  await explorer(page, "twice");
  await page.fill("#input", "bb");
  await page.locator(".seeing tr.model", { hasText: "44" }).waitFor();
  await page.fill("#vocab", "x y");
  assert.match(await page.textContent("#input-problem"), /“b” .* is not in the vocabulary: x y/);
  await page.locator(".seeing tr.input", { hasText: "x" }).waitFor(); // an example instead
  await page.fill("#input", "yyx");
  await page.locator(".seeing tr.model", { hasText: "442" }).waitFor();
  await page.selectOption("#level", "2");
  await page.check("#causal");
  await page.selectOption("#name", "histogram");
  await compiled(page, "histogram");
  await quiet(page);
});

test("a slow compilation shows that it runs, and only the newest program is shown", async () => {
  const page = await open();
  await compiled(page, "histogram");
  const held = [];
  await page.route("**/api/compile", (route) => void held.push(route));
  await write(page, "older = indices;\n");
  await page.locator(".waiting").waitFor();
  assert.equal(await page.textContent(".seeing .status"), "Compiling…");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("newer = older + 1;");
  while (!held.at(-1).request().postData().includes("newer = older + 1;")) await page.waitForTimeout(50);
  assert.ok(held.length < 18, `${held.length} requests for 18 letters`);
  for (const route of held.reverse()) await route.continue().catch(() => {}); // those that the page gave up fail
  await compiled(page, "newer");
  await page.waitForTimeout(300);
  assert.equal(await page.locator(".waiting").count(), 0);
  assert.equal(await page.locator(".status b").textContent(), "newer");
  await quiet(page);
});

test("a busy server is asked again", async () => {
  const page = await open();
  await compiled(page, "histogram");
  let asked = 0;
  await page.route("**/api/compile", (route) =>
    (asked += 1) === 1 ? route.fulfill({ status: 503, headers: { "Retry-After": "1" }, body: "{}" }) : route.continue(),
  );
  await write(page, "later = indices;");
  await page.locator(".status", { hasText: "Waiting: the server answered 503. Trying again in 1 s." }).waitFor();
  await compiled(page, "later");
  assert.equal(asked, 2);
  await quiet(page);
});

test("a server that does not answer is asked again", async () => {
  const page = await open();
  await compiled(page, "histogram");
  let gone = true;
  await page.route("**/api/compile", (route) => (gone ? route.abort() : route.continue()));
  await write(page, "later = indices;");
  await page.locator(".status", { hasText: "the server does not answer" }).waitFor();
  gone = false;
  await compiled(page, "later");
  page.problems = page.problems.filter((problem) => !/ERR_FAILED/.test(problem));
  await quiet(page);
});

test("an error is underlined at its place, with its hint, and the last result stays", async () => {
  const page = await open();
  await compiled(page, "histogram");
  await write(page, "same = select(tokens, tokens, ==);\nhist = selector_widht(same);\n");
  const underline = page.locator(".cm-lintRange-error");
  await underline.waitFor();
  assert.match(await underline.textContent(), /^selector_widht/);
  const problem = page.locator(".problem");
  assert.match(await problem.textContent(), /line 2, column 8.*selector_widht.*Hint: .*selector_width/s);
  assert.equal(await page.textContent(".seeing .status"), "Below is the last program that compiled.");
  assert.deepEqual(await row(page, "model"), ["3", "1", "3", "1", "3"]);
  await underline.hover();
  assert.match(await page.locator(".cm-tooltip-lint").textContent(), /Hint: /);
  await problem.getByRole("button").click();
  for (let letter = 0; letter < "selector_widht".length; letter++) await page.keyboard.press("Delete");
  await page.keyboard.type("selector_width");
  await page.keyboard.press("Escape");
  await compiled(page, "hist");
  assert.equal(await underline.count(), 0);
  assert.equal(await problem.textContent(), "");
  await quiet(page);
});

test("what is easily misread is a warning", async () => {
  const page = await open();
  await write(page, "y = not indices == 2;");
  await compiled(page, "y");
  await page.locator(".cm-lintRange-warning").waitFor();
  assert.match(await page.textContent(".problem.warning"), /line 1, column 5.*this means/s);
  await quiet(page);
});

test("completion offers the language's words and the program's, with the keyboard", async () => {
  const page = await open();
  await compiled(page, "histogram");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("z = hist");
  const list = page.locator(".cm-tooltip-autocomplete li");
  await list.first().waitFor();
  assert.deepEqual(await list.allTextContents(), ["histogram"]);
  await page.waitForTimeout(150); // it takes no keys before the reader can have seen it
  await page.keyboard.press("Enter");
  await page.keyboard.type(" + indi");
  await list.first().waitFor();
  assert.deepEqual((await list.allTextContents()).slice(0, 2), ["indicator(x)", "indices"]);
  await page.keyboard.press("Escape");
  assert.match(await program(page), /z = histogram \+ indi$/);
  await quiet(page);
});

test("a share link restores the program and its settings, elsewhere", async () => {
  const page = await open();
  await compiled(page, "histogram");
  await write(page, "é = indices * 2;\nother = indices;\n");
  await compiled(page, "other");
  await page.fill("#vocab", "x ☃ 1");
  await page.fill("#longest", "5");
  await page.fill("#input", "☃ x 1");
  await page.selectOption("#level", "2");
  await page.check("#causal");
  await page.selectOption("#name", "é");
  await compiled(page, "é");
  await page.getByRole("button", { name: "Share", exact: true }).click();
  const link = await page.locator("dialog textarea").inputValue();
  const other = await visit(browser, link);
  await compiled(other, "é");
  assert.deepEqual(await row(other, "model"), ["0", "2", "4"]);
  assert.equal(await program(other), "é = indices * 2;\nother = indices;\n");
  assert.deepEqual(
    await Promise.all(["#vocab", "#longest", "#input", "#level", "#name"].map((field) => other.inputValue(field))),
    ["x ☃ 1", "5", "☃ x 1", "2", "é"],
  );
  assert.ok(await other.isChecked("#causal"));
  await other.selectOption("#name", "");
  await write(other, "mine = indices;");
  await compiled(other, "mine");
  assert.equal(new URL(other.url()).hash, ""); // the link is not of this program
  await other.reload();
  await compiled(other, "mine"); // kept in the browser
  await quiet(other);
  await quiet(page);
});

test("a damaged link is told, and does no harm", async () => {
  const page = await open("#program=AAAA");
  assert.match(await page.locator("dialog").textContent(), /The link is damaged/);
  await page.keyboard.press("Escape");
  await compiled(page, "histogram");
  await quiet(page);
});

test("files: save and open a .rasp file, format it, take an example", async () => {
  const page = await open();
  await compiled(page, "histogram");
  const [choosing] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Open…" }).click(),
  ]);
  await choosing.setFiles({ name: "mine.rasp", mimeType: "text/plain", buffer: Buffer.from("mine=indices+1 ;\r\n") });
  await compiled(page, "mine");
  await page.getByRole("button", { name: "Format" }).click();
  await page.locator(".cm-line", { hasText: "mine = indices + 1;" }).waitFor();
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save" }).click(),
  ]);
  assert.equal(saved.suggestedFilename(), "mine.rasp");
  assert.equal(readFileSync(await saved.path(), "utf8"), "mine = indices + 1;\n");
  await page.getByRole("button", { name: "Examples" }).click();
  await page.locator(".gallery button", { hasText: "The fraction of 'x' so far" }).click();
  await compiled(page, "frac_prevs");
  assert.match(await program(page), /frac_prevs = /);
  await quiet(page);
});

test("downloads: page, SVG, PNG and GPT-2; the program in Python", async () => {
  const page = await open();
  await compiled(page, "histogram");
  const download = async (choice) => {
    await page.locator(".menu summary").click();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: choice }).click(),
    ]);
    return [file.suggestedFilename(), readFileSync(await file.path())];
  };
  const start = ([name, content]) => [name, content.subarray(0, 4).toString("latin1")];
  const [, whole] = await download("Explorer page (HTML)");
  assert.match(whole.toString(), /^<!doctype html>[^]*tracr-data/);
  assert.deepEqual(start(await download("Drawing (SVG)")), ["histogram.svg", "<svg"]);
  assert.deepEqual(start(await download("Drawing (PNG)")), ["histogram.png", "\x89PNG"]);
  assert.equal(start(await download("GPT-2 model (zip)"))[1], "PK\x03\x04");
  await page.getByRole("button", { name: "Python" }).click();
  assert.match(await page.locator("dialog textarea").inputValue(), /import tracr[^]*selector_width/);
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await quiet(page);
});

test("three levels side by side, and the passes of the compiler", async () => {
  const page = await open();
  await compiled(page, "histogram");
  await page.getByRole("tab", { name: "Explorer" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".sizes tbody tr").first().waitFor();
  const [level0, , level2] = (await page.locator(".sizes tbody tr").last().locator("td").allTextContents()).map(
    (text) => Number(text.replaceAll(",", "")),
  );
  assert.ok(level2 < level0, `${level2} and ${level0} parameters`);
  for (const level of [0, 1, 2]) {
    const frame = page.frameLocator(`iframe[title="Explorer at level ${level}"]`);
    assert.match(await frame.locator(".facts").textContent(), new RegExp(`level ${level}`));
  }
  await page.keyboard.press("ArrowRight");
  const names = page.locator(".passes nav button");
  assert.ok((await names.count()) > 5);
  await names.nth(3).click();
  assert.equal(await names.nth(3).getAttribute("aria-current"), "step");
  assert.ok((await page.textContent(".passes pre")).length > 10);
  await quiet(page);
});

test("a recompilation keeps the reader's line, variables and input in the explorer", async () => {
  const page = await open();
  await write(page, "a = indices + 1;\nb = a * 2;\nc = b + a;\n");
  await compiled(page, "c");
  let frame = await explorer(page, "c");
  await frame.locator(".listing li", { hasText: /^a / }).click();
  await frame.locator("#input").fill("c c");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("d = c + 1;");
  await compiled(page, "d");
  frame = await explorer(page, "d");
  assert.match(await frame.locator(".listing li.current").textContent(), /^a /);
  assert.equal(await frame.locator("#input").inputValue(), "c c");
  await page.fill("#input", "b a");
  await page.locator(".seeing tr.input", { hasText: "ba" }).waitFor();
  await page.waitForFunction(() => {
    const { contentDocument } = document.querySelector(".inside > .explorer iframe");
    return contentDocument.getElementById("input").value === "b a"; // a new example replaces the input typed there
  });
  await quiet(page);
});

test("the explorer shows a program that changed while another tab was open", async () => {
  const page = await open();
  await explorer(page, "histogram");
  await page.getByRole("tab", { name: "Passes" }).click();
  await write(page, "other = indices * 2;");
  await compiled(page, "other");
  await page.getByRole("tab", { name: "Explorer" }).click();
  const frame = await explorer(page, "other");
  const { width } = await frame.locator(".node", { hasText: "other" }).first().boundingBox();
  assert.ok(width > 30, `a component ${width} wide`);
  await quiet(page);
});

test("a puzzle: counterexample, hints, solved, solution, and progress that is kept", async () => {
  const page = await open("#puzzles");
  const entries = page.locator(".puzzle-list li");
  await entries.first().waitFor();
  assert.ok((await entries.count()) >= 15);
  await page.getByRole("link", { name: /Shift right/ }).click();
  await page.getByRole("button", { name: "Check" }).click();
  const wrong = page.locator(".counterexample");
  await wrong.waitFor();
  assert.ok((await wrong.locator("td.wrong").count()) >= 1);
  assert.ok(await wrong.locator("img").evaluate((image) => image.decode().then(() => image.naturalWidth > 50)));
  assert.equal(await page.locator(".solution").count(), 0);
  for (const shown of [1, 2, 3]) {
    assert.equal(await page.locator(".hints li").count(), shown - 1);
    await page.getByRole("button", { name: `Hint ${shown} of 3` }).click();
  }
  assert.equal(await page.getByRole("button", { name: /^Hint/ }).count(), 0);
  await page.getByRole("button", { name: "Use this input" }).click();
  const example = await page.inputValue("#input");
  assert.deepEqual((await wrong.locator("tr").first().locator("td").allTextContents()).join(" "), example);
  await page.getByRole("link", { name: "All puzzles" }).click();
  const [expected] = await solvedBy(page);
  assert.match(expected, /^solved in \d layers?$/);
  await page.reload();
  assert.match(await page.textContent(".puzzle-list .status"), /^\s*1 of \d+ solved/);
  await page.getByRole("link", { name: /Shift right/ }).click();
  await page.locator(".solution summary").click();
  assert.match(await page.textContent(".solution pre"), /aggregate|shift/);
  await quiet(page);
});

/** Solve the first puzzle with the keyboard alone; the states of the list's entries afterwards. */
async function solvedBy(page) {
  await page.getByRole("link", { name: /Shift right/ }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".puzzle").waitFor();
  const { output } = await page.evaluate(async () => (await (await fetch("/api/puzzles")).json())[0].examples[0]);
  await write(page, SHIFT.replace("_", output[0]));
  await page.keyboard.press("Control+Enter");
  await page.locator(".verdict .good").waitFor();
  assert.match(await page.textContent(".verdict"), /par/);
  await page.getByRole("link", { name: "All puzzles" }).click();
  return page.locator(".puzzle-list .state").allTextContents();
}

test("a program that does not compile is not checked, and its error is underlined", async () => {
  const page = await open("#puzzle=shift_right");
  await page.locator(".puzzle").waitFor();
  await write(page, "answer = tokns;");
  await page.getByRole("button", { name: "Check" }).click();
  await page.locator(".verdict .bad").waitFor();
  await page.locator(".cm-lintRange-error").waitFor();
  await quiet(page);
});

test("the playground's draft and the programs of puzzles do not mix", async () => {
  const page = await open();
  await write(page, "draft = indices;");
  await compiled(page, "draft");
  await page.getByRole("link", { name: "Puzzles" }).click();
  await page.getByRole("link", { name: /Mirror/ }).click();
  await page.locator(".puzzle").waitFor();
  await write(page, "answer = indices;");
  await compiled(page, "answer");
  await page.getByRole("link", { name: "Playground" }).click();
  await compiled(page, "draft");
  await page.goBack();
  await compiled(page, "answer");
  assert.ok(await page.locator("#vocab").evaluate((field) => field.readOnly));
  await quiet(page);
});

test("texts are texts: nothing of a program, a token or a name becomes HTML", async () => {
  const page = await open();
  page.on("dialog", () => page.problems.push("a script ran"));
  const evil = "<img src=x onerror=alert(1)>";
  await write(page, `y = "${evil}" if indices == 0 else tokens;\n`);
  await page.fill("#vocab", `"${evil}" "</script><script>alert(1)</script>"`);
  await page.fill("#input", "");
  await compiled(page, "y");
  await page.locator(".seeing tr.model td", { hasText: evil }).first().waitFor();
  await explorer(page, "y");
  await write(page, `y = ${evil};`);
  await page.locator(".problem p").first().waitFor();
  assert.equal(await page.locator("img:not(.paper img), main script").count(), 0);
  await quiet(page);
});

test("Tab leaves the editor and reaches every control", async () => {
  const page = await open();
  await compiled(page, "histogram");
  await page.locator(".cm-content").focus();
  const seen = [];
  for (let step = 0; step < 12; step++) {
    await page.keyboard.press("Tab");
    seen.push(await page.evaluate(() => document.activeElement.id || document.activeElement.className));
  }
  for (const id of ["vocab", "longest", "input", "causal", "level", "name", "tab-explorer"])
    assert.ok(seen.includes(id), `${id} is not among ${seen}`);
  await quiet(page);
});

/** What the tests of sizes, colours and accessibility look at, one after the other on the same page. */
const STATES = {
  playground: (page) => explorer(page, "histogram"),
  levels: async (page) => {
    await page.getByRole("tab", { name: "Levels" }).click();
    await page.locator(".sizes").waitFor();
  },
  passes: async (page) => {
    await page.getByRole("tab", { name: "Passes" }).click();
    await page.locator(".passes nav button").nth(4).click();
  },
  examples: async (page) => {
    await page.getByRole("button", { name: "Examples" }).click();
    await page.locator(".gallery li").first().waitFor();
  },
  share: async (page) => {
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Share", exact: true }).click();
  },
  downloads: async (page) => {
    await page.keyboard.press("Escape");
    await page.locator(".menu summary").click();
  },
  completion: async (page) => {
    await write(page, "y = sel");
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete").waitFor();
  },
  error: async (page) => {
    await write(page, "y = selct(tokens, tokens, ==);");
    await page.locator(".problem p").first().waitFor();
  },
  puzzles: async (page) => {
    await page.getByRole("link", { name: "Puzzles" }).click();
    await page.locator(".puzzle-list li").first().waitFor();
  },
  puzzle: async (page) => {
    await page.getByRole("link", { name: /Shift right/ }).click();
    await page.getByRole("button", { name: "Hint 1 of 3" }).click();
    await page.getByRole("button", { name: "Check" }).click();
    await page.locator(".counterexample").waitFor();
  },
  solved: async (page) => {
    await page.getByRole("link", { name: "All puzzles" }).click();
    await solvedBy(page);
    await page.getByRole("link", { name: /Shift right/ }).click();
    await page.locator(".solution summary").click();
  },
};

/** What axe finds; the explorer in the frames has its own tests. */
async function violations(page) {
  const found = await page.evaluate(() =>
    globalThis.axe.run({ exclude: ["iframe"] }, { iframes: false, resultTypes: ["violations"] }),
  );
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120))}`);
}

for (const [width, height] of SIZES)
  for (const scheme of ["light", "dark"])
    test(`axe finds nothing, and nothing sticks out, at ${width} by ${height}, ${scheme}`, async () => {
      const page = await open("", { width, height, scheme });
      await compiled(page, "histogram");
      await page.evaluate(AXE);
      for (const [name, reach] of Object.entries(STATES)) {
        await reach(page);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
        assert.deepEqual(await violations(page), [], name);
      }
      await quiet(page);
    });
