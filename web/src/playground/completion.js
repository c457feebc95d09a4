// Completions: the words of the language, and the names that the program defines.

import builtins from "./builtins.json" with { type: "json" };
import { KEYWORDS } from "./language.js";

const KNOWN = [
  ...builtins.map(({ name, ...rest }) => ({ label: name, ...rest })),
  ...KEYWORDS.map((label) => ({ label, type: "keyword" })),
];
const TAKEN = new Set(KNOWN.map(({ label }) => label));
const LIST = String.raw`[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*`;
const ASSIGNED = new RegExp(String.raw`(?:^|[;{}]|\n)\s*(${LIST})\s*=(?!=)`, "gu");
const LOOPED = new RegExp(String.raw`\bfor\s+(${LIST})\s+in\b`, "gu");
const DEFINED = /\bdef\s+([^\W\d]\w*)\s*\(([^)]*)\)/gu;

/** The names that a program defines, as completions; functions with their arguments. */
export function definedNames(text) {
  const code = text.replace(/"[^"\n]*"/g, '""').replace(/#.*/g, "");
  const found = new Map();
  const variables = (names) => {
    for (const label of names.split(",").map((name) => name.trim()))
      if (label && !found.has(label)) found.set(label, { label, type: "variable" });
  };
  for (const [, label, given] of code.matchAll(DEFINED)) {
    found.set(label, { label, type: "function", detail: `(${given.trim()})` });
    variables(given);
  }
  for (const pattern of [ASSIGNED, LOOPED]) for (const [, names] of code.matchAll(pattern)) variables(names);
  return [...found.values()];
}

/** What can be typed at a place; null in a string or a comment, and before the first letter of a word. */
export function complete(context) {
  const word = context.matchBefore(/[^\W\d]\w*/u);
  if (!word && !context.explicit) return null;
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from).replace(/"[^"]*"/g, "");
  if (/["#]/.test(before)) return null;
  const from = word?.from ?? context.pos;
  const text = context.state.doc.toString();
  const others = `${text.slice(0, from)} ${text.slice(context.pos)}`;
  const own = definedNames(others).filter(({ label }) => !TAKEN.has(label));
  return { from, options: [...own.map((option) => ({ ...option, boost: 1 })), ...KNOWN], validFor: /^\w*$/u };
}
