// The page as a reader uses it: patching, messages, keyboard, sizes, themes, notebooks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fixture, launch, open, outcome } from "./browser.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const line = (page, label) =>
  page.locator(".listing li").filter({ has: page.locator("b", { hasText: new RegExp(`^${label}$`) }) });

for (const { name, text, variable, position, value, before: old, after: now } of fixture("patches.json"))
  test(`patching ${variable} of ${name} gives what numpy gives`, async () => {
    const page = await open(browser, name);
    await page.fill("#input", text);
    assert.deepEqual(await outcome(page, "model"), old);
    await line(page, variable).click();
    await page.locator(".detail tr.model button").nth(position).click();
    await page.locator(".menu").getByRole("button", { name: value, exact: true }).click();
    assert.deepEqual(await outcome(page, "before"), old);
    assert.deepEqual(await outcome(page, "model"), now);
    assert.notDeepEqual(now, old);
    assert.equal(await page.locator(".outcome td.changed").count(), now.filter((x, p) => x !== old[p]).length);
    assert.ok((await page.locator(".node.affected").count()) > 0);
    assert.match(await page.textContent(".note"), new RegExp(`${variable} at position ${position}`));
    await page.getByRole("button", { name: "undo" }).click();
    assert.deepEqual(await outcome(page, "model"), old);
    assert.equal(await page.locator(".note, .differs:not(.legend i), .node.affected").count(), 0);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

test("a row is blank once its dimensions are cleared; a tooltip says what they hold then", async () => {
  const page = await open(browser, "reusing");
  await page.fill("#input", "a b c");
  await page.getByRole("button", { name: "open all rows" }).click();
  const values = (name) =>
    page
      .locator(".stream .row.group", { has: page.locator(".text", { hasText: new RegExp(`^${name}$`) }) })
      .locator(".value")
      .allTextContents();
  const blank = ["", "", "", ""];
  assert.deepEqual(await values("length"), [blank, blank, ["", "3", "3", "3"], blank, blank].flat());
  const direction = page
    .locator(".stream .row", { has: page.locator(".text", { hasText: /^length$/ }) })
    .locator("xpath=following-sibling::*[3]");
  assert.equal(await direction.locator(".name").textContent(), "3");
  const kinds = await direction
    .locator(".cell")
    .evaluateAll((cells) => cells.map(({ classList: list }) => [list.contains("absent"), list.contains("changed")]));
  const [absent, shown, fresh, cleared] = [
    [true, false],
    [false, false],
    [false, true],
    [true, true],
  ];
  assert.deepEqual(kinds.slice(8, 12), [shown, fresh, fresh, fresh]); // after MLP 0
  assert.deepEqual(kinds.slice(12, 16), [absent, cleared, cleared, cleared]); // after MLP 1
  assert.deepEqual(kinds.slice(16, 20), Array(4).fill(absent));
  await direction.locator(".cell").nth(17).hover();
  assert.match(await page.textContent(".tooltip"), /value.*cleared; its dimension holds reverse:a/);
  assert.match(await page.textContent(".tooltip"), /dimension\d+ holds length:3 until MLP 1, then reverse:a$/);
  await direction.locator(".cell").nth(13).click();
  assert.ok(!(await page.isVisible(".menu")));
  await page.close();
});

test("what is cleared cannot be patched; what is still there can", async () => {
  const page = await open(browser, "shuffle_dyck-2");
  await page.fill("#input", "( )");
  const tokens = page.locator(".stream .row.group", { hasText: "tokens" }).locator(".value");
  const hint = async (cell) => {
    await cell.hover();
    return page.textContent(".tooltip");
  };
  assert.match(await hint(tokens.nth(4)), /value\(.*click to patch/); // position 0 after attention 0
  assert.match(await hint(tokens.nth(7)), /valuecleared.*cleared byMLP 0, after its last reader$/); // after MLP 0
  await tokens.nth(7).click();
  assert.ok(!(await page.isVisible(".menu")));
  await tokens.nth(4).click();
  assert.ok(await page.isVisible(".menu"));
  await page.close();
});

test("clearing neurons are named as such; cancelled wires are shown when asked for, and explained", async () => {
  const page = await open(browser, "shuffle_dyck-2");
  const wires = () => page.locator(".edge").count();
  const few = await wires();
  await page.getByRole("button", { name: "BOS, PAD and cancelled wiring" }).click();
  assert.ok((await wires()) > few);
  const node = page.locator(".node", { hasText: /^clears tokens/ });
  await node.hover();
  assert.match(await page.textContent(".tooltip"), /^clears tokens, after the last reader/);
  const told = await page.evaluate(() => {
    const texts = new Set();
    for (const path of document.querySelectorAll(".edge.faint .touch")) {
      path.dispatchEvent(new MouseEvent("mousemove", { bubbles: true }));
      texts.add(document.querySelector(".tooltip").textContent);
    }
    return [...texts].join("\n");
  });
  assert.match(told, /tokens, to be cleared/);
  assert.match(told, /\(cancelled: its dimensions were cleared and now hold another variable\)/);
  assert.match(told, /\(cancelled: this clears the old value\)/);
  await node.click();
  assert.match(await page.textContent(".listing li.current"), /^tokens/);
  assert.match(await page.textContent(".part.current"), /clearstokens/);
  await page.locator(".part.current button").click();
  const [from, to] = [
    await page.locator("dialog .down").first().innerText(),
    await page.locator("dialog .across").last().innerText(),
  ];
  assert.deepEqual(from.split("\n"), ["tokens:(", "tokens:)"]);
  assert.deepEqual(to.split("\n"), ["tokens:(", "tokens:)"]);
  await page.close();
});

test("a folded variable says what is read instead", async () => {
  const page = await open(browser, "shuffle_dyck-2");
  await line(page, "bools_open").click();
  assert.match(await page.textContent(".listing li.current"), /folded$/);
  assert.match(await page.textContent(".detail"), /folded into its readers.*they read tokens instead/);
  await page.close();
});

test("an absorbed variable says what became of it", async () => {
  const page = await open(browser, "shuffle_dyck-2");
  await line(page, "map_2").click();
  assert.match(await page.textContent(".listing li.current"), /absorbed$/);
  assert.match(await page.textContent(".detail"), /the optimiser made it part of shuffle_dyck/);
  assert.equal(await page.locator(".detail td button").count(), 0);
  await page.close();
});

test("values in bits are read and patched", async () => {
  const page = await open(browser, "bits");
  assert.deepEqual(await outcome(page, "model"), ["0", "2", "0"]);
  await line(page, "tokens").click();
  assert.match(await page.textContent(".detail .caption"), /stored in bits: 11 directions/);
  assert.deepEqual(await page.locator(".detail tr.model td").allTextContents(), ["7", "1199", "0"]);
  await page.locator(".detail tr.model button").nth(1).click();
  await page.locator(".menu").getByRole("button", { name: "1024", exact: true }).click();
  assert.deepEqual(await outcome(page, "model"), ["0", "2", "0"].with(1, String(1024 % 7)));
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a value in the residual stream can be clicked and patched; a new input clears the patch", async () => {
  const page = await open(browser, "frac_prevs");
  await page.fill("#input", "a a");
  const cell = page.locator(".stream .row.group", { hasText: "is_x" }).locator(".value.fresh").nth(1);
  await cell.click();
  await page.locator(".menu").getByRole("button", { name: "True" }).click();
  assert.deepEqual(await outcome(page, "model"), ["1.0", "0.5"]);
  assert.ok((await page.locator(".stream .value.differs").count()) >= 2);
  await page.fill("#input", "a x");
  assert.deepEqual(await outcome(page, "model"), ["0.0", "0.5"]);
  assert.equal(await page.locator(".note").count(), 0);
  await page.close();
});

test("a patch that leads where no input does says so", async () => {
  const page = await open(browser, "sort");
  await page.fill("#input", "2 4 3 1");
  await line(page, "target_pos").click();
  await page.locator(".detail tr.model button").nth(1).click();
  await page.locator(".menu").getByRole("button", { name: "0", exact: true }).click();
  assert.match(await page.textContent(".verdict"), /With this patch the program has no value/);
  await page.close();
});

test("an input that cannot be is refused with a reason, and nothing breaks", async () => {
  const page = await open(browser, "frac_prevs");
  await page.fill("#input", "x a c x");
  const shown = await outcome(page, "model");
  for (const [text, message] of [
    ["x a q", /“q” \(position 2\) is not in the vocabulary: a b c x/],
    ["x x x x x x", /6 tokens; this model was compiled for at most 5/],
    ["bos x", /Leave out “bos”/],
  ]) {
    await page.fill("#input", text);
    assert.match(await page.textContent("#problem"), message);
    assert.equal(await page.getAttribute("#input", "aria-invalid"), "true");
    assert.deepEqual(await outcome(page, "model"), shown);
  }
  await page.fill("#input", "");
  assert.match(await page.textContent(".verdict"), /No tokens yet/);
  await page.locator(".vocabulary button", { hasText: "x" }).click();
  assert.deepEqual(await outcome(page, "model"), ["1.0"]);
  assert.equal(await page.textContent("#problem"), "");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a program that fails on an input says where", async () => {
  const page = await open(browser, "fails");
  assert.match(await page.textContent(".verdict"), /The program has no value on this input: fails at position 0 fails/);
  await page.fill("#input", "aaab");
  assert.match(await page.textContent(".verdict"), /^✓/);
  await page.close();
});

test("everything by keyboard: input, steps, stream, patch, undo, weights", async () => {
  const page = await open(browser, "frac_prevs");
  await page.keyboard.press("/");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("a x a");
  assert.deepEqual(await outcome(page, "model"), ["0.0", "0.5", "0.3333333333333333"]);
  await page.focus(".listing");
  await page.keyboard.press("Home");
  for (let i = 0; i < 10; i++) await page.keyboard.press("ArrowDown");
  assert.match(await page.textContent(".listing li.current"), /^frac_prevs/);
  assert.equal(await page.evaluate(() => document.activeElement.className), "listing");
  await page.focus(".stream");
  await page.keyboard.press("ArrowDown");
  assert.ok(await page.isVisible(".tooltip"));
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent(".tooltip"), /position 0 \(a\), after embedding/);
  assert.match(await page.textContent(".tooltip"), /written by.*token embedding.*read by.*MLP 0/);
  await page.keyboard.press("Enter");
  assert.ok(await page.isVisible(".menu"));
  await page.keyboard.press("Escape");
  assert.ok(!(await page.isVisible(".menu")));
  await line(page, "is_x").click();
  await page.focus(".detail tr.model button");
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  assert.deepEqual(await outcome(page, "model"), ["1.0", "1.0", "0.6666666666666666"]);
  await page.keyboard.press("Escape");
  assert.deepEqual(await outcome(page, "model"), ["0.0", "0.5", "0.3333333333333333"]);
  await page.focus(".part button");
  await page.keyboard.press("Enter");
  await page.focus("dialog canvas");
  await page.keyboard.press("ArrowDown");
  assert.match(await page.locator("dialog output").first().textContent(), /: -?[\d.e]+$/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("Tab reaches every control, and what has the focus can be seen", async () => {
  const page = await open(browser, "frac_prevs");
  const seen = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const { activeElement: e } = document;
      const outlined = getComputedStyle(e).outlineStyle !== "none";
      return e === document.body ? null : [e.dataset.key ?? (e.id || e.textContent.slice(0, 12)), outlined];
    });
    if (at === null) break;
    assert.ok(at[1], `${at[0]} has the focus but shows nothing`);
    seen.add(at[0]);
  }
  for (const key of ["input", "listing", "step", "value-0", "stream", "node-0", "plumbing"])
    assert.ok(seen.has(key), `${key} is not reached: ${[...seen]}`);
  await page.close();
});

test("a component of the circuit leads to its line and its column", async () => {
  const page = await open(browser, "sort");
  await page.locator(".node", { hasText: "distinct_keys" }).click();
  assert.match(await page.textContent(".listing li.current"), /^distinct_keys/);
  assert.equal(await page.textContent(".stage.lit b"), "MLP 0");
  assert.match(await page.textContent(".stream .focused .name"), /distinct_keys/);
  await page.locator(".node.head", { hasText: /^sort/ }).click();
  assert.equal(await page.locator(".detail .grid").count(), 2);
  await page.close();
});

test("attention: the selector asked for beside the pattern of the head", async () => {
  const page = await open(browser, "frac_prevs");
  await page.fill("#input", "x a");
  await line(page, "frac_prevs").click();
  const cells = await page
    .locator(".grid")
    .evaluateAll((grids) =>
      grids.map((grid) =>
        [...grid.querySelectorAll(".cell")].map((cell) => Number(cell.style.getPropertyValue("--x"))),
      ),
    );
  assert.deepEqual(cells, [
    [1, 0, 1, 1],
    [1, 0, 0, 0, 1, 0, 0, 0.5, 0.5],
  ]);
  await page.close();
});

test("a combined selector: its parts have lines, its heads share it", async () => {
  const page = await open(browser, "composite");
  assert.deepEqual(await page.locator(".listing .selector").allTextContents(), [
    'Select(tokens, indices, lambda k, q: k == "a")',
    "Select(indices, indices, Comparison.LT)",
    "Select(tokens, tokens, Comparison.EQ)",
    "same & before",
    "selector_and | is_a",
  ]);
  await line(page, "mean").click();
  const grids = await page
    .locator(".grid")
    .evaluateAll((all) =>
      all.map((grid) => [...grid.querySelectorAll(".cell")].map((cell) => Number(cell.style.getPropertyValue("--x")))),
    );
  const [asked, ...heads] = grids;
  assert.equal(heads.length, 2);
  const inner = (x) => x.filter((_, i) => i >= 5 && i % 5); // without BOS
  heads.map(inner)[0].forEach((x, i) => assert.equal(Math.round(x + inner(heads[1])[i]), asked[i]));
  assert.match(await page.textContent(".verdict"), /^✓/);
  await page.close();
});

test("weights stand in labelled bases", async () => {
  const page = await open(browser, "frac_prevs");
  await line(page, "frac_prevs").click();
  await page.locator(".part button").last().click();
  const names = await page.locator("dialog .down, dialog .across").allTextContents();
  assert.match(names.join(" "), /indices:0indices:1/);
  assert.match(names.join(" "), /is_x/);
  await page.close();
});

test("200 dimensions: groups are closed at first, and of open ones only the rows in sight are in the document", async () => {
  const page = await open(browser, "large");
  const dimensions = await page.evaluate(() => globalThis.tracr.model.transformer.width);
  assert.ok(dimensions > 200);
  assert.equal(await page.locator(".stream .row.dimension").count(), 0);
  await page.getByRole("button", { name: "open all rows" }).click();
  const rows = await page.locator(".stream .row").count();
  assert.ok(rows > 20 && rows < 120, `${rows} rows`);
  const last = page.locator(".stream .row.group", { hasText: "sort" });
  assert.equal(await last.count(), 0);
  await page.locator(".scroller").evaluate((element) => (element.scrollTop = element.scrollHeight));
  await last.waitFor();
  assert.ok((await page.locator(".stream .row").count()) < 120);
  await page.getByRole("button", { name: "close all" }).click();
  assert.equal(
    await page.locator(".stream .row").count(),
    await page.evaluate(() => globalThis.tracr.model.groups.length),
  );
  assert.deepEqual(page.problems, []);
  await page.close();
});

for (const [width, height] of [
  [360, 740],
  [800, 1000],
  [1440, 900],
  [2400, 1200],
])
  test(`nothing sticks out of a window ${width} wide`, async () => {
    for (const name of ["frac_prevs", "dyck2", "several", "composite", "odd", "shuffle_dyck-2", "bits"]) {
      const page = await open(browser, name, { width, height });
      for (let i = 0; i < 4; i++) await page.keyboard.press("j");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
      const out = await page.evaluate(() => {
        const panels = [...document.querySelectorAll(".program, .detail, .map, .top")];
        return panels.flatMap((panel) =>
          [...panel.querySelectorAll("p, h3, .part, .matrix, .bar")]
            .filter((e) => e.getBoundingClientRect().right > panel.getBoundingClientRect().right + 1)
            .map((e) => e.className || e.tagName),
        );
      });
      assert.deepEqual(out, [], name);
      assert.deepEqual(page.problems, []);
      await page.close();
    }
  });

test("light and dark, by the system and by the button", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await open(browser, "hist"),
    dark = await open(browser, "hist", { scheme: "dark" });
  const [day, night] = [await background(light), await background(dark)];
  assert.notEqual(day, night);
  await light.locator(".theme").click();
  await light.locator(".theme").click();
  assert.equal(await background(light), night);
  await dark.locator(".theme").click();
  assert.equal(await background(dark), day);
  await light.close();
  await dark.close();
});

test("text can be read: contrast of at least 4.5 in both themes", async () => {
  for (const [name, scheme] of ["sort", "shuffle_dyck-2"].flatMap((one) => [
    [one, "light"],
    [one, "dark"],
  ])) {
    const page = await open(browser, name, { scheme });
    const low = await page.evaluate(() => {
      const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
      const light = ([r, g, b]) =>
        [r, g, b]
          .map((x) => x / 255)
          .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
          .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
      const behind = (element) => {
        for (let e = element; e; e = e.parentElement) {
          const color = parse(getComputedStyle(e).backgroundColor);
          if (color.length === 3 || color[3] === 1) return color;
        }
        return [255, 255, 255];
      };
      const found = [];
      for (const element of document.querySelectorAll("main *")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !element.checkVisibility() || element.disabled || element.closest(".grid, .idle")) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5)
          found.push(`${element.className || element.tagName} ${element.textContent.slice(0, 20)}`);
      }
      return found;
    });
    assert.deepEqual(low, [], `${name}, ${scheme}`);
    await page.close();
  }
});

