// The nonzero weights of a component, with labels: W_QK and W_OV of heads, weights of neurons and embeddings.

import { h } from "./dom.js";
import { capitalised, componentName, computes, count } from "./names.js";
import { shortNumber } from "../core/domains.js";
import { matricesOf } from "../core/matrices.js";

const LEGIBLE = 11; // the fewest pixels of a label

export class Weights {
  constructor(model, tooltip) {
    this.model = model;
    this.tooltip = tooltip;
    this.element = h("dialog", { class: "weights", "aria-label": "Weights" });
    this.element.addEventListener("close", () => tooltip.hide());
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  open(part) {
    const close = h(
      "button",
      { type: "button", class: "close", "aria-label": "Close", on: { click: () => this.element.close() } },
      "✕",
    );
    this.element.replaceChildren(
      h(
        "div",
        { class: "inside" },
        h("header", {}, h("h3", {}, capitalised(componentName(part)), h("code", {}, part.id)), close),
        h("p", { class: "caption" }, computes(part)),
        matricesOf(this.model, part).map((matrix) => this.figure(matrix)),
      ),
    );
    this.element.showModal();
  }

  figure(matrix) {
    const { rows, columns } = matrix;
    if (!rows.length) return h("figure", {}, title(matrix), h("p", { class: "hint" }, "All zero."));
    const wide = Math.max(7, Math.min(34, Math.floor(620 / columns.length)));
    const high = rows.length <= 80 ? Math.max(13, wide) : wide;
    const readout = h("output", { class: "readout" }, "Point at a cell, or move with the arrow keys.");
    const size = `${count(rows.length, "row")} by ${count(columns.length, "column")}`;
    const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": `${matrix.name}, ${size}` });
    requestAnimationFrame(() => draw(canvas, matrix, wide, high));
    let at = [0, 0];
    const tell = ([row, column]) => {
      at = [Math.max(0, Math.min(rows.length - 1, row)), Math.max(0, Math.min(columns.length - 1, column))];
      const names = `${matrix.rowName} ${rows[at[0]]} × ${matrix.columnName} ${columns[at[1]]}`;
      readout.textContent = `${names}: ${Number(matrix.at(...at).toPrecision(7))}`;
    };
    canvas.addEventListener("mousemove", (event) => {
      tell([Math.floor(event.offsetY / high), Math.floor(event.offsetX / wide)]);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      tell([at[0] + step[0], at[1] + step[1]]);
    });
    const label = (style) => (name) => h("span", { style, title: name }, name);
    const board = h(
      "div",
      { class: "board" },
      h("div", { class: "corner" }),
      h("div", { class: "across" }, wide >= LEGIBLE && columns.map(label(`width:${wide}px`))),
      h("div", { class: "down" }, high >= LEGIBLE && rows.map(label(`height:${high}px;line-height:${high}px`))),
      canvas,
    );
    const [all, every] = matrix.of.map((number) => number.toLocaleString("en"));
    const shown = `${count(rows.length, "row")} of ${all} and ${count(columns.length, "column")} of ${every}`;
    const note = h("p", { class: "hint" }, `${shown} are not zero; only these are shown.`);
    return h("figure", {}, title(matrix), h("div", { class: "scroll" }, board), readout, note);
  }
}

function title(matrix) {
  return h("figcaption", {}, h("b", {}, matrix.name), ` ${matrix.what}`);
}

function draw(canvas, matrix, wide, high) {
  const { rows, columns } = matrix;
  const ratio = globalThis.devicePixelRatio || 1;
  Object.assign(canvas, { width: columns.length * wide * ratio, height: rows.length * high * ratio });
  canvas.style.cssText = `width:${columns.length * wide}px;height:${rows.length * high}px`;
  const style = getComputedStyle(canvas);
  const color = (name) => style.getPropertyValue(name).trim();
  const [positive, negative, ink, line] = ["--cell", "--negative", "--ink", "--line"].map(color);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = `${wide > 28 ? 10 : 9}px ui-monospace, monospace`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  let most = 0;
  const each = (f) => rows.forEach((_, row) => columns.forEach((_, column) => f(row, column, matrix.at(row, column))));
  each((row, column, x) => (most = Math.max(most, Math.abs(x))));
  each((row, column, x) => {
    const strength = x === 0 ? 0 : 0.15 + 0.85 * (Math.abs(x) / most);
    const gap = wide > 9 ? 1 : 0;
    context.fillStyle = x === 0 ? line : `rgb(${x < 0 ? negative : positive} / ${strength})`;
    context.globalAlpha = x === 0 ? 0.35 : 1;
    context.fillRect(column * wide, row * high, wide - gap, high - gap);
    context.globalAlpha = 1;
    if (wide < 26 || x === 0) return;
    context.fillStyle = strength > 0.55 ? "#fff" : ink;
    const text = shortNumber(x, Math.abs(x) >= 10 ? 0 : 2).slice(0, 6);
    context.fillText(text, (column + 0.5) * wide, (row + 0.5) * high);
  });
}
