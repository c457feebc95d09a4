// The places of the circuit's components and wires. A written variable is one wire: it runs from its writer, along its
// own lane through every column on the way, to its last reader; other readers branch off.

/**
 * Order nodes and lanes within columns. Returns `nodes` [{part, order}] and `wires` [{source, group, plumbing, lanes,
 * readers}]: `lanes` maps a column to the lane's place there, `readers` are its edges.
 * `columns[c]` lists the content of column c from top to bottom: {part} or {wire}.
 */
export function arrange(parts, edges, stages) {
  const wires = new Map();
  for (const edge of edges) {
    const key = `${edge.source}:${edge.group}`;
    const wire = wires.get(key) ?? { source: edge.source, group: edge.group, readers: [] };
    wire.readers.push(edge);
    wires.set(key, wire);
  }
  const columns = Array.from({ length: stages + 1 }, () => []);
  for (const part of parts) columns[part.stage].push({ part, above: [] });
  const items = new Map(columns.flat().map((item) => [item.part.number, item]));
  for (const wire of wires.values()) {
    const first = parts[wire.source].stage;
    const last = Math.max(...wire.readers.map((edge) => parts[edge.target].stage));
    wire.lanes = new Map();
    let behind = items.get(wire.source);
    for (let stage = first + 1; stage < last; stage++) {
      const lane = { wire, above: [behind] };
      columns[stage].push(lane);
      wire.lanes.set(stage, lane);
      behind = lane;
    }
    for (const edge of wire.readers) items.get(edge.target).above.push(before(wire, parts, edge, items));
  }
  settle(columns);
  return { columns, wires: [...wires.values()], items };
}

/** The source of an edge in the column before its reader: the lane, or the writer itself. */
export function before(wire, parts, edge, items) {
  return wire.lanes.get(parts[edge.target].stage - 1) ?? items.get(wire.source);
}

/** Sweep forwards and backwards: each item moves to the mean height of its neighbours in the column before, then after. */
function settle(columns) {
  const below = new Map();
  for (const item of columns.flat())
    for (const other of item.above) below.set(other, [...(below.get(other) ?? []), item]);
  const number = () =>
    columns.forEach((column) => column.forEach((item, place) => (item.at = place - column.length / 2)));
  const sort = (column, neighbours) => {
    for (const item of column) {
      const near = neighbours(item);
      item.wish = near.length ? near.reduce((sum, other) => sum + other.at, 0) / near.length : item.at;
    }
    column.sort((a, b) => a.wish - b.wish);
  };
  number();
  for (let sweep = 0; sweep < 6; sweep++) {
    const there = sweep % 2 === 0;
    for (const column of there ? columns : [...columns].reverse()) {
      sort(column, (item) => (there ? item.above : (below.get(item) ?? [])));
      column.forEach((item, place) => (item.at = place - column.length / 2));
    }
  }
}
