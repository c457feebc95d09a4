// What this browser remembers: the program being written, and the puzzles. Nothing is sent anywhere.

import { settingsFrom } from "./settings.js";

const DRAFT = "tracr.draft";
const PUZZLES = "tracr.puzzles";
const NEW = { solved: false, layers: null, hints: 0, source: null, solution: null };

export class Memory {
  /** `storage()` is the browser's storage; a browser that has none may throw. */
  constructor(storage) {
    this.storage = storage;
  }

  get draft() {
    return settingsFrom(this.read(DRAFT));
  }

  set draft(settings) {
    this.write(DRAFT, settings);
  }

  /** What is known about a puzzle: whether it is solved, in how many layers, hints seen, and the reader's program. */
  puzzle(id) {
    const found = this.read(PUZZLES)?.[id];
    return found !== null && typeof found === "object" ? { ...NEW, ...found } : { ...NEW };
  }

  remember(id, news) {
    const all = this.read(PUZZLES);
    this.write(PUZZLES, { ...all, [id]: { ...this.puzzle(id), ...news } });
  }

  /** A solved puzzle stays solved, with the fewest layers. */
  solved(id, layers, solution) {
    const before = this.puzzle(id).layers;
    const known = [before, layers].filter((count) => Number.isInteger(count));
    this.remember(id, { solved: true, layers: known.length ? Math.min(...known) : null, solution });
  }

  read(key) {
    try {
      return JSON.parse(this.storage().getItem(key));
    } catch {
      return null;
    }
  }

  write(key, value) {
    try {
      this.storage().setItem(key, JSON.stringify(value));
    } catch {
      // No storage, or a full one: the page works, and forgets.
    }
  }
}
