// The columns the circuit and the residual stream share: one for the embedding, each sub-layer, and the output.

/** Widths in pixels: of a no-op, the output, any other column at least, a cell at least, and the margin of a node. */
const ROOMY = { noop: 46, output: 116, least: 124, cell: 28, margin: 28 };
const FITTED = { noop: 14, output: 84, least: 44, cell: 3, margin: 8 };
const TIGHT = { noop: 8, output: 50, least: 30, cell: 2, margin: 4, label: 72 };
const CROWDED = 9; // more positions have narrower cells
const LEGIBLE = 16; // a cell that is as wide as this can hold a value

/**
 * The places of all columns. `cell` is the width of a position's cell, `label` that of the names on the left, `margin`
 * what a node leaves free of its column. `fit`: as narrow as the columns must be to fit into `available`; null: if
 * they fit and their values can still be read.
 */
export function layout(model, positions, available, fit = false) {
  const roomy = planned(model, positions, available, ROOMY);
  if (fit === false || roomy.width <= available) return roomy;
  const wide = planned(model, positions, available, FITTED);
  const fitted = fit && wide.width > available ? planned(model, positions, available, TIGHT) : wide;
  return fit || (fitted.width <= available && fitted.cell >= LEGIBLE) ? fitted : roomy;
}

function planned(model, positions, available, sizes) {
  const stages = model.transformer.stages;
  const busy = (stage) => stage === 0 || model.components.some((part) => part.stage === stage);
  const label = sizes.label ?? (available < 560 ? 96 : 152);
  const full = Array.from({ length: stages }, (_, stage) => stage).filter(busy).length;
  const room = (available - label - sizes.output - sizes.noop * (stages - full)) / full - 12;
  const narrowest = sizes === ROOMY ? sizes.least : Math.max(sizes.least, Math.min(ROOMY.least, Math.floor(room) + 12));
  const least = sizes === ROOMY && positions > CROWDED ? 22 : sizes.cell;
  const cell = Math.max(least, Math.min(44, Math.floor(Math.max(room, narrowest - 12) / positions)));
  const columns = [];
  let x = label;
  for (let stage = 0; stage <= stages; stage++) {
    const works = stage < stages && busy(stage);
    const width = stage === stages ? sizes.output : works ? Math.max(narrowest, positions * cell + 12) : sizes.noop;
    columns.push({ stage, x, width, works: works || stage === stages, cells: works });
    x += width;
  }
  return { columns, label, cell, width: x, margin: sizes.margin, legible: cell >= LEGIBLE, fitted: sizes !== ROOMY };
}
