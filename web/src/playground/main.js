// The page: chooses between the playground and the puzzles by the address's fragment.

import { h, refill } from "../view/dom.js";
import { Api } from "./api.js";
import { dialog } from "./dialog.js";
import { Memory } from "./memory.js";
import { puzzleList } from "./puzzle_list.js";
import { PuzzlePanel } from "./puzzle_panel.js";
import { FIRST } from "./settings.js";
import { fragmentOf, isShared, settingsIn } from "./share.js";
import { Workbench } from "./workbench.js";

class Playground {
  constructor(api, memory) {
    Object.assign(this, { api, memory });
    this.bench = new Workbench(api, (settings) => this.keep(settings));
    this.links = {
      playground: h("a", { href: "#" }, "Playground"),
      puzzles: h("a", { href: "#puzzles" }, "Puzzles"),
    };
    this.list = h("div", {});
    this.elements = [
      h("header", {}, h("h1", {}, "Tracr playground"), h("nav", { "aria-label": "Pages" }, Object.values(this.links))),
      h("main", {}, this.list, this.bench.element),
    ];
  }

  /** Show what the address names. */
  async go(fragment) {
    const puzzle = fragment.startsWith("#puzzle=");
    const puzzles = puzzle || fragment === "#puzzles";
    this.links.playground.setAttribute("aria-current", puzzles ? "false" : "page");
    this.links.puzzles.setAttribute("aria-current", puzzles ? "page" : "false");
    if (!puzzles) return this.showPlayground(fragment);
    try {
      this.puzzles ??= await this.api.puzzles();
    } catch (error) {
      return this.showList(h("p", { class: "status", role: "status" }, error.message));
    }
    if (fragment !== location.hash) return; // the reader went on
    const found = puzzle && this.puzzles.find(({ id }) => `#puzzle=${encodeURIComponent(id)}` === fragment);
    if (found) this.showPuzzle(found);
    else this.showList(puzzleList(this.puzzles, this.memory));
  }

  /** Show a list, or the workbench with or without a puzzle. The workbench is hidden, not removed: its frames stay. */
  arrange({ list = null, panel = null }) {
    const { bench } = this;
    this.panel?.live.stop();
    this.panel = panel;
    refill(this.list, list);
    refill(bench.side, panel?.element);
    bench.element.hidden = Boolean(list);
    bench.toolbar.examples.hidden = Boolean(panel);
    bench.submit = panel && (() => panel.check());
  }

  showPlayground(fragment) {
    this.puzzle = null;
    this.arrange({});
    this.bench.load(settingsIn(fragment) ?? this.memory.draft ?? FIRST);
    if (isShared(fragment) && !settingsIn(fragment))
      dialog("Share", h("p", {}, "The link is damaged: its program cannot be read."));
  }

  showList(list) {
    this.bench.live.stop();
    this.arrange({ list });
  }

  showPuzzle(puzzle) {
    const { bench, memory, api } = this;
    this.puzzle = puzzle;
    const next = this.puzzles[this.puzzles.indexOf(puzzle) + 1];
    const say = (error) => bench.fail(error);
    this.arrange({ panel: new PuzzlePanel(puzzle, next, { api, memory, bench, say }) });
    const { vocab, max_len, starter } = puzzle;
    const input = puzzle.examples[0]?.input ?? null;
    const source = memory.puzzle(puzzle.id).source ?? starter;
    bench.load({ ...FIRST, source, vocab, max_len, input }, { locked: true });
  }

  /** Remember what the reader wrote. */
  keep(settings) {
    if (this.puzzle) return this.keepPuzzle(settings.source);
    if (isShared(location.hash)) {
      if (fragmentOf(settings) === location.hash) return;
      history.replaceState(null, "", location.pathname);
    }
    this.memory.draft = settings;
  }

  keepPuzzle(source) {
    const { id, starter } = this.puzzle;
    if (source !== starter || this.memory.puzzle(id).source !== null) this.memory.remember(id, { source });
  }
}

/** A random name for this tab. */
function tabName() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const playground = new Playground(new Api((...given) => fetch(...given), tabName()), new Memory(() => localStorage));
document.body.append(...playground.elements);
playground.go(location.hash);
addEventListener("hashchange", () => playground.go(location.hash));
