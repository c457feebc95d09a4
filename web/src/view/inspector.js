// The current line in detail: its meaning, its values in program and model, its attention, its table.

import { classes, h } from "./dom.js";
import { explain } from "./explain.js";
import { grid } from "./grid.js";
import { capitalised, componentName, componentNames, count, listed } from "./names.js";
import { walk } from "./walk.js";
import { shortNumber } from "../core/domains.js";

const MOST_ROWS = 60; // most rows of a table
const MOST_HEADS = 7; // most heads of a selector
const TINY = 1e-3; // the most attention to keys of a head whose counts are added

export function inspector(state, page) {
  const { model } = state;
  const line = state.current;
  return [
    h("h2", { class: "current-line" }, h("code", {}, line.label)),
    h("p", { class: "caption" }, explain(model, line)),
    line.kind === "sop" && values(state, line.id, page),
    attention(state, line, page),
    walk(state, page),
    line.kind === "sop" && functionTable(state, model.sops.get(line.id)),
    parts(state, page),
  ];
}

function values(state, sop, page) {
  const { model, tokens } = state;
  const group = model.groupOfSop.get(sop);
  if (!tokens.length) return null;
  const all = tokens.map((_, p) => state.valueOf(sop, p));
  const known = all.filter((value) => value.agree !== null);
  const verdict = !group
    ? ""
    : known.length && known.every((value) => value.agree)
      ? "✓ equal"
      : known.some((value) => value.agree === false)
        ? "✗ differ"
        : "";
  const cell = (value, p) =>
    h(
      "td",
      {
        class: classes(value.agree === false && "wrong", value.changed && "changed", value.patched && "patched"),
        data: { at: p + 1 },
      },
      !state.patchable(sop) && modelText(model.sops.get(sop).domain, value.model),
      state.patchable(sop) &&
        h(
          "button",
          {
            type: "button",
            class: "value",
            title: "patch this value",
            "aria-label": `${model.sops.get(sop).label} at position ${p} is ${modelText(model.sops.get(sop).domain, value.model)}: patch it`,
            data: { key: `value-${p}` },
            on: { click: (event) => page.patchMenu.open(event.currentTarget, sop, p) },
          },
          modelText(model.sops.get(sop).domain, value.model),
        ),
    );
  const rows = [
    h(
      "tr",
      { class: "tokens" },
      h("th", { scope: "row" }, "input"),
      tokens.map((code, p) => h("td", { data: { at: p + 1 } }, model.vocab[code].text)),
    ),
    state.now !== state.base &&
      h(
        "tr",
        { class: "before" },
        h("th", { scope: "row" }, "before"),
        all.map((value, p) => h("td", { data: { at: p + 1 } }, value.before)),
      ),
    h(
      "tr",
      { class: "program" },
      h("th", { scope: "row" }, "program"),
      all.map((value, p) =>
        h("td", { class: classes(value.changed && "changed"), title: value.exact, data: { at: p + 1 } }, value.program),
      ),
    ),
    group && h("tr", { class: "model" }, h("th", { scope: "row" }, "model"), all.map(cell)),
  ];
  return h(
    "section",
    {},
    h("h3", {}, "Values", verdict && h("span", { class: verdict.startsWith("✓") ? "ok" : "bad" }, verdict)),
    h("div", { class: "scroll" }, h("table", { class: "results small" }, h("tbody", {}, rows))),
    state.patchable(sop) ? h("p", { class: "hint" }, "Click a value of the model to patch it.") : null,
  );
}

function modelText(domain, held) {
  if (held === null) return "·";
  if (held.off) return shortNumber(held.raw);
  return held.code === null ? held.text : domain.short(held.code);
}

function attention(state, line, page) {
  const { model, tokens } = state;
  if (!tokens.length) return null;
  const heads = [...state.lit]
    .sort((a, b) => a - b)
    .map((number) => model.components[number])
    .filter((part) => part.kind === "head");
  const id = line.kind === "selector" ? line.id : (heads[0]?.selector ?? null);
  if (!heads.length && id === null) return null;
  const names = tokens.map((code) => model.vocab[code].text);
  const all = [model.bos, ...names];
  const at = (p) => `position ${p} (${names[p]})`;
  const room = Math.max(120, Math.min(176, (page.detail.clientWidth - 56) / 2));
  const figures = [];
  const common = {
    names: all,
    side: room / (all.length + 1),
    tooltip: page.tooltip,
    query: state.position + 1,
    choose: (q) => q && page.player.at(q - 1),
  };
  const point = (pointed) => page.coupling.point(pointed);
  if (id !== null) {
    const { cells } = state.now.program.selections(id);
    const selected = (q, k) => (q && k ? Number(cells[q - 1][k - 1]) : null);
    figures.push(
      grid({
        ...common,
        caption: `${model.selectors.get(id).label}: the selected keys`,
        key: "selector",
        cell: selected,
        describe: (q, k) =>
          q && k
            ? `${at(q - 1)} ${selected(q, k) ? "selects" : "does not select"} ${at(k - 1)}`
            : "BOS is not a position of the program",
        point,
      }),
    );
  }
  const name = (p) => (p ? at(p - 1) : "BOS");
  const patterns = heads.map((head) => new Pattern(state.now.run.patterns[head.layer][head.head], all.length));
  heads.slice(0, MOST_HEADS).forEach((head, i) => {
    const pattern = patterns[i];
    figures.push(
      grid({
        ...common,
        caption: `${componentName(head)}: its attention`,
        key: `pattern-${i}`,
        cell: (q, k) => pattern.shown(q, k),
        describe: (q, k) => `${name(q)} attends to ${name(k)}: ${shortNumber(pattern.at(q, k))}`,
        point,
      }),
    );
  });
  const more = heads.length > MOST_HEADS ? ` ${count(heads.length - MOST_HEADS, "more head")} not shown.` : "";
  return h(
    "section",
    {},
    h("h3", {}, "Attention"),
    h("div", { class: "figures" }, figures),
    h("p", { class: "hint" }, `Rows are queries, columns are keys. ${rule(model, line, heads, patterns)}${more}`),
  );
}

