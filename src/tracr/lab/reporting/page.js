// The report of a laboratory run: sorting, filters, and what each method found. All text is set as text, never as HTML.
"use strict";
const PORTS = { q: 0.22, k: 0.5, v: 0.78 };
const NONE = "–";
const NEXT = 60; // pixels from a component to the next sub-layer, at most
const byId = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const say = (text) => (byId("status").textContent = text);

// A page has one report, or several: each with its own data and filters, whose ids end in the same words.
const reports = all("[data-report]").map((root) => {
  const part = (name) => root.querySelector(`[id$="${name}"]`);
  return { root, part, data: JSON.parse(part("lab-data").textContent) };
});

/** An element with attributes and children; strings become text. */
function make(tag, attributes = {}, ...children) {
  const svg = tag === "path" || tag === "title";
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Sorting: numbers by `data-value`, texts by their letters; what has no value is always last.
function valueOf(row, column) {
  const cell = row.cells[column];
  if ("value" in cell.dataset) return Number(cell.dataset.value);
  return cell.classList.contains("none") ? null : cell.textContent.trim();
}

function sortBy(head) {
  const table = head.closest("table");
  const rows = [...table.tBodies[0].rows];
  const column = head.cellIndex;
  const numbers = rows.some((row) => typeof valueOf(row, column) === "number");
  const now = head.getAttribute("aria-sort");
  const first = numbers ? "descending" : "ascending";
  const other = numbers ? "ascending" : "descending";
  const next = now === first ? other : first;
  const sign = next === "ascending" ? 1 : -1;
  const keyed = rows.map((row) => [valueOf(row, column), row]);
  keyed.sort(([x], [y]) => {
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
  });
  for (const cell of head.parentElement.cells) cell.setAttribute("aria-sort", cell === head ? next : "none");
  table.tBodies[0].append(...keyed.map(([, row]) => row));
  say(`Sorted by ${head.textContent}, ${next}`);
}

document.addEventListener("click", (event) => {
  const head = event.target.closest?.("thead th button")?.parentElement;
  if (head) sortBy(head);
});

// Filters: of realisations and methods for a whole report, of cases for its cases. Not every report has all of them.
function filter({ root, part }) {
  const [realisation, method] = ["filter-realisation", "filter-method"].map((name) => part(name)?.value ?? "");
  const text = part("filter-case")?.value.trim().toLowerCase() ?? "";
  for (const element of all("[data-realisation], [data-method], [data-case]", root)) {
    const { realisation: one, method: two, case: three } = element.dataset;
    element.hidden =
      (realisation !== "" && one !== undefined && one !== realisation) ||
      (method !== "" && two !== undefined && two !== method) ||
      (text !== "" && three !== undefined && !three.toLowerCase().includes(text));
  }
  const cases = all("details.case", root);
  const shown = cases.filter((element) => !element.hidden).length;
  if (cases.length) say(`${shown} of ${cases.length} cases are shown`);
}

function chooseScore({ root, part }) {
  const chosen = part("filter-score");
  if (chosen) for (const panel of all("[data-score]", root)) panel.hidden = panel.dataset.score !== chosen.value;
}

for (const report of reports) {
  for (const name of ["filter-realisation", "filter-method"])
    report.part(name)?.addEventListener("change", () => filter(report));
  report.part("filter-case")?.addEventListener("input", () => filter(report));
  report.part("filter-score")?.addEventListener("change", () => chooseScore(report));
  chooseScore(report);
}
for (const form of all("form")) form.addEventListener("submit", (event) => event.preventDefault());

// What each method found, filled in when a case is opened.
const CHOOSE = "Choose a seed to draw what was found with it.";
const FAILED = 0;
const ADMITTED = 2;

/** The smallest and the largest of some numbers, as one text. */
function span(values, digits = 0) {
  const known = values.filter((value) => value !== null);
  if (!known.length) return NONE;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return low === high ? low.toFixed(digits) : `${low.toFixed(digits)} to ${high.toFixed(digits)}`;
}

function fill(details, report) {
  const name = details.dataset.case;
  const content = report.data.cases[name];
  const groups = new Map();
  for (const row of content.rows) {
    const key = `${row[0]} ${row[1]}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  const columns = ["realisation", "method", "draw seed", "needed", "found", "missed", "extra", "AUROC", "exact", "CPR"];
  const heads = columns.map((text) =>
    make("th", { scope: "col", "aria-sort": "none" }, make("button", { type: "button" }, text)),
  );
  const body = make("tbody");
  for (const rows of groups.values()) body.append(line(details, content, rows, report.data));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body);
  const said = make("p", { class: "says" }, "What each method found: the range over seeds.");
  const box = make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Found in ${name}` }, table);
  details.querySelector(".edges-said").textContent = CHOOSE;
  details.querySelector(".found").replaceChildren(said, box);
  filter(report);
}

