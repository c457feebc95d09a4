// Circuit and residual stream in one picture: they share their columns, one for each sub-layer, left to right.

import { circuit } from "./circuit.js";
import { layout } from "./columns.js";
import { classes, h, refill } from "./dom.js";
import { shortStageName, stageName } from "./names.js";
import { streamCaption } from "./cell_text.js";
import { Stream } from "./stream.js";

const NARROW = 70; // a column that is narrower has a short name
const NEAR = 260; // a component this far below the top of the picture is in sight

export class Overview {
  constructor(state, page) {
    this.state = state;
    this.page = page;
    this.stream = new Stream(state, page);
    this.head = h("div", { class: "stages" });
    this.graph = h("div", {});
    this.pin = h("div", { class: "pin", "aria-hidden": "true" });
    this.scroller = h("div", { class: "scroller" }, this.head, this.graph, this.stream.element, this.pin);
    this.scroller.addEventListener("scroll", () => {
      page.tooltip.hide();
      this.stream.render();
      this.keepInView();
    });
    this.tools = h("div", { class: "tools" });
    this.element = h(
      "section",
      { class: "map", "aria-label": "Circuit and residual stream" },
      h("div", { class: "bar" }, h("h2", {}, "How the transformer computes it"), this.tools),
      this.scroller,
      legend(state.model),
      h(
        "p",
        { class: "caption" },
        "One column for each sub-layer. Above is the circuit: the components, and the variables they pass to each other. Below is the residual stream: the value of every variable after each sub-layer, token by token. ",
        streamCaption(state.model),
      ),
    );
    this.observer = new ResizeObserver(() => {
      if (this.scroller.clientWidth !== this.width) this.update();
    });
    this.observer.observe(this.scroller);
  }

  remove() {
    this.observer.disconnect();
  }

  update() {
    const { state, page } = this;
    const { model } = state;
    this.width = this.scroller.clientWidth;
    const plan = layout(model, state.tokens.length + 1, this.width || 900, state.fit);
    this.plan = plan;
    const lit = new Set([...state.lit].map((part) => model.components[part].stage));
    const fit = state.fit ?? plan.fitted;
    refill(
      this.tools,
      button("fit width", fit, () => state.set("fit", !fit), "fit"),
      button(plumbing(model), state.plumbing, () => state.toggle("plumbing"), "plumbing"),
      button("open all rows", null, () => state.openAll(true), "open"),
      button("close all", null, () => state.openAll(false), "close"),
    );
    refill(
      this.head,
      h("div", { class: "corner", style: `width:${plan.label}px` }),
      plan.columns.map((column) => stageHead(state, column, plan, lit)),
    );
    this.head.style.width = `${plan.width}px`;
    refill(this.graph, circuit(state, plan, page));
    this.stream.update(plan, this.scroller);
    if (state.component !== this.shown) this.reveal(plan);
    this.keepInView();
  }

  /** Repeat the row of the current variable at the bottom while it is scrolled out of sight. */
  keepInView() {
    const { current, model } = this.state;
    const sop = current.kind === "sop" ? current.id : null;
    const group = sop === null ? null : (model.groupOfSop.get(sop) ?? null);
    const row = group && this.stream.rows.find((one) => one.group === group && !one.dimension);
    const { scrollTop, clientHeight } = this.scroller;
    const top = row && this.stream.element.offsetTop + row.top;
    const seen = !row || (top >= scrollTop && top + row.height <= scrollTop + clientHeight);
    const key = seen ? "" : `${group.number} ${this.stream.window}`;
    if (key === this.pinned && key === "") return;
    this.pinned = key;
    this.pin.replaceChildren(...(seen ? [] : [this.stream.copy(row)]));
    this.page.coupling.apply();
  }

  /** Make a choice without scrolling: the chosen item is already in view. */
  stay(choose) {
    this.staying = true;
    choose();
    this.staying = false;
  }

  /** Scroll to the current component. */
  reveal(plan) {
    this.shown = this.state.component;
    if (this.shown === null || this.staying) return;
    const node = this.graph.querySelector(`[data-key="node-${this.shown}"]`);
    if (node && (node.offsetTop < this.scroller.scrollTop || node.offsetTop > this.scroller.scrollTop + NEAR))
      this.scroller.scrollTop = Math.max(0, node.offsetTop - NEAR / 2);
    const { x, width } = plan.columns[this.state.model.components[this.shown].stage];
    const { scrollLeft, clientWidth } = this.scroller;
    if (x < scrollLeft + plan.label || x + width > scrollLeft + clientWidth)
      this.scroller.scrollLeft = x - plan.label - Math.max(0, (clientWidth - plan.label - width) / 2);
  }
}

function stageHead(state, column, plan, lit) {
  const { model } = state;
  const name = stageName(column.stage, model.transformer.stages);
  const shown = plan.fitted ? shortStageName(column.stage, model.transformer.stages, column.width < NARROW) : name;
  const tokens = [model.bos, ...state.tokens.map((code) => model.vocab[code].text)];
  return h(
    "div",
    {
      class: classes("stage", !column.works && "idle", lit.has(column.stage) && "lit"),
      style: `left:${column.x}px;width:${column.width}px`,
      title: column.works ? name : `${name} is a no-op`,
    },
    h("b", {}, column.works ? shown : "—"),
    column.cells &&
      h(
        "span",
        { class: "tokens" },
        tokens.map((token, p) =>
          h("span", { class: p ? "" : "bos", style: `width:${plan.cell}px`, data: { at: p } }, plan.legible ? token : ""),
        ),
      ),
  );
}

function button(text, pressed, act, key) {
  return h(
    "button",
    { type: "button", "aria-pressed": pressed === null ? null : String(pressed), data: { key }, on: { click: act } },
    text,
  );
}

/** The name of the wires that are hidden at first. */
function plumbing({ edges }) {
  return edges.some((edge) => edge.cancelled) ? "BOS, PAD and cancelled wiring" : "BOS and PAD wiring";
}

function legend(model) {
  const item = (name, text) => h("span", {}, h("i", { class: name }), text);
  return h(
    "p",
    { class: "legend" },
    item("positive", "positive"),
    item("negative", "negative"),
    item("changed", "changed by this sub-layer"),
    item("differs", "changed by your patch"),
    item("absent", `not written yet${model.shared ? ", or cleared" : ""}`),
  );
}
