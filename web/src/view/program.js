// The program: one line for each s-op and selector, or its source text. Arrow keys step through it.

import { classes, h } from "./dom.js";
import { stageName } from "./names.js";

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

/** The sub-layers that compute a line. */
function where(state, line) {
  const { model } = state;
  if (line.kind === "sop" && model.sops.get(line.id).folded) return "folded";
  const parts = line.kind === "sop" ? model.componentsOf(line.id) : [];
  if (line.kind === "sop" && !parts.length && model.sops.get(line.id).absorbed) return "absorbed";
  const stages = [...new Set(parts.map((part) => part.stage))];
  return stages
    .map((stage) =>
      stageName(stage, model.transformer.stages).replace("attention", "attn").replace("embedding", "embed"),
    )
    .join(" + ");
}

function changed(state, line) {
  if (state.now === state.base) return false;
  if (line.kind === "sop") return state.tokens.some((_, p) => state.valueOf(line.id, p).changed);
  const [now, before] = [state.now, state.base].map(({ program }) => program.selections(line.id).cells);
  return JSON.stringify(now) !== JSON.stringify(before);
}

/** The source file, with the lines of the program marked. */
export function written(state) {
  const { model } = state;
  const current = model.lines[state.line].row;
  const byRow = new Map();
  model.lines.forEach((line, number) => {
    if (line.row !== null && !byRow.has(line.row)) byRow.set(line.row, number);
  });
  return h(
    "ol",
    { class: "listing written", tabindex: 0, "aria-label": "The source text", data: { key: "written" } },
    model.source
      .replace(/\n$/, "")
      .split("\n")
      .map((text, i) => {
        const number = byRow.get(i + 1);
        const known = number !== undefined;
        return h(
          "li",
          {
            class: classes(known && "known", i + 1 === current && "current"),
            "aria-current": i + 1 === current ? "true" : null,
            on: known ? { click: () => state.select(number) } : {},
          },
          h("span", { class: "row" }, String(i + 1)),
          h("code", {}, text || " "),
        );
      }),
  );
}
