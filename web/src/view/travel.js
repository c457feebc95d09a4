// Values that travel along the wires of the circuit into a component.

import { svg } from "./dom.js";

const DURATION = 1500; // milliseconds

/** Let the values that a component reads travel to it; nothing moves if the reader asked for less motion. */
export function travel(page, part) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const { state } = page;
  const { model } = state;
  const graph = page.overview.graph.querySelector("svg");
  for (const edge of model.edges) {
    if (edge.target !== part.number || edge.plumbing || edge.cancelled) continue;
    const path = pathOf(graph, edge, part.stage);
    const group = model.groups[edge.group];
    const held = model.read(group, state.now.run, part.stage - 1, positionOf(state, part, edge));
    if (path && held) send(graph, path, held.text);
  }
}

/** The position whose value is sent: that of the query, or of the key with the most attention. */
function positionOf({ now, position }, part, { input }) {
  if (input !== "k" && input !== "v") return position + 1;
  const { length } = now.run;
  const row = now.run.patterns[part.layer][part.head].subarray((position + 1) * length, (position + 2) * length);
  return row.indexOf(Math.max(...row));
}

/** The way from the writer of a wire to a reader: its lanes, then the branch. */
function pathOf(graph, { source, group, target, input }, stage) {
  const pieces = [...graph.querySelectorAll(`[data-wire="${source}:${group}"]`)];
  const lanes = pieces
    .filter(({ dataset }) => dataset.stage !== undefined && Number(dataset.stage) < stage)
    .sort((a, b) => a.dataset.stage - b.dataset.stage);
  const end = pieces.find(({ dataset }) => Number(dataset.target) === target && dataset.input === input);
  return end && [...lanes, end].map((piece) => piece.firstChild.getAttribute("d")).join(" ");
}

function send(graph, path, text) {
  const shown = text.length > 6 ? `${text.slice(0, 5)}…` : text;
  const width = 10 + 7 * shown.length;
  const packet = svg(
    "g",
    { class: "packet", style: `offset-path:path("${path}");offset-rotate:0deg` },
    svg("rect", { x: -width / 2, y: -9, width, height: 18, rx: 9 }),
    svg("text", { y: 4 }, shown),
  );
  graph.append(packet);
  const frames = [{ offsetDistance: "0%" }, { offsetDistance: "100%" }];
  packet.animate(frames, { duration: DURATION, easing: "ease-in-out" }).finished.then(
    () => packet.remove(),
    () => packet.remove(),
  );
}
