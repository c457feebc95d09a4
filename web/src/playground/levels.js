// The same program at levels 0, 1 and 2, side by side: sizes, and an explorer for each.

import { h, refill } from "../view/dom.js";
import { ExplorerFrame } from "./explorer_frame.js";
import { Live } from "./live.js";
import { LEVELS } from "./settings.js";

const SIZES = ["layers", "heads", "dimensions", "parameters"];

export class Levels {
  constructor(api) {
    this.status = h("p", { class: "status", role: "status" });
    this.table = h("div", { class: "scrolling" });
    this.frames = LEVELS.map((level) => new ExplorerFrame(`Explorer at level ${level}`));
    const column = (frame, level) =>
      h("section", { "aria-label": `Level ${level}` }, h("h2", {}, `Level ${level}`), frame.element);
    this.element = h(
      "div",
      { class: "levels" },
      this.status,
      this.table,
      h("div", { class: "columns" }, this.frames.map(column)),
    );
    this.live = new Live((settings, signal) => api.levels(settings, signal), {
      slow: () => (this.status.textContent = "Compiling three levels…"),
      waiting: (words) => (this.status.textContent = words),
      failed: (error) => this.fail(error),
      done: ({ levels }) => this.show(levels),
    });
  }

  /** Compile at every level, unless it was done for these settings. */
  ask(settings) {
    const key = JSON.stringify({ ...settings, level: 0 });
    if (key === this.key) return;
    this.key = key;
    this.live.now(settings);
  }

  fail(error) {
    this.key = null; // asked again when the tab is opened
    this.status.textContent = error.message;
  }

  show(levels) {
    this.status.textContent = "";
    refill(this.table, comparison(levels));
    for (const { level, explorer } of levels) this.frames[LEVELS.indexOf(level)]?.show(explorer);
  }
}

function comparison(levels) {
  const head = (text, scope) => h("th", { scope }, text);
  return h(
    "table",
    { class: "sizes" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("td", {}),
        levels.map(({ level }) => head(`level ${level}`, "col")),
      ),
    ),
    h(
      "tbody",
      {},
      SIZES.map((size) =>
        h(
          "tr",
          {},
          head(size, "row"),
          levels.map(({ summary }) => h("td", {}, summary[size].toLocaleString("en"))),
        ),
      ),
    ),
  );
}
