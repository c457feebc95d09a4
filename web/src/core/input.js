// Reads the text of the input field: tokens, or a message that says what is wrong and what to write.

/**
 * Tokens as codes, or `problem`. Tokens are separated by spaces or commas, and may contain both; single characters
 * need no separators.
 */
export function readInput(text, model) {
  const words = model.vocab
    .map((value, code) => ({ word: value.text, code }))
    .sort((a, b) => b.word.length - a.word.length);
  const single = words.every(({ word }) => [...word].length === 1);
  const codes = [];
  let rest = text.trimStart();
  while (rest) {
    const found = words.find(({ word }) => rest.startsWith(word) && (single || ends(rest.slice(word.length))));
    const special = [model.bos, model.pad].find((word) => rest.startsWith(word) && ends(rest.slice(word.length)));
    if (special !== undefined && special.length > (found?.word.length ?? 0))
      return { problem: unknown(special, 0, model) };
    if (!found && rest[0] === ",") {
      rest = rest.slice(1).trimStart();
      continue;
    }
    if (!found) return { problem: unknown(single ? [...rest][0] : /^[^\s,]+/.exec(rest)[0], codes.length, model) };
    codes.push(found.code);
    rest = rest.slice(found.word.length).trimStart();
  }
  const [shortest, longest] = model.lengths;
  if (codes.length > longest)
    return { problem: `The input has ${tokens(codes.length)}; this model was compiled for at most ${longest}.` };
  if (codes.length && codes.length < shortest)
    return { problem: `The input has ${tokens(codes.length)}; this program takes at least ${shortest}.` };
  return { codes };
}

/** The text to type for an input. */
export function writeInput(codes, model) {
  return codes.map((code) => model.vocab[code].text).join(" ");
}

/** Whether a token can end before `rest`. */
function ends(rest) {
  return rest === "" || /^[\s,]/.test(rest);
}

function tokens(count) {
  return count === 1 ? "1 token" : `${count} tokens`;
}

function unknown(word, position, model) {
  if (word === model.bos) return `Leave out “${word}”: the model adds it.`;
  if (word === model.pad) return `Leave out “${word}”: the page needs no padding.`;
  const all = model.vocab.map((value) => value.text);
  const shown = all.slice(0, 12).join(" ") + (all.length > 12 ? ` … (${all.length} tokens)` : "");
  return `“${word}” (position ${position}) is not in the vocabulary: ${shown}`;
}
