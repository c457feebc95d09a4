// The reader's choices in an explorer, carried over to the explorer of the next compilation, by names.

/** The choices: the current line, open variables, switches, and the input if the reader typed another one. */
export function choices(state) {
  const { model } = state;
  const { id, kind } = state.current ?? {};
  return {
    line: kind === "sop" ? (model.sops.get(id)?.label ?? null) : null,
    open: [...state.open].map((number) => model.groups[number].label),
    groups: model.groups.map((group) => group.label),
    written: state.written,
    plumbing: state.plumbing,
    first: texts(model),
    text: state.text,
  };
}

/** Make the choices again, as far as the new model has the same names. */
export function restore(state, kept) {
  const { model } = state;
  const typed = kept.text !== kept.first;
  if (typed && texts(model) === kept.first) state.setInput(kept.text);
  const known = new Set(kept.groups);
  const open = (group) => (known.has(group.label) ? kept.open.includes(group.label) : state.open.has(group.number));
  state.open = new Set(model.groups.filter(open).map((group) => group.number));
  state.plumbing = kept.plumbing;
  state.written = kept.written && Boolean(model.source);
  const line = model.lines.findIndex(({ kind, id }) => kind === "sop" && model.sops.get(id).label === kept.line);
  state.select(line < 0 ? state.line : line);
}

function texts(model) {
  return model.input.map((code) => model.vocab[code].text).join(" ");
}
