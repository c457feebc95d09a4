// The circuit: every component in its column, and a wire for every variable from its writer to its readers.

import { arrange, before } from "../core/wires.js";
import { classes, h, svg } from "./dom.js";
import { abbreviated, componentName, componentSize, computes, shortened } from "./names.js";

const NODE = 40,
  LANE = 9,
  GAP = 9,
  TOP = 12;
const NARROW = 60; // a node that is narrower has only its name

export function circuit(state, plan, page) {
  const { model } = state;
  const { lit } = state;
  const edges = model.edges.filter((edge) => state.plumbing || !(edge.plumbing || edge.cancelled));
  const { columns, wires, items } = arrange(model.components, edges, model.transformer.stages);
  const height = place(columns, plan);
  const paths = wires.flatMap((wire) => draw(model, wire, items, lit, page));
  paths.sort((a, b) => Number(a.on) - Number(b.on));
  const stages = new Set([...lit].map((number) => model.components[number].stage));
  const bands = plan.columns
    .filter((column) => stages.has(column.stage))
    .map(({ x, width }) => svg("rect", { class: "band", x, y: 0, width, height }));
  return h(
    "div",
    { class: "circuit", style: `height:${height}px;width:${plan.width}px` },
    svg(
      "svg",
      { width: plan.width, height, "aria-hidden": "true" },
      bands,
      paths.map((path) => path.element),
    ),
    h("div", { class: "label", style: `width:${plan.label}px` }, "Circuit"),
    columns
      .flat()
      .filter((item) => item.part)
      .map((item) => node(state, item, page)),
  );
}

/** Set the box of every item; returns the total height. */
function place(columns, plan) {
  const size = (item) => (item.part ? NODE : LANE) + GAP;
  const heights = columns.map((column) => column.reduce((sum, item) => sum + size(item), 0));
  const height = Math.max(...heights) + 2 * TOP - GAP;
  columns.forEach((column, stage) => {
    const { x, width } = plan.columns[stage];
    let top = (height - heights[stage] + GAP) / 2;
    for (const item of column) {
      const margin = item.part?.kind === "unembedding" ? Math.min(12, plan.margin) : plan.margin;
      const span = item.part ? Math.min(width - margin, 190) : width;
      item.box = { x: x + (width - span) / 2, y: top, width: span, height: item.part ? NODE : LANE };
      top += size(item);
    }
  });
  return height;
}

const LETTER = 7.3, // the width of a letter
  AROUND = 14; // pixels of a node that hold no letters

/** The name of a node in the room it has: the first variable, cut in its middle, and the number of others. */
function title(model, part, names, width) {
  const room = Math.max(4, Math.floor((width - AROUND) / LETTER));
  const all = names.join(", ");
  if (all.length <= room || part.kind === "unembedding") return all || "no variable";
  const labels = model.groups.map((group) => group.label);
  const [first] = [...part.writes, ...part.clears].map((number) => model.groups[number].label);
  if (width < NARROW) return (part.clears.length ? "✕" : "") + abbreviated(labels, part.clears.length ? 3 : 4).get(first);
  const rest = names.length > 1 ? ` +${names.length - 1}` : "";
  const before = part.clears.length ? (room > 14 ? "clears " : "✕ ") : "";
  return before + shortened(labels, Math.max(4, room - rest.length - before.length)).get(first) + rest;
}

