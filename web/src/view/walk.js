// The current component at one position, step by step: its reads, and for a head the scores, the softmax and the
// weighted sum, in numbers.

import { shortNumber } from "../core/domains.js";
import { headSteps } from "../core/head_steps.js";
import { classes, h } from "./dom.js";
import { componentName, listed } from "./names.js";

/** The number of steps of a component; step 0 shows all of them. */
export function stepsOf(part) {
  return part.kind === "head" ? 5 : part.kind === "neurons" ? 2 : 1;
}

export function walk(state, page) {
  const { model, tokens } = state;
  if (state.component === null || !tokens.length) return null;
  const part = model.components[state.component];
  const { step } = state;
  const told = sentence(state, part, step || stepsOf(part));
  return h(
    "section",
    { class: "walk", "aria-label": "Step by step" },
    h("h3", {}, "Step by step ", h("span", { class: "hint" }, componentName(part))),
    h(
      "div",
      { class: "tools" },
      chooser(state, page),
      button("◂", "the step before", () => page.player.move(-1), "step-back"),
      button("▸", "the next step", () => page.player.move(1), "step-on"),
      button(page.player.playing ? "❚❚ pause" : "▶ play", "", () => page.player.toggle(), "play"),
    ),
    h("p", { class: "told" }, step ? `${step} of ${stepsOf(part)}. ${told}` : told),
    part.kind === "head" && table(state, part, step || stepsOf(part)),
  );
}

function button(text, name, act, key) {
  return h("button", { type: "button", "aria-label": name || null, data: { key }, on: { click: act } }, text);
}

/** The choice of the position. */
function chooser(state, page) {
  const { model, tokens, position } = state;
  const choose = (event) => page.player.at(Number(event.target.value));
  const choice = (code, p) => h("option", { value: p, selected: p === position }, `${p}: ${model.vocab[code].text}`);
  return h(
    "label",
    { class: "hint" },
    "position ",
    h("select", { data: { key: "position" }, on: { change: choose } }, tokens.map(choice)),
  );
}

/** What a component does in a step, at the current position. */
export function sentence(state, part, step) {
  const { model, position } = state;
  const here = `position ${position}`;
  const writes = valuesOf(state, part.writes, part.stage, position + 1);
  if (part.kind === "embedding")
    return `The ${componentName(part)} writes ${writes || "nothing"} into the stream of ${here}.`;
  if (part.kind === "unembedding") {
    const out = ({ sop, name }, p) => {
      const { domain } = model.sops.get(sop);
      return `${name} = ${domain.short(model.decode(model.outputs.find((one) => one.name === name), state.now.run, p))}`;
    };
    return `The unembedding reads the output at ${here}: ${listed(model.outputs.map((one) => out(one, position)))}.`;
  }
  if (part.clears.length)
    return `The neurons clear ${listed(part.clears.map((number) => model.groups[number].label))}: no later component reads it, and another variable takes its place.`;
  const reads = (input, p) => valuesOf(state, readsOf(model, part, input), part.stage - 1, p);
  if (part.kind === "neurons")
    return step === 1
      ? `The neurons read ${reads("in", position + 1) || "a constant"} at ${here}; they see no other position.`
      : `They write ${writes || "nothing"} at ${here}.`;
  return headSentence(state, part, step, { here, writes, reads });
}

function headSentence(state, part, step, { here, writes, reads }) {
  const { model, now, position } = state;
  const { weights } = headSteps(model, now.run, part, position + 1);
  const best = weights.indexOf(Math.max(...weights));
  const name = best ? `position ${best - 1}` : "BOS";
  const key = listed(readsOf(model, part, "k").map((number) => model.groups[number].label));
  const value = listed(readsOf(model, part, "v").map((number) => model.groups[number].label));
  switch (step) {
    case 1:
      return `The query is made at ${here}, from ${reads("q", position + 1) || "a constant"}; every position makes a key${key && ` from its ${key}`}.`;
    case 2:
      return "Query times key is a score for each position: high where the selector selects it.";
    case 3:
      return `Softmax turns the scores into weights that add up to 1: the largest, ${brief(weights[best])}, goes to ${name}.`;
    case 4:
      return `Each position’s ${value || "value"} is multiplied by its weight, and the products are added.`;
    default:
      return `The head adds the sum to the stream of ${here}${writes ? `: ${writes}` : ""}.`;
  }
}

/** The variables that a component reads through an input (q, k, v or in), without BOS, PAD and the constant one. */
export function readsOf(model, part, input) {
  const told = model.edges.filter((edge) => edge.target === part.number && edge.input === input);
  return [...new Set(told.filter((edge) => !edge.plumbing && !edge.cancelled).map((edge) => edge.group))];
}

/** Variables with their values after a stage, in words: "tokens = a". */
function valuesOf({ model, now }, groups, stage, position) {
  const value = (group) => model.read(group, now.run, stage, position)?.text ?? "not set";
  return listed(groups.map((number) => `${model.groups[number].label} = ${value(model.groups[number])}`));
}

function brief(x) {
  return Math.abs(x) >= 1000 ? x.toPrecision(2).replace("e+", "e").replace("-", "−") : shortNumber(x, 2);
}

/** The numbers of a head: a row for each key, a column for each step that was made. */
function table(state, part, step) {
  const { model, tokens, now, position } = state;
  const { keys, scores, weights, rows } = headSteps(model, now.run, part, position + 1);
  const most = rows.reduce((best, row) => (Math.abs(row.sum) > Math.abs(best.sum) ? row : best), rows[0]);
  const columns = [
    { name: "score", numbers: scores, from: 2, total: "" },
    { name: "softmax", numbers: weights, from: 3, total: "1" },
  ];
  if (most) {
    const products = most.parts.map((x, k) => x * weights[k]);
    columns.push({ name: "value", title: most.label, numbers: most.parts, from: 4, total: "" });
    columns.push({ name: "product", title: "softmax × value", numbers: products, from: 4, total: brief(most.sum) });
  }
  const at = ({ from }) => classes(step === from && "now", step < from && "later");
  const row = (name, k) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", data: { to: k } }, name),
      columns.map((one) => h("td", { class: at(one), data: { to: k, at: position + 1 } }, brief(one.numbers[k]))),
    );
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "numbers" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "key"),
          columns.map((one) => h("th", { scope: "col", class: at(one), title: one.title ?? null }, one.name)),
        ),
      ),
      h("tbody", {}, keys.map((k) => row(k ? model.vocab[tokens[k - 1]].text : model.bos, k))),
      h(
        "tfoot",
        {},
        h("tr", {}, h("th", { scope: "row" }, "sum"), columns.map((one) => h("td", { class: at(one) }, one.total))),
      ),
    ),
  );
}
