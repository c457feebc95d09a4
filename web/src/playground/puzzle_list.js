// The list of the puzzles, with what this browser remembers of each.

import { h } from "../view/dom.js";
import { count } from "../view/names.js";

const MOST_STARS = 5;

export function puzzleList(puzzles, memory) {
  const known = puzzles.map((puzzle) => [puzzle, memory.puzzle(puzzle.id)]);
  const solved = known.filter(([, { solved }]) => solved).length;
  const progress = h("progress", { value: solved, max: Math.max(1, known.length), "aria-label": "Puzzles solved" });
  return h(
    "section",
    { class: "puzzle-list", "aria-label": "Puzzles" },
    h("h2", {}, "Puzzles"),
    h(
      "p",
      { class: "status" },
      progress,
      ` ${solved} of ${known.length} solved. Your progress is kept in this browser.`,
    ),
    h(
      "ol",
      {},
      known.map(([puzzle, memory]) => entry(puzzle, memory)),
    ),
  );
}

function entry({ id, number, title, par, stars }, { solved, layers, source }) {
  const state = solved ? `solved in ${count(layers ?? par, "layer")}` : source === null ? "" : "begun";
  return h(
    "li",
    { class: solved ? "solved" : "" },
    h(
      "a",
      { href: `#puzzle=${encodeURIComponent(id)}` },
      h("span", { class: "number" }, solved ? "✓" : String(number)),
      h("span", { class: "title" }, title),
      h("span", { class: "state" }, state),
      h(
        "span",
        { class: "stars", role: "img", "aria-label": `difficulty ${stars} of ${MOST_STARS}` },
        difficulty(stars),
      ),
      h("span", { class: "par" }, `par ${count(par, "layer")}`),
    ),
  );
}

function difficulty(stars) {
  return "★".repeat(stars) + "☆".repeat(MOST_STARS - stars);
}
