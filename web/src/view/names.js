// The names that the page uses.

/** A column of the stream: embed, attention 0, MLP 0, ... */
export function stageName(stage, stages) {
  if (stage === 0) return "embedding";
  if (stage >= stages) return "output";
  const layer = Math.ceil(stage / 2) - 1;
  return stage % 2 ? `attention ${layer}` : `MLP ${layer}`;
}

/** The same in at most two or seven characters. */
export function shortStageName(stage, stages, narrow) {
  const name = stageName(stage, stages).replace("embedding", "embed");
  if (!narrow) return name.replace("attention", "attn");
  return stage === 0 ? "E" : name.replace("attention ", "A").replace("MLP ", "M");
}

/** The name of a component in words. */
export function componentName(part) {
  if (part.id === "embed") return "token embedding";
  if (part.id === "pos_embed") return "position embedding";
  if (part.kind === "unembedding") return "unembedding";
  if (part.kind === "head") return `head ${part.head} of attention ${part.layer}`;
  return `${neurons(part)} of MLP ${part.layer}`;
}

export function neurons(part) {
  const count = part.neurons[1] - part.neurons[0];
  return count === 1 ? "1 neuron" : `${count} neurons`;
}

export function componentSize(part) {
  if (part.kind === "head") return `head ${part.head}`;
  if (part.kind === "neurons") return neurons(part);
  return "";
}

/** What a component does, in a sentence. */
export function computes(part) {
  return part.clears.length
    ? `${part.computes}, after the last reader, so that its dimensions can hold another variable`
    : part.computes;
}

/** A writer or reader as the residual stream names it (blocks.0.attn.1.q), in words. */
export function placeName(name) {
  const match = /^blocks\.(\d+)\.(attn|mlp)(?:\.(\d+))?(?:\.([qkv]))?$/.exec(name);
  if (!match)
    return { embed: "token embedding", pos_embed: "position embedding", unembed: "unembedding" }[name] ?? name;
  const [, layer, kind, head, input] = match;
  if (kind === "mlp") return `MLP ${Number(layer)}`;
  const part = { q: " (query)", k: " (key)", v: " (value)" }[input] ?? "";
  return `head ${Number(head)} of attention ${Number(layer)}${part}`;
}

/** Components in words, the heads of one layer together. */
export function componentNames(parts) {
  const heads = new Map();
  for (const part of parts)
    if (part.kind === "head") heads.set(part.layer, new Set([...(heads.get(part.layer) ?? []), part.head]));
  const name = (part) => {
    const several = heads.get(part.layer)?.size ?? 0;
    if (part.kind === "head" && several > 1) return `${several} heads of attention ${part.layer}`;
    return part.kind === "neurons" ? `MLP ${part.layer}` : componentName(part);
  };
  return listed(parts.map(name));
}

/** A list in words: a, b and c. */
export function listed(items) {
  const all = [...new Set(items)];
  if (all.length < 2) return all.join("");
  return `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
}

export function count(number, thing) {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

export function capitalised(text) {
  return text[0].toUpperCase() + text.slice(1);
}

const LEAST_TAIL = 3; // characters kept at the end of a name that is cut

/**
 * The labels in at most `most` characters: a longer one loses its middle, and no two become the same text.
 * Returns a map from labels to texts.
 */
export function shortened(labels, most) {
  const all = [...new Set(labels)];
  const cut = (label, tail) =>
    label.length <= most ? label : `${label.slice(0, Math.max(0, most - 1 - tail))}…${label.slice(label.length - tail)}`;
  const tries = Array.from({ length: Math.max(1, most - 1 - LEAST_TAIL) }, (_, i) => LEAST_TAIL + i)
    .map((tail) => all.map((label) => cut(label, Math.min(tail, most - 1))))
    .map((texts) => ({ texts, different: new Set(texts).size }));
  const { texts } = tries.reduce((best, one) => (one.different > best.different ? one : best));
  return new Map(all.map((label, i) => [label, texts.indexOf(texts[i]) === i ? texts[i] : numbered(texts, i, most)]));
}

/** The labels in very few characters: initials and the number at the end; no two become the same text. */
export function abbreviated(labels, most) {
  const all = [...new Set(labels)];
  const initials = (label) => {
    const words = label.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
    return words.length > 1 ? words.map((word) => (/^\d/.test(word) ? word : word[0])).join("") : label;
  };
  const texts = all.map((label) => initials(label).slice(0, most));
  return new Map(all.map((label, i) => [label, texts.indexOf(texts[i]) === i ? texts[i] : numbered(texts, i, most)]));
}

/** A text that an earlier label has too, with its number among them. */
function numbered(texts, i, most) {
  const end = `·${texts.slice(0, i + 1).filter((text) => text === texts[i]).length}`;
  return texts[i].slice(0, Math.max(1, most - end.length)) + end;
}
