// What the program and the model give on the input, token by token.

import { h } from "../view/dom.js";
import { count } from "../view/names.js";

/** A table with the tokens, the program's values and the model's. */
export function outcome({ input, outputs }) {
  const same = input.map((_, place) => shown(outputs.program[place]) === shown(outputs.model[place]));
  const row = (label, values, marked) =>
    h(
      "tr",
      { class: label },
      h("th", { scope: "row" }, label),
      values.map((value, place) => h("td", { class: marked?.[place] ? "wrong" : "" }, shown(value))),
    );
  return h(
    "div",
    { class: "scrolling", tabindex: "0", role: "region", "aria-label": "Values on the input" },
    h(
      "table",
      { class: "values" },
      h(
        "tbody",
        {},
        row("input", input),
        row("program", outputs.program),
        row(
          "model",
          outputs.model,
          same.map((yes) => !yes),
        ),
      ),
    ),
  );
}

/** The size of a model in words. */
export function sizes({ layers, heads, dimensions, parameters }) {
  return [
    count(layers, "layer"),
    count(heads, "head"),
    count(dimensions, "dimension"),
    count(parameters, "parameter"),
  ].join(" · ");
}

/** A value as text; numbers are rounded. */
export function shown(value) {
  if (value === null) return "none";
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(6)));
  return typeof value === "boolean" ? (value ? "True" : "False") : String(value);
}
