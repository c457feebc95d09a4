// Values at positions, as a table: one row for each sequence.

import { h } from "../view/dom.js";

/** Rows are {label, values, marked}: `marked` says at which positions a value is wrong. Wide tables scroll. */
export function valuesTable(label, rows) {
  const cell = (value, wrong) => h("td", { class: wrong ? "wrong" : undefined }, shown(value));
  const row = ({ label, values, marked = [] }) =>
    h(
      "tr",
      { class: label.split(" ").at(-1) },
      h("th", { scope: "row" }, label),
      values.map((value, place) => cell(value, marked[place])),
    );
  const table = h("table", { class: "values" }, h("tbody", {}, rows.map(row)));
  return h("div", { class: "scrolling", tabindex: "0", role: "group", "aria-label": label }, table);
}

/** The positions at which two sequences differ. */
export function differences(values, others) {
  return values.map((value, place) => shown(value) !== shown(others[place] ?? null));
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
