// Places in a text: the server counts lines and columns from 1, and columns in characters.

/** The part of a text to underline for an error: to its end if that is known, else the word at its place. */
export function underlined(text, { line, column, end_line, end_column }) {
  const from = offset(text, line, column ?? 1);
  const to = end_line ? offset(text, end_line, end_column ?? 1) : from + wordAt(text.slice(from)).length;
  if (to > from) return { from, to };
  const end = text.slice(0, from).trimEnd().length; // at the end of the text: its last character
  return { from: Math.max(0, end - 1), to: end };
}

function offset(text, line, column) {
  const lines = text.split("\n");
  const row = Math.min(Math.max(line, 1), lines.length) - 1;
  const before = lines.slice(0, row).reduce((sum, one) => sum + one.length + 1, 0);
  return before + [...lines[row]].slice(0, Math.max(column - 1, 0)).join("").length;
}

function wordAt(text) {
  return /^(\w+|"[^"]*"|[=!<>]=|[^\s\w])/u.exec(text)?.[0] ?? "";
}
