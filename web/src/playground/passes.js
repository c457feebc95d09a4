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

/** A pass: what it does, and its result, with the lines marked that the result before it does not have. */
function content(pass, before) {
  const lines = pass.text?.split("\n") ?? [];
  const comparable = before?.gives === pass.gives;
  const known = new Set(comparable ? before.text.split("\n") : lines);
  const fresh = lines.some((line) => !known.has(line));
  return [
    pass.does && h("p", { class: "status" }, `${pass.does[0].toUpperCase()}${pass.does.slice(1)}.`),
    fresh &&
      h(
        "p",
        { class: "status" },
        "Lines that the pass before did not have are ",
        h("span", { class: "new" }, "green"),
        ".",
      ),
    comparable && pass.text === before.text && h("p", { class: "status" }, "It changed nothing here."),
    pass.drawing
      ? drawn(pass)
      : h(
          "pre",
          {},
          lines.map((line) => h("span", { class: known.has(line) ? "" : "new" }, `${line}\n`)),
        ),
  ];
}

function drawn({ name, drawing }) {
  const picture = new Drawing(`After ${name}`);
  picture.show(drawing, `The program after ${name}`);
  return picture.element;
}
