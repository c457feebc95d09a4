// The residual stream: a row for each variable, or for each of its directions, after every sub-layer. Only the visible
// rows and columns are in the document, so a stream of thousands of dimensions scrolls as fast as one of ten.

import { isThere } from "../core/model.js";
import { brief, describe } from "./cell_text.js";
import { classes, h } from "./dom.js";
import { abbreviated, shortened } from "./names.js";

const GROUP = 27,
  ROW = 18; // heights
const MARGIN = 200; // pixels rendered beyond the visible part
const CHANGED = 5e-4;
const NARROW = 80; // a narrower name has no number of directions
const AROUND = 54, // pixels of a row's name that hold no letters
  LETTER = 7.3, // the width of a letter
  FEW = 5; // letters of a name that has no more room

/** The rows shown, with their places. */
export function rowsOf(state) {
  const rows = [];
  let top = 0;
  for (const group of state.model.groups) {
    rows.push({ group, dimension: null, top, height: GROUP });
    top += GROUP;
    if (!state.open.has(group.number)) continue;
    for (const dimension of group.rows) {
      rows.push({ group, dimension, top, height: ROW });
      top += ROW;
    }
  }
  return { rows, height: top };
}

export class Stream {
  constructor(state, page) {
    this.state = state;
    this.page = page;
    this.cursor = null; // {row, column}: the place of the keyboard; column -1 is the name
    this.element = h("div", {
      class: "stream",
      role: "grid",
      tabindex: 0,
      "aria-label": "The residual stream: arrow keys move, Enter opens a variable or patches a value",
      data: { key: "stream", home: "" },
    });
    this.element.addEventListener("mouseover", (event) => this.hover(event));
    this.element.addEventListener("mouseleave", () => page.tooltip.hide());
    this.element.addEventListener("click", (event) => this.click(event));
    this.element.addEventListener("keydown", (event) => this.keydown(event));
    this.element.addEventListener("blur", () => this.leave());
  }

  update(plan, scroller) {
    this.plan = plan;
    this.scroller = scroller;
    const { rows, height } = rowsOf(this.state);
    this.rows = rows;
    this.positions = [...Array(this.state.tokens.length + 1).keys()];
    const shown = plan.columns.filter((column) => column.cells);
    this.cells = shown.flatMap((column) => this.positions.map((position) => ({ stage: column.stage, position })));
    this.firstCell = new Map(shown.map((column, place) => [column.stage, place * this.positions.length]));
    this.litStages = new Set([...this.state.lit].map((part) => this.state.model.components[part].stage));
    this.scales = new Map();
    this.focusedSop = this.state.current.kind === "sop" ? this.state.current.id : undefined;
    const labels = this.state.model.groups.map((group) => group.label);
    const room = Math.floor((plan.label - AROUND) / LETTER);
    this.names = room < FEW ? abbreviated(labels, FEW) : shortened(labels, room);
    this.element.style.height = `${height}px`;
    this.element.style.width = `${plan.width}px`;
    this.element.setAttribute("aria-rowcount", String(rows.length));
    this.window = "";
    this.render();
  }

  /** Put the visible part into the document. */
  render() {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.scroller;
    const top = scrollTop - this.element.offsetTop - MARGIN,
      bottom = top + clientHeight + 2 * MARGIN;
    const numbers = [...this.rows.keys()].filter(
      (i) => this.rows[i].top + this.rows[i].height > top && this.rows[i].top < bottom,
    );
    const left = scrollLeft - MARGIN,
      right = scrollLeft + clientWidth + MARGIN;
    const columns = this.plan.columns.filter(({ x, width }) => x + width > left && x < right);
    const window = [numbers[0], numbers.at(-1), columns[0]?.stage, columns.at(-1)?.stage].join();
    if (window === this.window) return;
    this.window = window;
    this.element.replaceChildren(...numbers.map((number) => this.row(this.rows[number], number, columns)));
    this.mark();
    this.page.coupling.apply();
  }

  /** A row again, for the bottom of the window: only to be seen. */
  copy(row) {
    const again = this.row({ ...row, top: 0 }, this.rows.indexOf(row), this.plan.columns);
    again.removeAttribute("role");
    for (const element of again.querySelectorAll("[role]")) {
      element.removeAttribute("role");
      delete element.dataset.row;
    }
    return again;
  }