test("odd names and tokens are text, whatever they contain", async () => {
  const page = await open(browser, "odd");
  assert.equal(await page.textContent("h1"), "<img src=x onerror=alert(1)>");
  assert.equal(await page.locator("img, b b").count(), 0);
  await page.fill("#input", "é ☃ </script> &amp;");
  assert.deepEqual(await outcome(page, "model"), ["False", "False", "False"]);
  assert.deepEqual([page.requests, page.problems], [[], []]);
  await page.close();
});

test("several outputs, causal attention, long inputs", async () => {
  const page = await open(browser, "several");
  await page.fill("#input", "7 7 39 7");
  assert.deepEqual(await outcome(page, "model"), ["1", "2", "1", "3", "0.0", "0.5", "2.0", "1.3333333333333333"]);
  await page.fill("#input", Array(30).fill("5").join(" "));
  assert.match(await page.textContent(".verdict"), /^✓/);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a model without layers", async () => {
  const page = await open(browser, "nothing");
  await page.fill("#input", "b a");
  assert.deepEqual(await outcome(page, "model"), ["b", "a"]);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("inside a notebook's frame", async () => {
  const page = await open(browser, "notebook");
  const frame = page.frames().find((candidate) => candidate !== page.mainFrame());
  await frame.fill("#input", "b b");
  assert.deepEqual(await frame.locator(".outcome tr.model td").allTextContents(), ["2", "2"]);
  assert.deepEqual([page.requests.filter((url) => !url.startsWith("about:")), page.problems], [[], []]);
  await page.close();
});
