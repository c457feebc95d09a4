// Statements and hints as paragraphs: blank lines separate them, and `backquotes` mark code.

import { h } from "../view/dom.js";

export function prose(text) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) =>
      h(
        "p",
        {},
        paragraph.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part)),
      ),
    );
}