  row(row, number, columns) {
    const { state, plan } = this;
    const { group, dimension } = row;
    const focused = state.current.kind === "sop" && group.sop === state.current.id;
    return h(
      "div",
      {
        class: classes("row", dimension ? "dimension" : "group", focused && "focused", group.scratch && "scratch"),
        role: "row",
        "aria-rowindex": number + 1,
        data: group.sop === null ? {} : { sop: group.sop },
        style: `top:${row.top}px;height:${row.height}px;width:${plan.width}px`,
      },
      this.name(row, number),
      columns.map((column) =>
        h(
          "div",
          {
            class: classes("column", this.litStages.has(column.stage) && "lit"),
            style: `left:${column.x}px;width:${column.width}px`,
          },
          column.cells
            ? this.positions.map((position) =>
                dimension
                  ? this.cell(row, number, column.stage, position)
                  : this.value(row, number, column.stage, position),
              )
            : null,
        ),
      ),
    );
  }

  name({ group, dimension }, number) {
    const { plan } = this;
    const style = `width:${plan.label}px`;
    if (dimension)
      return h(
        "div",
        { class: "name", role: "rowheader", style, data: { row: number, column: -1 } },
        h("span", {}, dimension.name),
      );
    const open = this.state.open.has(group.number);
    return h(
      "div",
      { class: "name", role: "rowheader", "aria-expanded": String(open), style, data: { row: number, column: -1 } },
      h("span", { class: "arrow" }, open ? "▾" : "▸"),
      h("span", { class: "text", title: group.label }, this.names.get(group.label)),
      plan.label > NARROW && h("small", {}, String(group.rows.length)),
    );
  }

  /** The value of a variable, as text. */
  value({ group }, number, stage, position) {
    const { state, plan } = this;
    const read = state.model.read(group, state.now.run, stage, position);
    const fresh = stage === group.stage && read !== null;
    const text = read === null || !plan.legible ? "" : brief(read, Math.floor(plan.cell / 6.8));
    const level = read === null || plan.legible ? null : this.level(group, read);
    const patched =
      fresh &&
      state.patches.some((patch) => patch.sop === group.sop && patch.position === position - 1 && group.settable);
    return h(
      "span",
      {
        class: classes(
          "value",
          fresh && "fresh",
          level !== null && "tick",
          fresh && position === state.position + 1 && group.sop === this.focusedSop && "query",
          position === 0 && "bos",
          state.differs(group, stage, position) && "differs",
          patched && "patched",
        ),
        role: "gridcell",
        style: `width:${plan.cell}px${level === null ? "" : `;--x:${level.toFixed(3)}`}`,
        data: { row: number, column: this.columnOf(stage, position), at: position },
      },
      text,
    );
  }

  /** Where a value lies among those of its variable, from 0 to 1: the colour of a cell too narrow for text. */
  level(group, read) {
    const domain = this.state.model.sops.get(group.sop)?.domain;
    if (!domain || read.code === null || Number.isNaN(read.code) || read.code < 0) return 0.5;
    if (!domain.values) return (read.code - domain.low) / Math.max(1e-9, domain.high - domain.low);
    const order = domain.numeric ? domain.ascending.indexOf(read.code) : read.code;
    return Math.max(0, order) / Math.max(1, domain.size - 1);
  }

  /** One direction at one position: the colour shows the size, a red border a change by the sub-layer. */
  cell({ group, dimension }, number, stage, position) {
    const { state, plan } = this;
    const { run } = state.now;
    const x = state.model.at(dimension, run, stage, position);
    const before = state.model.at(dimension, run, stage - 1, position);
    const size = Math.min(1, Math.abs(x) / this.scale(group));
    const shown = size < 0.02 ? null : `--x:${(0.12 + 0.88 * size).toFixed(3)};`;
    return h("span", {
      class: classes(
        "cell",
        !isThere(dimension, stage) && "absent",
        shown && (x < 0 ? "negative" : "positive"),
        Math.abs(x - before) > CHANGED && "changed",
        state.cellDiffers(dimension, stage, position) && "differs",
      ),
      role: "gridcell",
      style: `width:${plan.cell - (plan.cell > 6 ? 2 : 0)}px;${shown ?? ""}`,
      data: { row: number, column: this.columnOf(stage, position), at: position },
    });
  }

  /** The largest number among a group's directions on this input, at least 1. */
  scale(group) {
    if (!this.scales.has(group)) {
      const { model, now } = this.state;
      let most = 1;
      for (const row of group.rows)
        for (let stage = row.from; stage < Math.min(row.until, now.run.streams.length); stage++)
          for (let p = 0; p < now.run.length; p++) most = Math.max(most, Math.abs(model.at(row, now.run, stage, p)));
      this.scales.set(group, most);
    }
    return this.scales.get(group);
  }