function node(state, { part, box }, page) {
  const { model } = state;
  const names =
    part.kind === "unembedding"
      ? model.outputs.map((output) => output.name)
      : [
          ...part.writes.map((number) => model.groups[number].label),
          ...part.clears.map((number) => `clears ${model.groups[number].label}`),
        ];
  const groups = part.kind === "unembedding" ? [] : [...part.writes, ...part.clears];
  const sops = groups.map((number) => model.groups[number].sop).filter((sop) => sop !== null);
  const current = part.number === state.component;
  const small = box.width < NARROW;
  const shown = title(model, part, names, box.width);
  return h(
    "button",
    {
      type: "button",
      class: classes(
        "node",
        small && "small",
        part.kind,
        part.clears.length && "clearing",
        state.lit.has(part.number) && "lit",
        current && "current",
        state.affected(part) && "affected",
      ),
      style: `left:${box.x}px;top:${box.y}px;width:${box.width}px;height:${box.height}px`,
      "aria-pressed": String(current),
      "aria-label": `${shown} ${componentName(part)}${shown === names.join(", ") ? "" : `: ${names.join(", ")}`}`,
      data: { key: `node-${part.number}`, ...(sops.length ? { sop: [...new Set(sops)].join(" ") } : {}) },
      on: {
        click: () => state.selectComponent(part.number),
        mouseenter: (event) => page.tooltip.show(event.currentTarget.getBoundingClientRect(), [computes(model, part)]),
        mouseleave: () => page.tooltip.hide(),
      },
    },
    h("b", {}, shown),
    " ",
    h("small", {}, small ? "" : componentSize(part) || componentName(part)),
  );
}

/** The pieces of a wire: from column to column, and to each reader. A piece is lit if its writer or reader is. */
function draw(model, wire, items, lit, page) {
  const name = model.groups[wire.group].label;
  const parts = model.components;
  const writes = lit.has(wire.source);
  const reach = Math.max(
    -1,
    ...wire.readers.filter((edge) => lit.has(edge.target)).map((edge) => parts[edge.target].stage),
  );
  const pieces = [];
  const { sop } = model.groups[wire.group];
  const piece = (d, on, pale, text, data) => {
    const show = (event) =>
      page.tooltip.show({ left: event.clientX, top: event.clientY - 4, bottom: event.clientY + 12, width: 0 }, [text]);
    const touch = svg("path", { d, class: "touch", on: { mousemove: show, mouseleave: () => page.tooltip.hide() } });
    const kind = classes("edge", on && "lit", pale && "faint");
    pieces.push({ on, element: svg("g", { class: kind, data: { ...data, ...(sop === null ? {} : { sop }) } }, svg("path", { d }), touch) });
  };
  let behind = items.get(wire.source);
  for (const [stage, lane] of wire.lanes) {
    const start = [lane.box.x + Math.min(16, lane.box.width / 3), middle(lane)];
    const later = wire.readers.filter((edge) => parts[edge.target].stage > stage);
    const d = `${curve(right(behind), start)} H${lane.box.x + lane.box.width}`;
    piece(
      d,
      writes || stage < reach,
      later.every((edge) => faint(parts, edge)),
      name,
      { wire: `${wire.source}:${wire.group}`, stage },
    );
    behind = lane;
  }
  for (const edge of wire.readers) {
    const into = { q: ", as query", k: ", as key", v: ", as value" }[edge.input] ?? "";
    const target = items.get(edge.target).box;
    const end = [target.x, target.y + NODE / 2 + ({ q: -10, k: 0, v: 10 }[edge.input] ?? 0)];
    const text = `${name}${into}${remark(parts, edge)}`;
    const on = writes || lit.has(edge.target);
    const data = { wire: `${wire.source}:${wire.group}`, target: edge.target, input: edge.input };
    piece(curve(right(before(wire, parts, edge, items)), end), on, faint(parts, edge), text, data);
  }
  return pieces;
}

/** Whether an edge carries no information for its reader. */
function faint(parts, edge) {
  return edge.plumbing || edge.cancelled || parts[edge.target].clears.length > 0;
}

function remark(parts, edge) {
  if (edge.cancelled)
    return parts[edge.source].clears.length
      ? " (cancelled: this clears the old value)"
      : " (cancelled: its dimensions were cleared and now hold another variable)";
  if (parts[edge.target].clears.length) return ", to be cleared";
  return edge.plumbing ? " (only BOS, PAD or the constant one)" : "";
}

function middle({ box }) {
  return box.y + box.height / 2;
}

function right(item) {
  return [item.box.x + item.box.width, middle(item)];
}

function curve([x1, y1], [x2, y2]) {
  const bend = (x2 - x1) / 2;
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}
