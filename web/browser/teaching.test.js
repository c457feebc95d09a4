// The explorer as a reader learns with it: words of the source, things that light up together, steps, tour, address,
// phones.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, outcome } from "./browser.js";

const line = (page, label) =>
  page.locator(".listing li").filter({ has: page.locator("b", { hasText: new RegExp(`^${label}$`) }) });

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

// Mended

for (const level of [1, 2])
  test(`"as written": every step marks its words in the source (addition.rasp, level ${level})`, async () => {
    const page = await open(browser, `rasp-addition-${level}`);
    await page.getByRole("button", { name: "as written" }).click();
    const { lines, source } = await page.evaluate(() => globalThis.tracr.model);
    for (let i = 0; i < 40; i++) await page.keyboard.press("k");
    let marked = 0;
    for (const { label, row, span } of lines) {
      const shown = await page.locator(".written .current .row").allTextContents();
      const words = await page.locator(".written mark").allTextContents();
      if (row === null) assert.ok(["tokens", "indices", "length"].includes(label), label);
      else {
        assert.deepEqual(shown, [String(row)], label);
        assert.deepEqual(words, [source.slice(...span)], label);
        marked++;
      }
      await page.keyboard.press("j");
    }
    assert.ok(marked >= 29, `${marked} of ${lines.length}`);
    await page.close();
  });

test("a page of level 2 opens on a line that components compute", async () => {
  for (const name of ["rasp-addition-2", "rasp-dyck1-2", "shuffle_dyck-2", "hist2-2", "sort_freq-2"]) {
    const page = await open(browser, name);
    assert.doesNotMatch(await page.textContent(".listing li.current"), /(folded|absorbed)$/, name);
    assert.ok((await page.locator(".node.current").count()) === 1, name);
    await page.close();
  }
});

test("selector and attention: a query and a key have the same place in both grids", async () => {
  const page = await open(browser, "frac_prevs");
  await line(page, "frac_prevs").click();
  const boxes = await page.locator(".detail .grid").evaluateAll((grids) =>
    grids.map((grid) => {
      const base = grid.getBoundingClientRect();
      const cell = (q, k) => grid.querySelector(`[data-row="${q}"][data-column="${k}"]`).getBoundingClientRect();
      return [base.top, ...[cell(1, 1), cell(3, 2)].flatMap((box) => [box.left - base.left, box.top - base.top])];
    }),
  );
  assert.equal(boxes.length, 2);
  assert.deepEqual(boxes[0], boxes[1]);
  await page.close();
});

test("a tooltip names the readers that the circuit shows, and BOS and PAD apart", async () => {
  const page = await open(browser, "sort");
  const row = (label) =>
    page.locator(".stream .row.group", { has: page.locator(".text", { hasText: new RegExp(`^${label}$`) }) });
  await row("tokens").locator(".name").hover();
  const told = await page.textContent(".tooltip");
  const [, readers, special] = /read by(.*)BOS and PADtheir directions are read by (.*)$/.exec(told);
  await line(page, "tokens").click();
  const wires = await page.locator(".part", { hasText: "Token embedding" }).locator("dt:text('read by') + dd").textContent();
  const bare = (text) => text.replaceAll(/ \((query|key|value)\)/g, "");
  assert.deepEqual(new Set(bare(readers).split(/, | and /)), new Set(wires.split(/, | and /)));
  assert.match(special, /head 0/);
  await page.close();
});

test("names that are cut differ, in the circuit and in the stream", async () => {
  for (const width of [390, 1440]) {
    const page = await open(browser, "rasp-addition-2", { width });
    if (width === 390) await page.locator("[data-key=panel-map]").click();
    for (const fit of [false, true]) {
      if (fit) await page.locator("[data-key=fit]").click();
      const names = await page.evaluate(() => {
        const texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
        return [texts(".node:not(.unembedding) b"), texts(".stream .group .name .text")];
      });
      for (const all of names) assert.equal(new Set(all).size, all.length, `${width} ${fit}: ${all}`);
    }
    await page.close();
  }
});

