// The matrices of a component, with labelled rows and columns; zero rows and columns are left out.

/** The named matrices of a component. */
export function matricesOf(model, part) {
  const { transformer } = model;
  const labels = model.labels(part.clears.length ? part.stage - 1 : part.stage); // it clears what was stored before
  const biased = new Map([...model.labels(part.stage - 1), [transformer.width, "(bias)"]]);
  const direction = "direction";
  switch (part.kind) {
    case "embedding": {
      const tokens = part.id === "embed";
      const rows = tokens
        ? [...model.vocab.map((value) => value.text), model.bos, model.pad]
        : positionNames(transformer.W_pos.shape[0]);
      const matrix = tokens ? transformer.W_E : transformer.W_pos;
      const what = tokens ? "what each token puts into the stream" : "what each position puts into the stream";
      return [
        compact(
          tokens ? "W_E" : "W_pos",
          what,
          entries(matrix),
          rows,
          labels,
          tokens ? "token" : "position",
          direction,
        ),
      ];
    }
    case "unembedding":
      return [
        compact(
          "W_U",
          "which directions are the output",
          entries(transformer.W_U),
          model.labels(part.stage - 1),
          outputNames(model),
          direction,
          "logit",
        ),
      ];
    case "head": {
      const head = transformer.layers[part.layer].heads[part.head];
      const [q, k, v] = ["Q", "K", "V"].map((name) => withBias(head[`W_${name}`], head[`b_${name}`]));
      return [
        compact(
          "W_QK",
          "the attention logit each direction at the query gives each direction at the key",
          product(q, transposed(k)),
          biased,
          biased,
          "query",
          "key",
        ),
        compact(
          "W_OV",
          "what each direction at the key writes once it is attended to",
          product(v, entries(head.W_O)),
          biased,
          labels,
          "key",
          "writes",
        ),
      ];
    }
    default: {
      const layer = transformer.layers[part.layer],
        [start, stop] = part.neurons;
      const names = Array.from({ length: stop - start }, (_, i) => `neuron ${start + i}`);
      const mine = (place) => (list) => list.filter((entry) => entry[place] >= start && entry[place] < stop);
      const incoming = mine(1)(withBias(layer.W_in, layer.b_in)).map(([row, column, x]) => [row, column - start, x]);
      const outgoing = mine(0)(entries(layer.W_out)).map(([row, column, x]) => [row - start, column, x]);
      return [
        compact("W_in", "what each neuron reads, and its bias", incoming, biased, names, direction, ""),
        compact("W_out", "what each neuron writes", outgoing, names, labels, "", direction),
      ];
    }
  }
}

function entries(matrix) {
  const found = [];
  matrix.each((row, column, x) => found.push([row, column, x]));
  return found;
}

/** A matrix with its bias as an additional row. */
function withBias(matrix, bias) {
  const found = entries(matrix);
  bias.at.forEach((place, i) => found.push([matrix.shape[0], place, bias.values[i]]));
  return found;
}

function transposed(list) {
  return list.map(([row, column, x]) => [column, row, x]);
}

function product(a, b) {
  const byRow = new Map();
  for (const [row, column, x] of b) byRow.set(row, [...(byRow.get(row) ?? []), [column, x]]);
  const sums = new Map();
  for (const [row, inner, x] of a)
    for (const [column, y] of byRow.get(inner) ?? []) {
      const key = `${row},${column}`;
      sums.set(key, [row, column, (sums.get(key)?.[2] ?? 0) + x * y]);
    }
  return [...sums.values()].filter(([, , x]) => x !== 0);
}

/** The nonzero rows and columns of a matrix; names are lists, or maps from indices, in the order of rows or columns. */
function compact(name, what, list, rowsBy, columnsBy, rowName, columnName) {
  const [rowNames, columnNames] = [rowsBy, columnsBy].map((names) => new Map(names.entries()));
  const used = [0, 1].map((side) => new Set(list.map((entry) => entry[side])));
  const [rows, columns] = [rowNames, columnNames].map((names, side) =>
    [...names.keys()].filter((place) => used[side].has(place)),
  );
  const places = [rows, columns].map((kept) => new Map(kept.map((number, place) => [number, place])));
  const dense = new Float64Array(rows.length * columns.length);
  for (const [row, column, x] of list) dense[places[0].get(row) * columns.length + places[1].get(column)] = x;
  return {
    name,
    what,
    rowName,
    columnName,
    rows: rows.map((row) => rowNames.get(row)),
    columns: columns.map((column) => columnNames.get(column)),
    of: [rowNames.size, columnNames.size],
    at: (row, column) => dense[row * columns.length + column],
  };
}

function positionNames(length) {
  return Array.from({ length }, (_, p) => (p ? String(p - 1) : "BOS"));
}

function outputNames(model) {
  const names = [];
  for (const output of model.outputs) {
    const { encoding, domain } = model.sops.get(output.sop);
    for (let place = 0; place < output.stop - output.start; place++)
      names.push(
        encoding === "categorical"
          ? `${output.name}:${domain.text(place)}`
          : place
            ? `${output.name}:None`
            : output.name,
      );
  }
  return names;
}