function line(details, content, rows, data) {
  const [realisation, method] = [data.realisations[rows[0][0]], data.methods[rows[0][1]]];
  const row = make("tr", { "data-realisation": realisation, "data-method": method });
  const buttons = rows.map((one) => seedButton(details, content, one, `${method} on ${realisation}`));
  row.append(make("th", { scope: "row" }, realisation), make("td", {}, method));
  row.append(make("td", {}, make("span", { class: "seeds" }, ...buttons)));
  const done = rows.filter((one) => one[3] !== FAILED);
  const needed = done.map((one) => content.truths[one[5]].length);
  const missed = done.map((one) => one[6].length);
  const found = done.map((one, place) => needed[place] - missed[place]);
  const score = (name) => done.map((one) => one[4][data.scores.indexOf(name)]);
  const numbers = [needed, found, missed, done.map((one) => one[7].length)];
  for (const values of numbers) row.append(number(values, span(values)));
  row.append(number(score("AUROC"), span(score("AUROC"), 3)));
  const exact = score("exact").filter((value) => value !== null);
  row.append(number(exact, exact.length ? `${exact.filter(Boolean).length} of ${exact.length}` : NONE));
  row.append(number(score("CPR"), span(score("CPR"), 3)));
  return row;
}

function number(values, text) {
  const known = values.filter((value) => value !== null).map(Number);
  if (!known.length) return make("td", { class: "none" }, text);
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return make("td", { class: "number", "data-value": mean }, text);
}

function seedButton(details, content, row, what) {
  if (row[3] === FAILED) return make("span", { class: "none" }, `seed ${row[2]} ${row[4]}`);
  const mark = row[3] === ADMITTED ? "" : " (not admitted)";
  const label = `Draw ${what}, seed ${row[2]}${mark}`;
  const button = make("button", { type: "button", "aria-pressed": "false", "aria-label": label }, `${row[2]}${mark}`);
  button.addEventListener("click", () => {
    const chosen = button.getAttribute("aria-pressed") === "true";
    for (const other of all("button[aria-pressed]", details)) other.setAttribute("aria-pressed", "false");
    if (!chosen) button.setAttribute("aria-pressed", "true");
    draw(details, content, chosen ? null : row, `${what}, seed ${row[2]}`);
    details.querySelector(".circuit")?.scrollIntoView({ block: "nearest" });
  });
  return button;
}

/** Colour the edges that were found and missed, and add those that are not in the drawing. */
function draw(details, content, row, what) {
  const svg = details.querySelector(".circuit");
  const said = details.querySelector(".edges-said");
  const edges = new Map(svg ? all(".edges .edge", svg).map((path) => [path.dataset.edge, path]) : []);
  svg?.classList.toggle("chosen", row !== null);
  svg?.querySelector(".overlay").replaceChildren();
  for (const path of edges.values()) path.classList.remove("is-found", "is-missed", "is-extra");
  if (row === null) return said.replaceChildren(CHOOSE);
  const missed = new Set(row[6]);
  const kinds = { found: content.truths[row[5]].filter((one) => !missed.has(one)), missed: row[6], extra: row[7] };
  let absent = 0;
  for (const [kind, places] of Object.entries(kinds))
    for (const edge of places.map((one) => content.edges[one])) {
      const path = edges.get(edge) ?? overlay(svg, content.nodes, edge);
      if (path) path.classList.add(`is-${kind}`);
      else absent += 1;
    }
  const names = (places) => places.flatMap((one, n) => [n ? ", " : " ", make("code", {}, content.edges[one])]);
  const list = (kind, css) => [make("b", { class: css }, `${kinds[kind].length} ${kind}`), ...names(kinds[kind]), ". "];
  said.replaceChildren(`${what}: `, ...list("found", "good"), ...list("missed", "bad"), ...list("extra", "extra"));
  if (absent) said.append(`${absent} of them belong to components that are not in the drawing.`);
}

/** A new line for an edge between two components of the drawing, if both are there. */
function overlay(svg, nodes, edge) {
  const [writer, reader] = edge.split("->");
  const last = reader.slice(reader.lastIndexOf(".") + 1);
  const port = nodes.includes(reader) ? undefined : PORTS[last];
  const target = port === undefined ? reader : reader.slice(0, -2);
  const [from, to] = [writer, target].map((name) => nodes.indexOf(name));
  if (!svg || from < 0 || to < 0) return null;
  const [start, end] = [from, to].map((place) => svg.querySelector(`[data-node="${place}"] rect`));
  const [x, y] = [start.x.baseVal.value + start.width.baseVal.value / 2, start.y.baseVal.value + start.height.baseVal.value];
  const toX = end.x.baseVal.value + end.width.baseVal.value * (port ?? 0.5);
  const toY = end.y.baseVal.value;
  // a line that passes other components goes around them, on alternate sides
  const passes = toY - y > NEXT;
  const side = svg.querySelectorAll(".overlay path").length % 2 ? 1 : -1;
  const out = passes ? side * Math.min(120, start.width.baseVal.value / 2 + (toY - y) / 8) * 1.33 : 0;
  const bend = passes ? Math.min(60, (toY - y) / 3) : (toY - y) / 2;
  const path = make("path", {
    class: "edge",
    d: `M${x} ${y}C${x + out} ${y + bend} ${toX + out} ${toY - bend} ${toX} ${toY}`,
  });
  path.append(make("title", {}, edge));
  svg.querySelector(".overlay").append(path);
  return path;
}

for (const report of reports)
  for (const details of all("details.case", report.root))
    details.addEventListener("toggle", () => {
      if (details.open && !details.querySelector(".found table")) fill(details, report);
    });

// Light or dark: as the system says, or as the button says.
const theme = byId("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
