// A sentence or two about a line of the program: what it means, and what the transformer makes of it.

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
      return `How many tokens there are. A head attends to everything, BOS included; BOS’s share of the attention tells the number.`;
    case "constant":
      return `The same value everywhere. ${stored}`;
    case "positions":
      return `A fixed value for each position. ${stored}`;
    case "lookup":
      return `A function of ${label(model, op.inner)}, position by position. The compiler called it once for each of ${count(model.sops.get(op.inner).domain.size, "possible value")}${neurons(model, sop)}. ${stored}`;
    case "pair_lookup":
      return `A function of ${label(model, op.fst)} and ${label(model, op.snd)}, position by position. The compiler called it for every pair of values${neurons(model, sop)}. ${stored}`;
    case "linear":
      return `A weighted sum, position by position. ${stored}`;
    case "width":
      return `How many positions ${selectorLabel(model, op)} selects, for each position. ${several(model, sop) ?? "The head gives BOS a fixed weight besides them: BOS’s share of the attention tells the number, and neurons read it off."} ${stored}`;
    case "aggregation": {
      const otherwise =
        model.selectors.get(op.selector).counts[0] > 0
          ? ""
          : `; ${model.values[op.default].text} where it selects none`;
      const verb = op.copies ? "The value" : "The mean";
      return `${verb} of ${label(model, op.value)} over the positions that ${selectorLabel(model, op)} selects${otherwise}. ${several(model, sop) ?? "A head attends to exactly those."} ${stored}`;
    }
    default:
      return "";
  }
}

/** A selector that is no simple comparison takes several heads. */
function several(model, sop) {
  const heads = model.componentsOf(sop.id).filter((part) => part.kind === "head").length;
  return heads > 1
    ? `It takes ${heads} heads, each for a part of the selected keys; neurons put together what they read.`
    : null;
}

function neurons(model, sop) {
  return model.groupOfSop.has(sop.id) ? "; the table it got became neurons" : "";
}

function storage(model, sop) {
  const group = model.groupOfSop.get(sop.id);
  if (sop.absorbed && !group) return `It has no place in the residual stream: the optimiser made it ${sop.absorbed}.`;
  const aside = sop.absorbed ? ` It cannot be patched: the optimiser made it ${sop.absorbed}.` : "";
  return held(sop, group) + aside;
}

function held(sop, group) {
  if (sop.folded)
    return `It has no direction of its own, and takes no neurons: it is linear in what is there already, so its readers read ${listed(sop.folded) || "a constant"} instead.`;
  if (!group) return "It needs no place in the residual stream.";
  if (group.codes && !group.own.every((row) => /^bit\d+$/.test(row.name)))
    return `What is read of it is stored in ${count(group.own.length, "direction")}.`;
  if (group.codes)
    return `Its values are numbered, and the numbers stored in bits: ${count(group.own.length, "direction")}, +1 for 0 and −1 for 1.`;
  if (group.numerical) return `It is stored as a number (${count(group.rows.length, "direction")}).`;
  const dropped = group.dropped.length ? `; ${count(group.dropped.length, "value")} that nothing reads got none` : "";
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
      ? `Which positions (keys) each position (query) looks at, decided by ${label(model, selector.keys)} at the key and ${label(model, selector.queries)} at the query.`
      : `A combination (${selector.kind}) of ${selector.parts.map((id) => model.selectors.get(id).label).join(" and ")}.`;
  const mask = model.causal ? " Attention is causal: no key to the right of the query counts." : "";
  return `${what} A query selects ${many} of them.${mask}`;
}
