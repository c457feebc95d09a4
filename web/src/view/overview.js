// Circuit and residual stream in one picture: they share their columns, one for each sub-layer, left to right.

import { circuit } from "./circuit.js";
import { layout } from "./columns.js";
import { classes, h, refill } from "./dom.js";
import { stageName } from "./names.js";
import { streamCaption } from "./cell_text.js";
import { Stream } from "./stream.js";

export class Overview {
  constructor(state, page) {
    this.state = state;
    this.page = page;
    this.stream = new Stream(state, page);
    this.head = h("div", { class: "stages" });
    this.graph = h("div", {});
    this.scroller = h("div", { class: "scroller" }, this.head, this.graph, this.stream.element);
    this.scroller.addEventListener("scroll", () => {
      page.tooltip.hide();
      this.stream.render();
    });
    this.tools = h("div", { class: "tools" });
    this.element = h(
      "section",
      { class: "map", "aria-label": "Circuit and residual stream" },
      h("div", { class: "bar" }, h("h2", {}, "How the transformer computes it"), this.tools),
      h(
        "p",
        { class: "caption" },
        "Left to right, one column for each sub-layer. Above is the circuit: the components, and the variables they pass to each other. Below is the residual stream: the value of every variable after each sub-layer, token by token. ",
        streamCaption(state.model),
      ),
      this.scroller,
      legend(state.model),
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
    const plan = layout(model, state.tokens.length + 1, this.width || 900);
    const lit = new Set([...state.lit].map((part) => model.components[part].stage));
    refill(
      this.tools,
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
  }

  /** Make a choice without scrolling: the chosen item is already in view. */
  stay(choose) {
    this.staying = true;
    choose();
    this.staying = false;
  }

  /** Scroll sideways to the current component. */
  reveal(plan) {
    this.shown = this.state.component;
    if (this.shown === null || this.staying) return;
    const { x, width } = plan.columns[this.state.model.components[this.shown].stage];
    const { scrollLeft, clientWidth } = this.scroller;
    if (x < scrollLeft + plan.label || x + width > scrollLeft + clientWidth)
      this.scroller.scrollLeft = x - plan.label - Math.max(0, (clientWidth - plan.label - width) / 2);
  }
}

function stageHead(state, column, plan, lit) {
  const { model } = state;
  const name = stageName(column.stage, model.transformer.stages);
  const tokens = [model.bos, ...state.tokens.map((code) => model.vocab[code].text)];
  return h(
    "div",
    {
      class: classes("stage", !column.works && "idle", lit.has(column.stage) && "lit"),
      style: `left:${column.x}px;width:${column.width}px`,
      title: column.works ? name : `${name} is a no-op`,
    },
    h("b", {}, column.works ? name : "—"),
    column.cells &&
      h(
        "span",
        { class: "tokens" },
        tokens.map((token, p) => h("span", { class: p ? "" : "bos", style: `width:${plan.cell}px` }, token)),
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
