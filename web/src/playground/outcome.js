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

/** A value as text; numbers are rounded. JSON has no tuples: the server writes {"tuple": [...]}. */
export function shown(value) {
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
  if (typeof value !== "object") return String(value);
  const [[kind, content]] = Object.entries(value);
  if (kind === "fraction") return content.join("/");
  return Array.isArray(content) ? `(${content.map(shown).join(", ")})` : String(content);
}
