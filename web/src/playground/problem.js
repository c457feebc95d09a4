// What is wrong with the program, or easily misread: the message, its place as a button, and the hint.

import { h, refill } from "../view/dom.js";

export class Problem {
  /** `go(error)` moves to the place of an error. */
  constructor(go) {
    this.go = go;
    this.element = h("div", { class: "problem", role: "status" });
  }

  /** Show an error, or warnings, or nothing. */
  show(error, warnings = []) {
    this.element.classList.toggle("warning", !error);
    refill(this.element, error ? this.entry(error) : warnings.map((warning) => this.entry(warning)));
  }

  entry(problem) {
    const { line, column, message, hint } = problem;
    const place = line && `line ${line}${column ? `, column ${column}` : ""}`;
    return [
      h("p", {}, place && h("button", { type: "button", on: { click: () => this.go(problem) } }, place), " ", message),
      hint && h("p", { class: "advice" }, h("b", {}, "Hint: "), hint),
    ];
  }
}