  columnOf(stage, position) {
    return this.firstCell.get(stage) + position;
  }

  /** The tooltip of a cell, or of the name (column -1). */
  describe(row, column) {
    const lines = describe(this.state, row, this.cells[column]);
    return column >= 0 && this.patchable(row, column) ? [...lines, ["", "click to patch"]] : lines;
  }

  patchable(row, column) {
    const { stage, position } = this.cells[column];
    return row.group.settable && this.state.patchable(row.group.sop) && position > 0 && this.holds(row, stage);
  }

  /** Whether a variable (or part of it), or the direction, is stored after a stage. */
  holds({ group, dimension }, stage) {
    return stage >= group.stage && (dimension ? [dimension] : group.own).some((row) => isThere(row, stage));
  }

  // Mouse and keyboard

  found(event) {
    const target = event.target.closest?.("[data-row]");
    return target && { row: Number(target.dataset.row), column: Number(target.dataset.column), target };
  }

  hover(event) {
    const at = this.found(event);
    if (at) this.page.tooltip.show(at.target.getBoundingClientRect(), this.describe(this.rows[at.row], at.column));
    else this.page.tooltip.hide();
  }

  click(event) {
    const at = this.found(event);
    if (at) this.act(at.row, at.column, at.target);
  }

  act(number, column, target) {
    const row = this.rows[number];
    this.page.tooltip.hide();
    if (column < 0) {
      if (!row.dimension) this.state.toggleGroup(row.group.number);
      return;
    }
    const { stage, position } = this.cells[column];
    if (row.group.sop !== null && this.holds(row, stage))
      this.page.overview.stay(() => this.state.selectSop(row.group.sop));
    if (this.patchable(row, column)) {
      const again = this.element.querySelector(`[data-row="${number}"][data-column="${column}"]`) ?? target;
      this.page.patchMenu.open(again, row.group.sop, position - 1);
    }
  }

  keydown(event) {
    const moves = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      PageDown: [20, 0],
      PageUp: [-20, 0],
    };
    const step = moves[event.key];
    if (step) {
      event.preventDefault();
      event.stopPropagation();
      const { row, column } = this.cursor ?? { row: -step[0], column: -1 };
      this.cursor = {
        row: clamp(row + step[0], 0, this.rows.length - 1),
        column: clamp(column + step[1], -1, this.cells.length - 1),
      };
      this.reveal();
    } else if ((event.key === "Enter" || event.key === " ") && this.cursor) {
      event.preventDefault();
      const target = this.cursorElement();
      if (target) this.act(this.cursor.row, this.cursor.column, target);
    }
  }

  cursorElement() {
    return (
      this.cursor && this.element.querySelector(`[data-row="${this.cursor.row}"][data-column="${this.cursor.column}"]`)
    );
  }

  /** Scroll to the cursor, mark it and show its tooltip. */
  reveal() {
    const { scroller, plan } = this;
    const row = this.rows[this.cursor.row];
    const top = this.element.offsetTop + row.top,
      header = 44;
    if (top - header < scroller.scrollTop) scroller.scrollTop = top - header;
    if (top + row.height > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = top + row.height - scroller.clientHeight;
    if (this.cursor.column >= 0) {
      const { stage, position } = this.cells[this.cursor.column];
      const left = plan.columns[stage].x + position * plan.cell;
      if (left - plan.label < scroller.scrollLeft) scroller.scrollLeft = left - plan.label;
      if (left + plan.cell > scroller.scrollLeft + scroller.clientWidth)
        scroller.scrollLeft = left + plan.cell - scroller.clientWidth + 8;
    }
    this.render();
    this.mark();
    const element = this.cursorElement();
    if (element) this.page.tooltip.show(element.getBoundingClientRect(), this.describe(row, this.cursor.column));
    const at = this.cells[this.cursor.column]?.position;
    this.page.coupling.point({
      at: at === undefined ? undefined : String(at),
      sop: row.group.sop === null ? undefined : String(row.group.sop),
    });
    this.page.say(
      this.describe(row, this.cursor.column)
        .map((line) => (Array.isArray(line) ? line.join(" ") : line))
        .join(", "),
    );
  }

  mark() {
    this.element.querySelector(".cursor")?.classList.remove("cursor");
    if (document.activeElement === this.element) this.cursorElement()?.classList.add("cursor");
  }

  leave() {
    this.page.tooltip.hide();
    this.element.querySelector(".cursor")?.classList.remove("cursor");
  }
}

function clamp(x, low, high) {
  return Math.max(low, Math.min(high, x));
}
