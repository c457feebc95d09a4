// Small square matrices: selectors and attention patterns, query by key. BOS comes first in all of them, so that the
// cells of a selector lie where those of its heads lie.

import { classes, h } from "./dom.js";
import { shortNumber } from "../core/domains.js";

/**
 * A matrix of numbers in [0, 1]. `names` label rows and columns, `side` is the largest width of a cell,
 * `cell(row, column)` is null where there is nothing, `describe(row, column)` is the description of a cell.
 * Arrow keys move from cell to cell; `point` is told where they are. The row `query` is marked; a click on another row,
 * or Enter, chooses it.
 */
export function grid({ caption, names, side, cell, describe, key, tooltip, point, query, choose }) {
  const size = names.length;
  const width = Math.max(6, Math.min(26, Math.floor(side)));
  const short = width >= 14;
  const cells = [];
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++) {
      const x = cell(row, column);
      const text = width >= 22 && x > 0.005 && x < 0.995 ? shortNumber(x, 2).replace("0.", ".") : "";
      const style = `--x:${(x ?? 0).toFixed(4)};grid-row:${row + 2};grid-column:${column + 2}`;
      const kind = classes(x === null ? "void" : "cell", x >= 0.995 && "strong", row === query && "query");
      cells.push(h("span", { class: kind, style, data: { row, column, at: row, to: column } }, text));
    }
  const labels = names.flatMap((name, i) => [
    h("span", { class: "axis", style: `grid-row:1;grid-column:${i + 2}`, data: { to: i } }, short ? name : ""),
    h("span", { class: "axis", style: `grid-row:${i + 2};grid-column:1`, data: { at: i } }, short ? name : ""),
  ]);
  const board = h(
    "div",
    {
      class: "grid",
      tabindex: 0,
      role: "img",
      "aria-label": `${caption}. ${summary(size, cell, describe)}`,
      data: { key },
      style: `grid-template-columns:repeat(${size + 1},${width}px);grid-template-rows:repeat(${size + 1},${width}px)`,
    },
    labels,
    cells,
  );
  let at = [0, 0];
  const show = ([row, column]) => {
    const element = cells[row * size + column];
    tooltip.show(element.getBoundingClientRect(), [describe(row, column)]);
    for (const other of cells) other.classList.toggle("cursor", other === element && document.activeElement === board);
  };
  board.addEventListener("mouseover", (event) => {
    const { row, column } = event.target.dataset;
    if (row !== undefined) show([Number(row), Number(column)]);
  });
  board.addEventListener("click", (event) => {
    const { row } = event.target.dataset;
    if (row !== undefined) choose(Number(row));
  });
  board.addEventListener("mouseleave", () => tooltip.hide());
  board.addEventListener("blur", () => {
    tooltip.hide();
    for (const other of cells) other.classList.remove("cursor");
  });
  board.addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose(at[0]);
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step || !size) return;
    event.preventDefault();
    event.stopPropagation();
    at = at.map((x, i) => Math.max(0, Math.min(size - 1, x + step[i])));
    show(at);
    point({ at: String(at[0]), to: String(at[1]) });
  });
  return h(
    "figure",
    { class: "matrix", style: `max-width:${Math.max(120, (size + 1) * width)}px` },
    h("figcaption", {}, caption),
    board,
  );
}

function summary(size, cell, describe) {
  const parts = [];
  for (let row = 0; row < size && parts.length < 40; row++)
    for (let column = 0; column < size; column++) if ((cell(row, column) ?? 0) > 0.005) parts.push(describe(row, column));
  return parts.join("; ");
}
