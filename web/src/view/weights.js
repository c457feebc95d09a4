// The weights of a component in the labelled basis: what is not zero of W_QK and W_OV, of neurons, of embeddings.

import { h } from "./dom.js";
import { capitalised, componentName, count } from "./names.js";
import { shortNumber } from "../core/domains.js";
import { matricesOf } from "../core/matrices.js";

export class Weights {
  constructor(model, tooltip) {
    this.model = model;
    this.tooltip = tooltip;
    this.element = h("dialog", { class: "weights", "aria-label": "Weights" });
    this.element.addEventListener("close", () => tooltip.hide());
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
    document.body.append(this.element);
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
        h("p", { class: "caption" }, part.computes),
        matricesOf(this.model, part).map((matrix) => this.figure(matrix)),
      ),
    );
    this.element.showModal();
  }

  figure(matrix) {
    const { rows, columns } = matrix;
    const side = Math.max(7, Math.min(34, Math.floor(620 / Math.max(1, columns.length))));
    const size = rows.length * columns.length;
    const labels = side >= 11;
    const readout = h("output", { class: "readout" }, "Point at a cell, or move with the arrow keys.");
    const canvas = h("canvas", {
      tabindex: 0,
      role: "img",
      "aria-label": `${matrix.name}, ${count(rows.length, "row")} by ${count(columns.length, "column")}`,
    });
    const ratio = globalThis.devicePixelRatio || 1;
    canvas.width = columns.length * side * ratio;
    canvas.height = rows.length * side * ratio;
    canvas.style.cssText = `width:${columns.length * side}px;height:${rows.length * side}px`;
    requestAnimationFrame(() => draw(canvas, matrix, side, ratio));
    let at = [0, 0];
    const tell = ([row, column]) => {
      at = [Math.max(0, Math.min(rows.length - 1, row)), Math.max(0, Math.min(columns.length - 1, column))];
      readout.textContent = `${matrix.rowName} ${rows[at[0]]} × ${matrix.columnName} ${columns[at[1]]}: ${Number(matrix.at(...at).toPrecision(7))}`;
    };
    canvas.addEventListener("mousemove", (event) =>
      tell([Math.floor(event.offsetY / side), Math.floor(event.offsetX / side)]),
    );
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      tell([at[0] + step[0], at[1] + step[1]]);
    });
    const board = h(
      "div",
      { class: "board" },
      h("div", { class: "corner" }),
      h(
        "div",
        { class: "across" },
        labels ? columns.map((name) => h("span", { style: `width:${side}px`, title: name }, name)) : null,
      ),
      h(
        "div",
        { class: "down" },
        labels
          ? rows.map((name) => h("span", { style: `height:${side}px;line-height:${side}px`, title: name }, name))
          : null,
      ),
      canvas,
    );
    return h(
      "figure",
      {},
      h("figcaption", {}, h("b", {}, matrix.name), ` ${matrix.what}`),
      size ? h("div", { class: "scroll" }, board) : h("p", { class: "hint" }, "All zero."),
      size ? readout : null,
      h(
        "p",
        { class: "hint" },
        `${count(rows.length, "row")} of ${matrix.of[0].toLocaleString("en")} and ${count(columns.length, "column")} of ${matrix.of[1].toLocaleString("en")} are not zero; only those are shown.`,
      ),
    );
  }
}

function draw(canvas, matrix, side, ratio) {
  const style = getComputedStyle(canvas);
  const [positive, negative, ink, line] = ["--cell", "--negative", "--ink", "--line"].map((name) =>
    style.getPropertyValue(name).trim(),
  );
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = `${side > 28 ? 10 : 9}px ui-monospace, monospace`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  let most = 0;
  matrix.rows.forEach((_, row) =>
    matrix.columns.forEach((_, column) => (most = Math.max(most, Math.abs(matrix.at(row, column))))),
  );
  matrix.rows.forEach((_, row) =>
    matrix.columns.forEach((_, column) => {
      const x = matrix.at(row, column);
      const strength = x === 0 ? 0 : 0.15 + 0.85 * (Math.abs(x) / most);
      const gap = side > 9 ? 1 : 0;
      context.fillStyle = x === 0 ? line : `rgb(${x < 0 ? negative : positive} / ${strength})`;
      context.globalAlpha = x === 0 ? 0.35 : 1;
      context.fillRect(column * side, row * side, side - gap, side - gap);
      context.globalAlpha = 1;
      if (side >= 26 && x !== 0) {
        context.fillStyle = strength > 0.55 ? "#fff" : ink;
        context.fillText(
          shortNumber(x, Math.abs(x) >= 10 ? 0 : 2).slice(0, 6),
          column * side + side / 2,
          row * side + side / 2,
        );
      }
    }),
  );
}
