// The choices of a reader as plain data: kept when the data of a mounted explorer changes, and in the page's address.

import { readInput } from "./core/input.js";

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
    wires: state.plumbing || undefined,
    written: state.written || undefined,
  };
}

/** Make the choices in a state; those that do not fit its model are left out. */
export function choose(state, choices) {
  state.together(() => make(state, choices));
}

function make(state, choices) {
  const { model } = state;
  if (choices.input !== undefined && readInput(choices.input, model).codes) state.setInput(choices.input);
  for (const [label, position, text] of choices.patches ?? []) state.patchText(label, Number(position), text);
  const line = model.lines.findIndex((one) => one.label === choices.line);
  if (line >= 0) state.focus(line);
  const part = model.components.findIndex((one) => one.id === choices.part);
  if (part >= 0) state.component = part;
  if (choices.open) {
    const numbers = choices.open.map((label) => model.groups.findIndex((group) => group.label === label));
    state.open = new Set(numbers.filter((number) => number >= 0));
    state.opened = true;
  }
  state.plumbing = Boolean(choices.wires);
  state.written = Boolean(choices.written) && Boolean(model.source);
}