test("nothing jumps: steps, a patch and a mistake leave program, circuit and input where they are", async () => {
  const page = await open(browser, "frac_prevs");
  const places = () =>
    page.evaluate(() =>
      [".input", "section.program", ".detail", ".map", ".stream", ".stages", ".legend"].map((name) => {
        const { left, top } = document.querySelector(name).getBoundingClientRect();
        return [name, Math.round(left), Math.round(top)];
      }),
    );
  const at = await places();
  for (let i = 0; i < 5; i++) {
    await page.keyboard.press(i < 3 ? "j" : "k");
    assert.deepEqual(await places(), at, `step ${i}`);
  }
  await line(page, "is_x").click();
  await page.locator(".detail tr.model button").first().click();
  await page.locator(".menu").getByRole("button", { name: "True" }).click();
  assert.deepEqual(await places(), at, "a patch");
  await page.keyboard.press("Escape");
  await page.fill("#input", "x y");
  assert.deepEqual(await places(), at, "a mistake");
  await page.close();
});

test("no text that only the compiler understands", async () => {
  for (const name of ["rasp-dyck1-1", "rasp-dyck1-2", "rasp-dyck2-2", "hist2", "dyck2"]) {
    const page = await open(browser, name);
    const texts = await page.evaluate(() => {
      const all = [document.querySelector(".listing").textContent];
      for (const node of document.querySelectorAll(".node")) {
        node.dispatchEvent(new MouseEvent("mouseenter"));
        all.push(document.querySelector(".tooltip").textContent);
      }
      return all;
    });
    for (const text of texts) assert.doesNotMatch(text, / then |c\/\(c\+w\)|\d\*\w/, `${name}: ${text}`);
    await page.close();
  }
});

// Coupling

test("a token, its row of attention and its cells light up together; so do a variable, its line and its wires", async () => {
  const page = await open(browser, "frac_prevs");
  await page.fill("#input", "x a c");
  await line(page, "frac_prevs").click();
  const lit = (kind) =>
    page.evaluate((name) => {
      const kinds = (element) =>
        ["outcome", "grid", "stages", "stream", "listing", "circuit", "detail"].find((one) => element.closest(`.${one}`));
      return [...new Set([...document.querySelectorAll(`.${name}`)].map(kinds))].sort();
    }, kind);
  await page.hover(".outcome .tokens td >> nth=1");
  assert.deepEqual(await lit("hot"), ["detail", "grid", "outcome", "stages", "stream"]);
  assert.equal(await page.locator(".detail .grid >> nth=1 >> .cell.hot").count(), 4); // the row of the query, BOS too
  await page.hover(".detail .grid >> nth=1 >> [data-row='3'][data-column='2']");
  assert.equal(await page.textContent(".outcome .tokens .hot"), "c");
  assert.equal(await page.textContent(".grid .axis.hot-key >> nth=0"), "a");
  await page.hover(".stream .row.group[data-sop] .value.fresh >> nth=2");
  assert.deepEqual(await lit("hot-line"), ["circuit", "listing", "stream"]);
  await page.focus(".stream");
  for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key); // position 0 of a row
  assert.equal(await page.textContent(".outcome .tokens .hot"), "x");
  await page.mouse.move(2, 2);
  assert.equal(await page.locator(".hot-line").count(), 0);
  await page.close();
});

test("the source lines light up too", async () => {
  const page = await open(browser, "rasp-dyck1-1");
  await page.getByRole("button", { name: "as written" }).click();
  await page.locator(".node", { hasText: /^depth/ }).hover();
  assert.deepEqual(await page.locator(".written .hot-line .row").allTextContents(), ["7"]);
  await page.close();
});

test("the current variable stays in view, however far the stream is scrolled", async () => {
  const page = await open(browser, "large");
  await page.getByRole("button", { name: "open all rows" }).click();
  await line(page, "target_pos").click();
  for (const top of [0, 1500, 4000]) {
    await page.locator(".scroller").evaluate((element, y) => (element.scrollTop = y), top);
    await page.waitForTimeout(50);
    const seen = await page.evaluate(() => {
      const { top: low, bottom: high } = document.querySelector(".scroller").getBoundingClientRect();
      return [...document.querySelectorAll(".row.group.focused")].some((row) => {
        const box = row.getBoundingClientRect();
        return row.textContent.includes("target_pos") && box.top >= low && box.bottom <= high + 1;
      });
    });
    assert.ok(seen, `scrolled by ${top}`);
  }
  await page.close();
});

test("details are beside the circuit, in the first window", async () => {
  const page = await open(browser, "sort");
  await line(page, "sort").click();
  const [detail, map] = await Promise.all([".detail", ".map"].map((name) => page.locator(name).boundingBox()));
  assert.ok(detail.x + detail.width <= map.x);
  const grid = await page.locator(".detail .grid").first().boundingBox();
  assert.ok(grid.y + 60 < 900);
  await page.close();
});

// The address

