// The explorer of one model: builds the views, and keeps them up to date.

import { Player } from "./player.js";
import { State } from "./state.js";
import { Coupling } from "./view/coupling.js";
import { h, reachable, refill } from "./view/dom.js";
import { header } from "./view/header.js";
import { InputBar } from "./view/input_bar.js";
import { inspector } from "./view/inspector.js";
import { Overview } from "./view/overview.js";
import { PatchMenu } from "./view/patch_menu.js";
import { patchNote } from "./view/patch_note.js";
import { listing, written } from "./view/program.js";
import { results } from "./view/results.js";
import { Tour } from "./view/tour.js";
import { Tooltip } from "./view/tooltip.js";
import { Weights } from "./view/weights.js";

export class Page {
  /** Build the views in `root`. `whole`: it is the whole page; `prefix` makes the ids of several explorers differ. */
  constructor(root, model, { whole, prefix }) {
    this.prefix = prefix;
    this.root = root;
    this.changed = () => {}; // called after every change
    this.leaving = new AbortController();
    this.state = new State(model, () => {
      this.update();
      this.changed();
    });
    this.tooltip = new Tooltip();
    this.live = h("div", { class: "unseen", "aria-live": "polite" });
    this.coupling = new Coupling(root, this.signal);
    this.tour = new Tour(this);
    this.player = new Player(this);
    this.patchMenu = new PatchMenu(this.state, this);
    this.weights = new Weights(model, this.tooltip);
    this.inputBar = new InputBar(this.state, this);
    this.overview = new Overview(this.state, this);
    this.results = h("section", { class: "outcome", "aria-label": "Output" });
    this.note = h("div", { class: "notes", role: "status" });
    this.panels = h("nav", { class: "panels", "aria-label": "Parts of the page" });
    this.program = h("section", { class: "program", "aria-label": "Program" });
    this.detail = h("section", { class: "detail", "aria-label": "The current line" });
    this.element = h(
      "div",
      { class: "page" },
      header(model, whole, [this.tour.offer(whole)]),
      h("div", { class: "top" }, this.inputBar.element, this.results),
      this.panels,
      (this.body = h(
        "div",
        { class: "body" },
        h("div", { class: "left" }, this.program, this.detail),
        this.overview.element,
      )),
      this.note,
    );
    const frame = h("div", { class: "frame" }, this.element);
    const floating = [this.live, this.tooltip.element, this.patchMenu.element, this.weights.element, this.tour.card];
    this.shell = h(whole ? "main" : "div", {}, frame, floating);
    root.append(this.shell);
    const keys = whole ? document : root;
    keys.addEventListener("keydown", (event) => this.keydown(event), { signal: this.signal });
  }

  /** Aborted when the explorer is removed. */
  get signal() {
    return this.leaving.signal;
  }

  /** The id of an element, unlike those of other explorers in the document. */
  id(name) {
    return this.prefix + name;
  }

  remove() {
    this.leaving.abort();
    this.overview.remove();
    this.shell.remove();
  }

  update() {
    const { state } = this;
    this.inputBar.update();
    refill(this.results, results(state));
    refill(this.note, patchNote(state, this));
    this.updateProgram();
    this.updatePanels();
    const table = this.detail.querySelector("details")?.open;
    refill(this.detail, inspector(state, this));
    if (table && this.detail.querySelector("details")) this.detail.querySelector("details").open = true;
    this.overview.update();
    this.coupling.apply();
    reachable(this.element);
  }

  /** A button that goes to the next line of the program, or to the line before. */
  step(by, text, key) {
    const { state } = this;
    const end = by < 0 ? 0 : state.model.lines.length - 1;
    const attributes = { type: "button", disabled: state.line === end, data: { key } };
    return h("button", { ...attributes, on: { click: () => state.select(state.line + by) } }, text);
  }

  updateProgram() {
    const { state } = this;
    const scrolled = this.program.querySelector(".listing")?.scrollTop ?? 0;
    refill(
      this.program,
      h(
        "div",
        { class: "bar" },
        h("h2", {}, "The program"),
        h(
          "div",
          { class: "tools" },
          state.model.source &&
            h(
              "button",
              {
                type: "button",
                "aria-pressed": String(state.written),
                data: { key: "written-toggle" },
                on: { click: () => state.toggle("written") },
              },
              "as written",
            ),
          this.step(-1, "◂ back", "back"),
          this.step(1, "step ▸", "step"),
          h(
            "button",
            { type: "button", data: { key: "play-all" }, on: { click: () => this.player.toggle() } },
            this.player.playing ? "❚❚ pause" : "▶ play",
          ),
        ),
      ),
      state.written ? written(state) : listing(state, this),
    );
    const list = this.program.querySelector(".listing");
    list.scrollTop = scrolled;
    const current = list.querySelector(".current");
    if (
      current &&
      (current.offsetTop < list.scrollTop ||
        current.offsetTop + current.offsetHeight > list.scrollTop + list.clientHeight)
    )
      list.scrollTop = current.offsetTop - list.clientHeight / 2;
  }

  /** The buttons that choose the part of the page shown in a narrow window. */
  updatePanels() {
    const { state } = this;
    const names = { program: "program", detail: state.current.label, map: "circuit" };
    this.body.dataset.panel = state.panel;
    const narrow = (button, name) => {
      button.classList.add("narrow");
      button.setAttribute("aria-label", name);
      return button;
    };
    refill(
      this.panels,
      narrow(this.step(-1, "◂", "back-narrow"), "the line before"),
      Object.entries(names).map(([name, text]) =>
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(state.panel === name),
            data: { key: `panel-${name}` },
            on: { click: () => state.set("panel", name) },
          },
          text,
        ),
      ),
      narrow(this.step(1, "▸", "step-narrow"), "the next line"),
    );
  }

  say(text) {
    this.live.textContent = text;
  }

  /** Keys that work everywhere, unless another element handles them. */
  keydown(event) {
    if (event.target.closest?.("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown" || event.key === "j") this.state.select(this.state.line + 1);
    else if (event.key === "ArrowUp" || event.key === "k") this.state.select(this.state.line - 1);
    else if (event.key === "p") this.player.toggle();
    else if (event.key === "n" || event.key === "b") this.player.move(event.key === "n" ? 1 : -1);
    else if (event.key === "/") this.inputBar.field.focus();
    else if (event.key === "Escape" && this.state.patches.length) this.state.unpatch();
    else return;
    event.preventDefault();
  }
}
