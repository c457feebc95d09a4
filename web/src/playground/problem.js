// What is wrong with the program: the message, its place as a button, and the hint.

import { h, refill } from "../view/dom.js";

export class Problem {
  /** `go(error)` moves to the place of an error. */
  constructor(go) {
    this.go = go;
    this.element = h("div", { class: "problem", role: "status" });
  }

  show(error) {
    const place = error?.line && `line ${error.line}${error.column ? `, column ${error.column}` : ""}`;
    refill(
      this.element,
      error &&
        h(
          "p",
          {},
          place && h("button", { type: "button", on: { click: () => this.go(error) } }, place),
          " ",
          error.message,
        ),
      error?.hint && h("p", { class: "advice" }, h("b", {}, "Hint: "), error.hint),
    );
  }
}
