// What is compiled: the program and the settings beside it, as the server takes them.

export const LEVELS = [0, 1, 2];

export const FIRST = {
  source: `# At each position: how often does its token occur?
same = select(tokens, tokens, ==);
histogram = selector_width(same);
`,
  name: "",
  vocab: ["a", "b", "c"],
  max_len: 6,
  level: 1,
  causal: false,
  input: ["a", "b", "a", "c", "a"],
};

const token = (value) => typeof value === "string" || (typeof value === "number" && Number.isFinite(value));
const tokens = (value) => Array.isArray(value) && value.every(token);
const VALID = {
  source: (value) => typeof value === "string",
  name: (value) => typeof value === "string",
  vocab: (value) => tokens(value) && value.length > 0,
  max_len: (value) => Number.isInteger(value) && value > 0,
  level: (value) => LEVELS.includes(value),
  causal: (value) => typeof value === "boolean",
  input: (value) => value === null || tokens(value),
};

/** Settings from a link or from this browser's memory. Nothing else of them is kept; null without a program. */
export function settingsFrom(value) {
  if (value === null || typeof value !== "object" || !VALID.source(value.source)) return null;
  const known = Object.keys(FIRST).map((name) => [name, VALID[name](value[name]) ? value[name] : FIRST[name]]);
  return { ...Object.fromEntries(known), input: VALID.input(value.input) ? (value.input ?? null) : null };
}
