// The columns the circuit and the residual stream share: one for the embedding, each sub-layer, and the output.

const NARROW = 46; // the width of a no-op
const OUTPUT = 116;
const LEAST = 124;

/** The places of all columns. `cell` is the width of a position's cell, `label` that of the names on the left. */
export function layout(model, positions, available) {
  const stages = model.transformer.stages;
  const busy = (stage) => model.components.some((part) => part.stage === stage);
  const label = available < 560 ? 96 : 138;
  const full = Array.from({ length: stages }, (_, stage) => stage).filter((stage) => stage === 0 || busy(stage)).length;
  const room = (available - label - OUTPUT - NARROW * (stages - full)) / full - 12;
  const cell = Math.max(positions > 9 ? 22 : 28, Math.min(44, Math.floor(room / positions)));
  const columns = [];
  let x = label;
  for (let stage = 0; stage <= stages; stage++) {
    const works = stage === 0 || busy(stage);
    const width = stage === stages ? OUTPUT : works ? Math.max(LEAST, positions * cell + 12) : NARROW;
    columns.push({ stage, x, width, works, cells: works && stage < stages });
    x += width;
  }
  return { columns, label, cell, width: x };
}