test("the address holds the choices, and a link restores them", async () => {
  const page = await open(browser, "frac_prevs");
  await page.fill("#input", "a a x");
  await line(page, "is_x").click();
  await page.locator(".detail tr.model button").first().click();
  await page.locator(".menu").getByRole("button", { name: "True" }).click();
  await page.locator("[data-key=plumbing]").click();
  await page.locator("[data-key=fit]").click();
  await page.locator("[data-key=position]").selectOption("1");
  const [shown, link] = [await outcome(page, "model"), await page.evaluate(() => location.href)];
  const other = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await other.goto(link);
  assert.deepEqual(await outcome(other, "model"), shown);
  assert.match(await other.textContent(".listing li.current"), /^is_x/);
  assert.match(await other.textContent(".note"), /is_x at position 0/);
  for (const key of ["plumbing", "fit"]) assert.equal(await other.getAttribute(`[data-key=${key}]`, "aria-pressed"), "true");
  assert.equal(await other.inputValue("[data-key=position]"), "1");
  await other.evaluate(() => (location.hash = "#input=x&line=frac_prevs"));
  await other.waitForFunction(() => document.querySelector("#input").value === "x");
  assert.match(await other.textContent(".listing li.current"), /^frac_prevs/);
  await other.close();
  await page.close();
});

test("an address that does not fit the model is no harm", async () => {
  const page = await open(browser, "frac_prevs");
  const url = page.url();
  for (const fragment of ["#input=q+q&line=nothing&at=99&patch=%5B%22is_x%22,7,%22True%22%5D&fit=maybe&panel=x", "#section"]) {
    await page.goto("about:blank");
    await page.goto(url + fragment);
    assert.match(await page.textContent(".verdict"), /^✓/);
    assert.equal(await page.locator(".note").count(), 0);
  }
  assert.deepEqual(page.problems, []);
  await page.close();
});

// Steps

test("a head step by step: query, scores, softmax, weighted sum, in numbers that add up", async () => {
  const page = await open(browser, "frac_prevs");
  await page.fill("#input", "x a c");
  await line(page, "frac_prevs").click();
  const told = () => page.textContent(".told");
  const columns = () =>
    page.locator(".numbers tr").evaluateAll((all) => {
      const rows = all.map((row) => [...row.children]);
      return rows[0].slice(1).map((head, k) => [head.className, rows.slice(1).map((row) => row[k + 1].textContent)]);
    });
  const expected = [/^1 of 5\. The query is made at position 2/, /^2 of 5.*score/, /^3 of 5\. Softmax/, /^4 of 5.*multiplied by its weight/, /^5 of 5.*frac_prevs = 0\.33/];
  for (const [step, pattern] of expected.entries()) {
    await page.locator("[data-key=step-on]").click();
    assert.match(await told(), pattern);
    const later = (await columns()).filter(([kind]) => kind.includes("later")).length;
    assert.equal(later, [4, 3, 2, 0, 0][step]);
  }
  const [[, scores], [, weights], [, values], [, products]] = await columns();
  assert.equal(scores.length, 5); // BOS, three keys and the sum
  assert.deepEqual(weights, ["0", "0.33", "0.33", "0.33", "1"]);
  assert.deepEqual(values.slice(1, 4), ["1", "0", "0"]);
  assert.equal(products.at(-1), "0.33");
  const wide = await page.locator(".walk .scroll").evaluate((box) => box.scrollWidth > box.clientWidth);
  assert.equal(wide, false); // no number is hidden
  assert.equal(await page.locator(".detail .grid .query").first().getAttribute("data-row"), "3");
  await page.locator("[data-key=step-on]").click(); // the next component: the unembedding
  assert.match(await told(), /^1 of 1\. The unembedding reads/);
  await page.locator("[data-key=step-back]").click();
  assert.match(await told(), /^5 of 5/);
  await page.locator("[data-key=position]").selectOption("0");
  assert.match(await page.locator(".told").textContent(), /position 0/);
  await page.close();
});

