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

/** What can be typed at a place; null in a string or a comment, and before the first letter unless asked for. */
export function completions(text, at, explicit) {
  const word = /[^\W\d]\w*$/u.exec(text.slice(0, at))?.[0] ?? "";
  if (!word && !explicit) return null;
  const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, at).replace(/"[^"]*"/g, "");
  if (/["#]/.test(line)) return null;
  const from = at - word.length;
  const own = definedNames(`${text.slice(0, from)} ${text.slice(at)}`).filter(({ label }) => !TAKEN.has(label));
  return { from, options: [...own.map((option) => ({ ...option, boost: 1 })), ...KNOWN], validFor: /^\w*$/u };
}

/** The same for CodeMirror. */
export function complete(context) {
  return completions(context.state.doc.toString(), context.pos, context.explicit);
}
