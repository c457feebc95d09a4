// The examples: a list to choose from.

import { h } from "../view/dom.js";
import { dialog } from "./dialog.js";

const LINES = 4; // of a program, shown in the list

/** `chosen(example)` hears the reader's choice. */
export function gallery(examples, chosen) {
  const choose = (example) => {
    shown.close();
    chosen(example);
  };
  const shown = dialog(
    "Examples",
    h(
      "ul",
      { class: "gallery" },
      examples.map((example) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", on: { click: () => choose(example) } },
            h("b", {}, example.title),
            h("span", { class: "soft" }, example.name),
            h("code", {}, opening(example.source)),
          ),
        ),
      ),
    ),
  );
}

/** The first lines that compute something. */
function opening(source) {
  const lines = source.split("\n").filter((line) => line.trim() && !/^(#|set example)/.test(line));
  return lines.slice(0, LINES).join("\n") + (lines.length > LINES ? "\n…" : "");
}