test("play: values travel along wires; with less motion asked for, only the steps change", async () => {
  for (const [motion, moving] of [
    ["no-preference", true],
    ["reduce", false],
  ]) {
    const page = await open(browser, "frac_prevs");
    await page.emulateMedia({ reducedMotion: motion });
    await line(page, "is_x").click();
    await page.evaluate(() => {
      const text = (selector) => document.querySelector(selector).textContent;
      const frames = (globalThis.frames_seen = []); // all of them: on a busy machine a packet is gone between two questions
      const look = () => {
        const packet = document.querySelector(".packet");
        frames.push({
          x: packet ? packet.getBoundingClientRect().x : null,
          told: text(".told"),
          button: text("[data-key=play-all]"),
          spoken: text("[aria-live=polite].unseen"),
        });
        requestAnimationFrame(look);
      };
      look();
    });
    await page.keyboard.press("p");
    await page.waitForFunction(() => document.querySelector(".told").textContent.startsWith("2 of 2"));
    await page.keyboard.press("p");
    assert.equal(await page.textContent("[data-key=play-all]"), "▶ play");
    const frames = (await page.evaluate(() => globalThis.frames_seen)).filter(({ told }) => told.startsWith("1 of 2"));
    const places = frames.map(({ x }) => x).filter((x) => x !== null);
    assert.equal(places.length > 0, moving, motion);
    if (moving) assert.ok(Math.max(...places) > places[0] + 5);
    assert.match(frames.at(-1).told, /^1 of 2\. The neurons read tokens/);
    assert.equal(frames.at(-1).button, "❚❚ pause");
    assert.match(frames.at(-1).spoken, /The neurons read tokens/);
    assert.deepEqual(page.problems, []);
    await page.close();
  }
});

// The tour

test("the tour is offered once, leads through the page, and is remembered", async () => {
  const page = await open(browser, "sort");
  await page.getByRole("button", { name: "Take the tour" }).click();
  const titles = [];
  for (let stop = 0; stop < 12 && (await page.locator(".tour:visible").count()); stop++) {
    titles.push(await page.textContent(".tour h3"));
    assert.equal(await page.locator(".toured").count(), 1);
    const box = await page.locator(".tour").boundingBox();
    assert.ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= 1440 && box.y + box.height <= 900, titles.at(-1));
    assert.ok(await page.evaluate(() => document.activeElement.closest(".tour") !== null));
    await page.keyboard.press("Enter"); // next
  }
  for (const word of ["residual stream", "BOS", "Heads"]) assert.ok(titles.some((title) => title.includes(word)), word);
  assert.equal(await page.locator(".toured").count(), 0);
  await page.reload();
  assert.equal(await page.getByRole("button", { name: "Take the tour" }).count(), 0);
  await page.getByRole("button", { name: "tour", exact: true }).click();
  await page.keyboard.press("Escape");
  assert.ok(await page.locator(".tour").isHidden());
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("the tour can be declined", async () => {
  const context = await browser.newContext();
  const page = await open(context, "sort");
  await page.getByRole("button", { name: "no, thanks" }).click();
  assert.equal(await page.getByText("New here?").count(), 0);
  await page.reload();
  assert.equal(await page.getByText("New here?").count(), 0);
  await context.close();
});

// Sizes and access

test("a phone: one part at a time, nothing sticks out, and the circuit can fit", async () => {
  const page = await open(browser, "sort", { width: 390, height: 844 });
  const seen = async () => {
    const parts = ["section.program", ".detail", ".map"];
    const visible = await Promise.all(parts.map((name) => page.locator(name).isVisible()));
    return parts.filter((_, i) => visible[i]);
  };
  assert.deepEqual(await seen(), ["section.program"]);
  await page.locator("[data-key=step-narrow]").click();
  await page.locator("[data-key=panel-detail]").click();
  assert.deepEqual(await seen(), [".detail"]);
  await page.locator("[data-key=panel-map]").click();
  assert.deepEqual(await seen(), [".map"]);
  await page.locator("[data-key=fit]").click();
  const wide = await page.locator(".scroller").evaluate((one) => [one.scrollWidth, one.clientWidth]);
  assert.ok(wide[0] <= wide[1] + 1, `${wide}`);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390));
  for (const button of await page.locator(".panels button, .program .tools button").all())
    if (await button.isVisible()) assert.ok((await button.boundingBox()).height >= 32);
  await page.close();
});

test("long inputs: fitted, the whole stream is in the window, and its values are colours with tooltips", async () => {
  const page = await open(browser, "several");
  await page.fill("#input", Array.from({ length: 30 }, (_, i) => i % 7).join(" "));
  if ((await page.getAttribute("[data-key=fit]", "aria-pressed")) !== "true") await page.locator("[data-key=fit]").click();
  const wide = await page.locator(".scroller").evaluate((one) => [one.scrollWidth, one.clientWidth]);
  assert.ok(wide[0] <= wide[1] + 1, `${wide}`);
  assert.ok((await page.locator(".stream .tick").count()) > 100);
  await page.locator(".stream .row.group .tick").nth(12).hover();
  assert.match(await page.textContent(".tooltip"), /position 11 \(4\), after embedding/);
  await page.close();
});
