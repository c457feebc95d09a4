// The program between the passes of the compiler: one text for each pass, with the lines that are new marked.

import { h, refill } from "../view/dom.js";
import { Drawing } from "./drawing.js";

export class Passes {
  constructor() {
    this.passes = [];
    this.place = 0;
    this.list = h("ol", { class: "names" });
    this.body = h("div", { class: "text", tabindex: "0", role: "region", "aria-label": "The result of the pass" });
    this.element = h("div", { class: "passes" }, h("nav", { "aria-label": "Passes" }, this.list), this.body);
  }

  /** Show the passes of a compilation; the reader stays at the pass of the same name. */
  show(passes) {
    const name = this.passes[this.place]?.name;
    this.passes = passes ?? [];
    this.place = Math.max(
      0,
      this.passes.findIndex((pass) => pass.name === name),
    );
    this.update();
  }

  update() {
    const { passes, place } = this;
    const button = ({ name }, at) =>
      h(
        "button",
        {
          type: "button",
          data: { key: name },
          "aria-current": at === place ? "step" : undefined,
          on: { click: () => this.go(at) },
        },
        name,
      );
    refill(
      this.list,
      passes.map((pass, at) => h("li", {}, button(pass, at))),
    );
    refill(
      this.body,
      passes.length
        ? content(passes[place], passes[place - 1])
        : h("p", { class: "status" }, "The server shows no passes."),
    );
  }

  go(place) {
    this.place = place;
    this.update();
  }
}

/** A pass: what it does, and its result. */
function content(pass, before) {
  return [pass.does && h("p", { class: "status" }, `${pass.does}.`), result(pass, before)];
}

function result(pass, before) {
  if (pass.drawing) {
    const drawing = new Drawing(`After ${pass.name}`);
    drawing.show(pass.drawing, `The program after ${pass.name}`);
    return drawing.element;
  }
  const known = before?.gives !== pass.gives ? null : new Set(before.text.split("\n"));
  return h(
    "pre",
    {},
    pass.text.split("\n").map((line) => h("span", { class: known && !known.has(line) ? "new" : "" }, `${line}\n`)),
  );
}
