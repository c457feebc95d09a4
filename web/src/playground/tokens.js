// Vocabularies and inputs as text: what the reader types, and what is written for them.

import { readInput } from "../core/input.js";

const NUMBER = /^-?(\d+\.?\d*|\.\d+)$/;
const RANGE = /^(-?\d+|[^\s\d])\.\.(-?\d+|[^\s\d])$/u;
const WORD = /"(?:[^"\\]|\\.)*"|[^\s,]+/gu;
const MOST = 1000; // tokens in a range

/**
 * The tokens of a vocabulary. Words are separated by spaces or commas. Words that look like numbers are numbers, quoted
 * words are strings, `0..4` and `a..e` are ranges, and one word alone is a list of characters.
 */
export function readVocabulary(text) {
  const words = text.match(WORD) ?? [];
  const [only] = words;
  const characters = words.length === 1 && !NUMBER.test(only) && !RANGE.test(only) && !only.startsWith('"');
  const tokens = characters ? [...only].map(plain) : words.flatMap(tokensOf);
  return [...new Set(tokens)];
}

/** The text of a vocabulary: `readVocabulary` gives the same tokens again. */
export function writeVocabulary(tokens) {
  const words = tokens.map((token) => (readsAsItself(token) ? String(token) : JSON.stringify(token)));
  return words.length === 1 && [...words[0]].length > 1 && typeof tokens[0] === "string"
    ? JSON.stringify(tokens[0])
    : words.join(" ");
}

/** The tokens of an input, null if the text is empty, or `problem`. */
export function readTokens(text, vocab, longest) {
  if (!text.trim()) return { tokens: null };
  const words = wordsOf(vocab).map((word) => ({ text: word }));
  const { codes, problem } = readInput(text, { vocab: words, bos: "BOS", pad: "PAD", lengths: [1, longest] });
  return problem ? { problem } : { tokens: codes.map((code) => vocab[code]) };
}

/** The text of an input: `readTokens` gives the same tokens again. */
export function writeTokens(tokens, vocab) {
  const words = wordsOf(vocab);
  return (tokens ?? []).map((token) => words[vocab.indexOf(token)] ?? String(token)).join(" ");
}

/** The words to type for tokens: their text, quoted if it is blank or also the text of another token. */
function wordsOf(vocab) {
  const texts = vocab.map(String);
  const often = (text) => texts.filter((other) => other === text).length;
  return vocab.map((token, place) => {
    const text = texts[place];
    const clear = text && text === text.trim() && (typeof token === "number" || often(text) === 1);
    return clear ? text : JSON.stringify(token);
  });
}

function tokensOf(word) {
  if (word.startsWith('"') && word.endsWith('"') && word.length > 1) return [unquoted(word)];
  const range = RANGE.exec(word);
  return range ? (expanded(range[1], range[2]) ?? [word]) : [plain(word)];
}

function plain(word) {
  return NUMBER.test(word) ? Number(word) : word;
}

function unquoted(word) {
  try {
    return JSON.parse(word);
  } catch {
    return word.slice(1, -1);
  }
}

function expanded(first, last) {
  const numbers = NUMBER.test(first) && NUMBER.test(last);
  if (NUMBER.test(first) !== NUMBER.test(last)) return null;
  const [from, to] = numbers ? [Number(first), Number(last)] : [first.codePointAt(0), last.codePointAt(0)];
  if (to < from || to - from >= MOST) return null;
  const all = Array.from({ length: to - from + 1 }, (_, step) => from + step);
  return numbers ? all : all.map((code) => String.fromCodePoint(code));
}

function readsAsItself(token) {
  const text = String(token);
  const [word, ...more] = text.match(WORD) ?? [];
  return (
    !more.length && word === text && !text.startsWith('"') && tokensOf(text).length === 1 && tokensOf(text)[0] === token
  );
}
