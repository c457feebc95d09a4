// The reader's choices in an explorer, carried over to the explorer of the next compilation, by names.

/** What an explorer shows: the current line, open variables, switches and the input. */
export function choices(state) {
  const { model } = state;
  const { id, kind } = state.current ?? {};
  return {
    line: kind === "sop" ? model.sops.get(id).label : null,
    open: model.groups.filter((group) => state.open.has(group.number)).map((group) => group.label),
    written: state.written,
    plumbing: state.plumbing,
    text: state.text,
  };
}

/** Make the reader's choices in a new explorer: those in which `now` differs from what the old one showed `first`. */
export function restore(state, first, now) {
  const { model } = state;
  if (now.text !== first.text && state.text === first.text) state.setInput(now.text);
  for (const group of model.groups) {
    const opened = now.open.includes(group.label);
    if (opened === first.open.includes(group.label)) continue;
    if (opened) state.open.add(group.number);
    else state.open.delete(group.number);
  }
  if (now.plumbing !== first.plumbing) state.plumbing = now.plumbing;
  if (now.written !== first.written && model.source) state.written = now.written;
  const chosen = ({ kind, id }) => kind === "sop" && model.sops.get(id).label === now.line;
  const line = now.line === first.line ? -1 : model.lines.findIndex(chosen);
  state.select(line < 0 ? state.line : line);
}
