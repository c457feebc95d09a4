// Several models in one page: a table of them, and one or two explorers that share their input and their line.

import { choicesIn, fragmentOf } from "./address.js";
import { readInput } from "./core/input.js";
import { loadModel } from "./core/model.js";
import { TwinModel } from "./core/twin.js";
import { mount, style } from "./explorer.js";
import { TwinPage } from "./twin_page.js";
import { classes, h, reachable, refill } from "./view/dom.js";
import { theme } from "./view/header.js";
import { count } from "./view/names.js";

const TWIN = "tracr twin";

/** Show the pages of a gallery, the JSON of tracr/viz/explorer/gallery.py, in `root`. */
export function mountGallery(root, data) {
  style();
  root.classList.add("tracr");
  return new Gallery(root, data);
}

class Gallery {
  constructor(root, data) {
    this.pages = data.pages;
    this.models = data.pages.map((page) => (page.format === TWIN ? new TwinModel(page) : loadModel(page)));
    this.sides = [null, null]; // {number, page, remove}
    this.table = h("section", { class: "models", "aria-label": "Models" });
    this.rooms = ["left", "right"].map((name) => h("section", { class: "side", "aria-label": `The model on the ${name}` }));
    const heading = h("div", { class: "bar" }, h("h1", {}, data.name), theme());
    root.append(h("main", { class: "gallery" }, heading, this.table, h("div", { class: "sides" }, this.rooms)));
    const wanted = choicesIn(location.hash);
    const number = (text, usual) => (this.pages[Number(text)] && text !== undefined ? Number(text) : usual);
    this.show(0, number(wanted.left, 0));
    const right = wanted.right === "none" ? null : number(wanted.right, this.pages.length === 2 ? 1 : null);
    if (right !== null) this.show(1, right);
    if (wanted.input !== undefined) this.sides[0].page.state.setInput(wanted.input);
    if (wanted.line !== undefined) this.follow(this.sides[0].page, { line: wanted.line });
    this.changed(this.sides[0].page);
    this.update();
  }

  /** Show a model on a side; null empties the right side. */
  show(side, number) {
    const other = this.sides[1 - side]?.page ?? this.sides[side]?.page;
    const choices = other && shared(other.state);
    this.sides[side]?.remove();
    this.rooms[side].replaceChildren();
    this.sides[side] = number === null ? null : this.open(side, number);
    if (choices && number !== null) this.follow(this.sides[side].page, choices);
    this.update();
  }

  open(side, number) {
    const data = this.pages[number];
    const root = h("div", { class: "tracr" });
    this.rooms[side].append(root);
    let page, remove;
    if (data.format === TWIN) {
      page = new TwinPage(root, data, { prefix: `twin-${side}-` });
      remove = () => page.remove();
    } else {
      const explorer = mount(root, data);
      ({ page, remove } = { page: explorer.page, remove: explorer.remove });
    }
    page.state.panel = "map";
    page.update();
    page.changed = () => this.changed(page);
    return { number, page, remove };
  }

  /** The other side follows: the same input, the same line. */
  changed(page) {
    if (this.following) return;
    for (const side of this.sides) if (side && side.page !== page) this.follow(side.page, shared(page.state));
    this.update();
  }

  /** Make the choices in a page that fit it; patches that it was given stay. */
  follow(page, { input, line, panel }) {
    const { state } = page;
    const { model } = state;
    this.following = true;
    state.together(() => {
      if (input !== undefined && input !== state.text && readInput(input, model).codes) {
        state.setInput(input);
        for (const [label, position, text] of model.patches ?? []) state.patchText(label, position, text);
      }
      const place = model.lines.findIndex((one) => one.label === line);
      if (panel !== undefined) state.panel = panel;
      if (place >= 0 && model.lines[state.line].label !== line) state.focus(place);
    });
    this.following = false;
  }

  update() {
    refill(this.table, this.rows());
    reachable(this.table);
    const [left, right] = this.sides;
    const choices = left && { ...shared(left.page.state), left: left.number, right: right?.number ?? "none" };
    this.rooms[1].hidden = !right;
    try {
      if (choices) history.replaceState(null, "", `#${fragmentOf(choices)}`);
    } catch {
      // in a notebook's frame
    }
  }

  /** The outputs of a model on the input of the left side: those of its page, which may be patched, if it is shown. */
  outputsOf(number) {
    const shown = this.sides.find((side) => side?.number === number);
    if (shown) return outputs(shown.page.state);
    const model = this.models[number];
    const { codes } = readInput(this.sides[0].page.state.text, model);
    return codes ? outputs({ model, tokens: codes, now: { run: model.run(codes) } }) : [];
  }

  /** The table: sizes, and outputs on the input. */
  rows() {
    const head = ["model", "level", "layers", "dimensions", "parameters", "output", ""];
    const all = this.pages.map((_, number) => this.outputsOf(number));
    const [first] = all;
    const row = (data, number) => {
      const { layers, d_model, parameters } = data.sizes;
      const sizes = [data.level ?? "trained", layers, d_model, parameters.toLocaleString("en")];
      const differs = (text, p) => number > 0 && text !== first[p];
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, data.name, data.description && h("small", {}, data.description)),
        sizes.map((size) => h("td", {}, String(size))),
        h(
          "td",
          { class: "outputs" },
          all[number].map((text, p) => h("span", { class: classes("one", differs(text, p) && "changed") }, text)),
        ),
        h("td", { class: "tools" }, this.button(0, number, "left"), this.button(1, number, "right")),
      );
    };
    return h(
      "div",
      { class: "scroll" },
      h("p", { class: "caption" }, `${count(this.pages.length, "model")}. They share the input and the line; outputs that differ from the first model’s are purple.`),
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, head.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {}))))),
        h("tbody", {}, this.pages.map(row)),
      ),
    );
  }

  button(side, number, text) {
    const shown = this.sides[side]?.number === number;
    return h(
      "button",
      {
        type: "button",
        "aria-pressed": String(shown),
        "aria-label": `show ${this.pages[number].name} on the ${text}`,
        data: { key: `${text}-${number}` },
        on: { click: () => this.show(side, shown && side === 1 ? null : number) },
      },
      text,
    );
  }
}

/** What two pages share. */
function shared(state) {
  return { input: state.text, line: state.current.label, panel: state.panel };
}

/** The first output of a model on an input, as texts. */
function outputs({ model, tokens, now }) {
  const [output] = model.outputs;
  const { domain } = model.sops.get(output.sop);
  return tokens.map((_, p) => domain.short(model.decode(output, now.run, p)));
}
