// Places in a text: the server counts lines and columns from 1, and columns in characters.

/** The part of a text to underline for an error: the word at its place, or at least one character. */
export function underlined(text, line, column) {
  const lines = text.split("\n");
  const row = Math.min(Math.max(line, 1), lines.length) - 1;
  const before = lines.slice(0, row).reduce((sum, one) => sum + one.length + 1, 0);
  const shown = lines[row];
  const start = [...shown].slice(0, Math.max(column - 1, 0)).join("").length;
  const word = /^(\w+|"[^"]*"|[=!<>]=|[^\s\w])/u.exec(shown.slice(start))?.[0] ?? "";
  if (word) return { from: before + start, to: before + start + word.length };
  const end = before + shown.trimEnd().length;
  return { from: Math.max(before, end - 1), to: Math.max(end, before) };
}
