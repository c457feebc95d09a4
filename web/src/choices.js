// The choices of a reader as plain data: kept when the data of a mounted explorer changes, and in the page's address.

import { readInput } from "./core/input.js";

const PANELS = ["program", "detail", "map"];

/** The choices of a state, without those that a fresh page has. */
export function choicesOf(state) {
  const { model } = state;
  const part = state.component === null ? null : model.components[state.component];
  return {
    input: state.typed ? state.text : undefined,
    line: model.lines[state.line]?.label,
    part: part?.id,
    patches: state.patches.map(({ sop, position, code }) => {
      const { label, domain } = model.sops.get(sop);
      return [label, position, domain.text(code)];
    }),
    open: state.opened ? [...state.open].map((number) => model.groups[number].label) : undefined,
    wires: state.plumbing,
    written: state.written,
    fit: state.fit === null ? undefined : state.fit ? "yes" : "no",
    at: state.at ?? undefined,
    panel: state.panel === "program" ? undefined : state.panel,
  };
}

/** Make the choices in a state; those that do not fit its model are left out. */
export function choose(state, choices) {
  state.together(() => make(state, choices));
}

function make(state, choices) {
  const { model } = state;
  if (choices.input !== undefined && readInput(choices.input, model).codes) state.setInput(choices.input);
  state.patches = [];
  state.compute();
  for (const [label, position, text] of choices.patches ?? []) state.patchText(label, Number(position), text);
  const line = model.lines.findIndex((one) => one.label === choices.line);
  if (line >= 0) state.focus(line);
  const part = model.components.find((one) => one.id === choices.part);
  if (line >= 0 && part && state.concerns(part)) state.component = part.number;
  if (choices.open) {
    const numbers = choices.open.map((label) => model.groups.findIndex((group) => group.label === label));
    state.open = new Set(numbers.filter((number) => number >= 0));
    state.opened = true;
  }
  state.plumbing = Boolean(choices.wires);
  state.written = Boolean(choices.written) && Boolean(model.source);
  state.fit = { yes: true, no: false }[choices.fit] ?? null;
  const at = Number(choices.at);
  state.at = choices.at !== undefined && at >= 0 && at < state.tokens.length ? at : null;
  state.panel = PANELS.includes(choices.panel) ? choices.panel : "program";
}
