// The program: one line for each s-op and selector, or its source text. Arrow keys step through it.

import { classes, h } from "./dom.js";
import { shortStageName } from "./names.js";

export function listing(state, page) {
  const { model } = state;
  return h(
    "ol",
    {
      class: "listing",
      role: "listbox",
      tabindex: 0,
      "aria-label": "The program, line by line",
      "aria-activedescendant": page.id(`line-${state.line}`),
      data: { key: "listing" },
      on: {
        keydown(event) {
          const to = { ArrowDown: state.line + 1, ArrowUp: state.line - 1, Home: 0, End: model.lines.length - 1 }[
            event.key
          ];
          if (to === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          state.select(to);
        },
      },
    },
    model.lines.map((line, number) => row(state, line, number, page)),
  );
}

function row(state, line, number, page) {
  const current = number === state.line;
  return h(
    "li",
    {
      id: page.id(`line-${number}`),
      role: "option",
      "aria-selected": String(current),
      class: classes(current && "current", changed(state, line) && "changed"),
      data: sopsOf(state, [line]),
      on: { click: () => state.select(number) },
    },
    h(
      "span",
      { class: "code" },
      h("b", {}, line.label),
      h("span", { class: "equals" }, " = "),
      h("span", { class: line.kind }, line.text),
    ),
    h("span", { class: "where" }, where(state, line)),
  );
}

/** The variables of lines; for a selector, those that read it. */
function sopsOf(state, lines) {
  const { sops, selectors } = state.model;
  const within = (id, inner) => id === inner || (selectors.get(id).parts ?? []).some((part) => within(part, inner));
  const of = ({ kind, id }) =>
    kind === "sop"
      ? [id]
      : [...sops.values()].filter(({ op }) => op.selector !== undefined && within(op.selector, id)).map((sop) => sop.id);
  const found = [...new Set(lines.flatMap(of))];
  return found.length ? { sop: found.join(" ") } : {};
}

/** The sub-layers that compute a line. */
function where(state, line) {
  const { model } = state;
  if (line.kind === "sop" && model.sops.get(line.id).folded) return "folded";
  const parts = line.kind === "sop" ? model.componentsOf(line.id) : [];
  if (line.kind === "sop" && !parts.length && model.sops.get(line.id).absorbed) return "absorbed";
  const stages = [...new Set(parts.map((part) => part.stage))];
  return stages.map((stage) => shortStageName(stage, model.transformer.stages)).join(" + ");
}

function changed(state, line) {
  if (state.now === state.base) return false;
  if (line.kind === "sop") return state.tokens.some((_, p) => state.valueOf(line.id, p).changed);
  const [now, before] = [state.now, state.base].map(({ program }) => program.selections(line.id).cells);
  return JSON.stringify(now) !== JSON.stringify(before);
}

/** The source file: the lines of the program are marked, and the words of the current one. */
export function written(state) {
  const { model } = state;
  const { row: current, span } = model.lines[state.line];
  const byRow = new Map();
  model.lines.forEach((line, number) => {
    if (line.row !== null) byRow.set(line.row, [...(byRow.get(line.row) ?? []), number]);
  });
  let start = 0;
  const rows = model.source
    .replace(/\n$/, "")
    .split("\n")
    .map((text, i) => {
      const numbers = byRow.get(i + 1) ?? [];
      const mine = numbers.map((number) => model.lines[number]);
      const row = h(
        "li",
        {
          class: classes(numbers.length && "known", i + 1 === current && "current"),
          "aria-current": i + 1 === current ? "true" : null,
          data: sopsOf(state, mine),
          on: numbers.length ? { click: () => state.select(numbers.at(-1)) } : {},
        },
        h("span", { class: "row" }, String(i + 1)),
        h("code", {}, marked(text, start, span)),
      );
      start += text.length + 1;
      return row;
    });
  return h(
    "ol",
    { class: "listing written", tabindex: 0, "aria-label": "The source text", data: { key: "written" } },
    rows,
  );
}

/** A line of the text that begins at `start`, with the part inside `span` marked. */
function marked(text, start, span) {
  const [first, last] = (span ?? [0, 0]).map((place) => Math.max(0, Math.min(text.length, place - start)));
  if (first >= last) return text || " ";
  return [text.slice(0, first), h("mark", {}, text.slice(first, last)), text.slice(last)];
}
