// The .rasp language for the editor: its words and colours. The server has the grammar; this only reads words.

import builtins from "./builtins.json" with { type: "json" };

export const KEYWORDS = "def return for in if else and or not load draw set show example examples".split(" ");
const CONTROL = new Set(KEYWORDS);
const TYPES = new Map(builtins.map(({ name, type }) => [name, type]));
const COLOURS = { function: "variableName.standard", variable: "variableName.special", constant: "bool" };

const NAME = /^[^\W\d]\w*/u;
const PATTERNS = [
  [/^#.*/, "comment"],
  [/^"[^"\n]*"?/, "string"],
  [/^(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?/, "number"],
  [/^(==|!=|<=|>=|<|>)/, "compareOperator"],
  [/^([-+*/%^]|\/\/)?=/, "definitionOperator"],
  [/^(\/\/|[-+*/%^])/, "arithmeticOperator"],
  [/^[()[\]{}]/, "bracket"],
  [/^[;,:]/, "punctuation"],
];

/** The colour of the next word of a CodeMirror stream; `state.defines` if the next name is that of a function. */
export function nextToken(stream, state) {
  if (stream.eatSpace()) return null;
  for (const [pattern, colour] of PATTERNS) if (stream.match(pattern)) return colour;
  const name = stream.match(NAME)?.[0];
  if (name === undefined) {
    stream.next();
    return "invalid";
  }
  const defined = state.defines;
  state.defines = name === "def";
  if (CONTROL.has(name)) return "keyword";
  return defined ? "variableName.definition" : (COLOURS[TYPES.get(name)] ?? "variableName");
}

export const rasp = {
  name: "rasp",
  startState: () => ({ defines: false }),
  token: nextToken,
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
};
