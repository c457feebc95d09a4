// What is typed into the input field: tokens, or a message that says what is wrong and what to write.

/** Tokens as codes, or `problem`. Words are separated by spaces; if all tokens are single characters they need none. */
export function readInput(text, model) {
  const byText = new Map(model.vocab.map((value, code) => [value.text, code]));
  const single = [...byText.keys()].every((word) => [...word].length === 1 && word.trim());
  let words = text.split(/[\s,]+/).filter(Boolean);
  if (byText.has(",")) words = text.split(/\s+/).filter(Boolean);
  if (single) words = words.flatMap((word) => (byText.has(word) || isSpecial(word, model) ? [word] : [...word]));
  const codes = [];
  for (const [position, word] of words.entries()) {
    if (!byText.has(word)) return { problem: unknown(word, position, byText, model) };
    codes.push(byText.get(word));
  }
  const [shortest, longest] = model.lengths;
  if (codes.length > longest) return { problem: `That is ${tokens(codes.length)}; this model was compiled for at most ${longest}.` };
  if (codes.length && codes.length < shortest) return { problem: `That is ${tokens(codes.length)}; this program takes at least ${shortest}.` };
  return { codes };
}

/** The text of an input, as it can be typed. */
export function writeInput(codes, model) {
  return codes.map((code) => model.vocab[code].text).join(" ");
}

function tokens(count) {
  return count === 1 ? "1 token" : `${count} tokens`;
}

function isSpecial(word, model) {
  return word === model.bos || word === model.pad;
}

function unknown(word, position, byText, model) {
  if (word === model.bos) return `Leave “${word}” out: the model puts it in front by itself.`;
  if (word === model.pad) return `Leave “${word}” out: nothing needs padding here.`;
  const all = [...byText.keys()];
  const shown = all.slice(0, 12).join(" ") + (all.length > 12 ? ` … (${all.length} tokens)` : "");
  return `“${word}” (token ${position + 1}) is not in the vocabulary: ${shown}`;
}
