// One or two sentences about a line of the program: its meaning, and how the transformer computes it.

import { count, listed } from "./names.js";

export function explain(model, line) {
  return line.kind === "selector"
    ? selectorText(model, model.selectors.get(line.id))
    : sopText(model, model.sops.get(line.id));
}

function label(model, id) {
  return model.sops.get(id).label;
}

function sopText(model, sop) {
  const { op } = sop;
  const stored = storage(model, sop);
  switch (op.kind) {
    case "tokens":
      return `The input itself. ${stored}`;
    case "indices":
      return `The position of each token, counted from 0. ${stored}`;
    case "length":
      return `The number of tokens. A head attends to all positions and to BOS; neurons read the number from BOS’s share of the attention.`;
    case "constant":
      return `The same value at every position. ${stored}`;
    case "positions":
      return `A fixed value for each position. ${stored}`;
    case "lookup":
      return `A function of ${label(model, op.inner)}, position by position. The compiler called it once for each of ${count(model.sops.get(op.inner).domain.size, "possible value")}${neurons(model, sop)}. ${stored}`;
    case "pair_lookup":
      return `A function of ${label(model, op.fst)} and ${label(model, op.snd)}, position by position. The compiler called it for every pair of values${neurons(model, sop)}. ${stored}`;
    case "linear":
      return `A weighted sum, position by position. ${stored}`;
    case "width":
      return `The number of positions that ${selectorLabel(model, op)} selects, for each position. ${several(model, sop) ?? "The head attends to them and, with a fixed weight, to BOS; neurons read the number from BOS’s share of the attention."} ${stored}`;
    case "aggregation": {
      const otherwise =
        model.selectors.get(op.selector).counts[0] > 0
          ? ""
          : `; ${model.values[op.default].text} if it selects none`;
      const verb = op.copies ? "The value" : "The mean";
      return `${verb} of ${label(model, op.value)} over the positions that ${selectorLabel(model, op)} selects${otherwise}. ${several(model, sop) ?? "A head attends to exactly these positions."} ${stored}`;
    }
    default:
      return "";
  }
}

/** A sentence for a selector that takes several heads. */
function several(model, sop) {
  const heads = model.componentsOf(sop.id).filter((part) => part.kind === "head").length;
  return heads > 1
    ? `It takes ${heads} heads, each for a part of the selected keys; neurons combine their results.`
    : null;
}

function neurons(model, sop) {
  return model.groupOfSop.has(sop.id) ? "; the resulting table became neurons" : "";
}

function storage(model, sop) {
  const group = model.groupOfSop.get(sop.id);
  if (sop.absorbed && !group) return `It is not in the residual stream: the optimiser made it ${sop.absorbed}.`;
  const aside = sop.absorbed ? ` It cannot be patched: the optimiser made it ${sop.absorbed}.` : "";
  return held(sop, group) + aside;
}

function held(sop, group) {
  if (sop.folded)
    return `It is folded into its readers: it is a linear function, so they read ${listed(sop.folded) || "a constant"} instead, and it needs no direction and no neurons.`;
  if (!group) return "It is not in the residual stream.";
  if (group.codes && !group.own.every((row) => /^bit\d+$/.test(row.name)))
    return `Only the functions of it that are read are stored, in ${count(group.own.length, "direction")}.`;
  if (group.codes)
    return `Its values are numbered, and the numbers are stored in bits: ${count(group.own.length, "direction")}, +1 for 0 and −1 for 1.`;
  if (group.numerical) return `It is stored as a number (${count(group.rows.length, "direction")}).`;
  const dropped = group.dropped.length ? `; ${count(group.dropped.length, "unread value")} without a direction` : "";
  return `It is stored one-hot: ${count(group.rows.length, "direction")}, one per value${dropped}.`;
}

function selectorLabel(model, op) {
  return model.selectors.get(op.selector).label;
}

function selectorText(model, selector) {
  const [low, high] = [selector.counts[0] ?? 0, selector.counts.at(-1) ?? 0];
  const many = low === high ? `exactly ${high}` : `${low} to ${high}`;
  const what =
    selector.kind === "table"
      ? `The positions (keys) that each position (query) attends to, depending on ${label(model, selector.keys)} at the key and ${label(model, selector.queries)} at the query.`
      : `A combination (${selector.kind}) of ${selector.parts.map((id) => model.selectors.get(id).label).join(" and ")}.`;
  const mask = model.causal ? " Attention is causal: keys to the right of the query are not selected." : "";
  return `${what} A query selects ${many} of them.${mask}`;
}