/** A head's attention. If BOS has nearly all of it, the other keys are shown relative to each other. */
class Pattern {
  constructor(weights, size) {
    this.weights = weights;
    this.size = size;
    let most = 0;
    for (let q = 1; q < size; q++) for (let k = 1; k < size; k++) most = Math.max(most, this.at(q, k));
    this.scale = most > 0 && most < TINY ? most : 1;
  }

  at(q, k) {
    return this.weights[q * this.size + k];
  }

  shown(q, k) {
    return Math.min(1, k ? this.at(q, k) / this.scale : this.at(q, k));
  }
}

/** A sentence on how the pattern follows from the selector. */
function rule(model, line, heads, patterns) {
  if (!heads.length) return "No head computes this selector.";
  const parts = heads.length > 1 && line.kind === "sop" ? "Each head attends to a part of the selected keys. " : "";
  if (patterns.some(({ scale }) => scale !== 1))
    return `${parts}To make its counts add up with those of other heads, a head gives BOS (first column) nearly all its attention; each selected key gets the same tiny share, and the values are scaled up. Colours show shares relative to each other.`;
  const kinds = heads[0].writes.map((number) => model.sops.get(model.groups[number].sop)?.op.kind);
  if (kinds.includes("width") || kinds.includes("length"))
    return `${parts}To count, a head attends to the selected keys and, with a fixed weight, to BOS (first column).`;
  return `${parts}The selected keys share the attention; if no key is selected, BOS (first column) gets it.`;
}

/** The table of a function; the rows that the input uses are marked. */
function functionTable(state, sop) {
  const { model, tokens, now } = state;
  const { op } = sop;
  if (op.kind !== "lookup" && op.kind !== "pair_lookup") return null;
  const inputs = op.kind === "lookup" ? [op.inner] : [op.fst, op.snd];
  const sizes = inputs.map((id) => model.sops.get(id).domain.size);
  const used = new Set(
    tokens.map((_, p) => inputs.reduce((place, id, i) => place * sizes[i] + now.program.codes.get(id)[p], 0)),
  );
  const places = op.table.map((_, place) => place).filter((place) => op.table[place] !== -2);
  places.sort((a, b) => Number(used.has(b)) - Number(used.has(a)) || a - b);
  const rows = places.slice(0, MOST_ROWS).map((place) => {
    const codes = inputs.length === 1 ? [place] : [Math.floor(place / sizes[1]), place % sizes[1]];
    const out = op.table[place] === -1 ? "fails" : sop.domain.text(op.table[place]);
    return h(
      "tr",
      { class: classes(used.has(place) && "used") },
      codes.map((code, i) => h("td", {}, model.sops.get(inputs[i]).domain.text(code))),
      h("td", { class: "out" }, out),
    );
  });
  const more = places.length > MOST_ROWS ? `, ${MOST_ROWS} shown` : "";
  return h(
    "details",
    { class: "table", data: { key: "table" } },
    h("summary", {}, `The function as a table (${count(places.length, "row")}${more}; those of this input first)`),
    h(
      "div",
      { class: "scroll tall" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            inputs.map((id) => h("th", {}, model.sops.get(id).label)),
            h("th", { class: "out" }, sop.label),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
  );
}

/** The components of the line: their reads, writes and readers, and their weights on demand. */
function parts(state, page) {
  const { model } = state;
  const lit = [...state.lit].sort((a, b) => a - b).map((number) => model.components[number]);
  if (!lit.length) return null;
  return h(
    "section",
    {},
    h("h3", {}, "In the transformer"),
    lit.map((part) => {
      const told = model.edges.filter((edge) => !edge.plumbing && !edge.cancelled);
      const into = told.filter((edge) => edge.target === part.number);
      const out = told.filter((edge) => edge.source === part.number).map((edge) => model.components[edge.target]);
      const [clearing, readers] = [true, false].map((yes) => out.filter(({ clears }) => clears.length > 0 === yes));
      const labels = (numbers) => listed(numbers.map((number) => model.groups[number].label));
      const entry = (name, text) => (text ? [h("dt", {}, name), h("dd", {}, text)] : []);
      const inputs = { q: " as query", k: " as key", v: " as value" };
      return h(
        "div",
        { class: classes("part", part.number === state.component && "current") },
        h(
          "div",
          { class: "title" },
          h("span", {}, capitalised(componentName(part)), h("code", {}, part.id)),
          h(
            "button",
            { type: "button", data: { key: `weights-${part.number}` }, on: { click: () => page.weights.open(part) } },
            "weights",
          ),
        ),
        h("dl", {}, [
          entry("reads", listed(into.map((edge) => model.groups[edge.group].label + (inputs[edge.input] ?? "")))),
          entry("writes", labels(part.writes)),
          entry("clears", labels(part.clears)),
          entry("read by", componentNames(readers)),
          entry("cleared by", componentNames(clearing)),
        ]),
      );
    }),
  );
}
