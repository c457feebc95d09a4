// One puzzle: its statement, examples, hints, the check of the reader's program, and the solution once it is solved.

import { h, refill } from "../view/dom.js";
import { count } from "../view/names.js";
import { Drawing } from "./drawing.js";
import { Live } from "./live.js";
import { prose } from "./prose.js";
import { differences, shown, valuesTable } from "./values_table.js";

export class PuzzlePanel {
  /** `bench` has the program; `say(error)` shows an error of it. */
  constructor(puzzle, next, { api, memory, bench, say }) {
    Object.assign(this, { puzzle, next, api, memory, bench, say });
    this.hints = h("div", { class: "hints" });
    this.verdict = h("div", { class: "verdict", role: "status" });
    this.solution = h("div", {});
    this.button = h(
      "button",
      { type: "button", class: "main", title: "Ctrl+Enter", on: { click: () => this.check() } },
      "Check",
    );
    this.element = h(
      "section",
      { class: "puzzle", "aria-label": `Puzzle ${puzzle.number}` },
      h("p", {}, h("a", { href: "#puzzles" }, "All puzzles")),
      h("h2", {}, `${puzzle.number}. ${puzzle.title}`),
      prose(puzzle.statement),
      puzzle.inputs && h("p", { class: "soft" }, `Inputs: ${puzzle.inputs}`),
      examples(puzzle.examples),
      h("p", { class: "tools" }, this.button, h("span", { class: "soft" }, `par: ${count(puzzle.par, "layer")}`)),
      this.verdict,
      this.hints,
      this.solution,
    );
    this.live = new Live((attempt, signal) => api.check(attempt, signal), {
      waiting: (words) => refill(this.verdict, h("p", {}, words)),
      failed: (error) => this.refuse(error),
      done: (verdict) => this.judge(verdict),
    });
    this.update();
  }

  update() {
    const { hints, solved, solution } = this.memory.puzzle(this.puzzle.id);
    const all = this.puzzle.hints;
    const more = () => {
      this.memory.remember(this.puzzle.id, { hints: hints + 1 });
      this.update();
    };
    const words = `Hint ${Math.min(hints + 1, all.length)} of ${all.length}`;
    refill(
      this.hints,
      h(
        "ol",
        { "aria-live": "polite" },
        all.slice(0, hints).map((hint) => h("li", {}, prose(hint))),
      ),
      hints < all.length && h("button", { type: "button", data: { key: "hint" }, on: { click: more } }, words),
    );
    refill(this.solution, solved && solution && worked(solution, () => this.bench.replace(solution)));
  }

  check() {
    const { source, name } = this.bench.settings;
    refill(this.verdict, h("p", {}, "Checking on all inputs…"));
    this.live.now({ puzzle: this.puzzle.id, source, name });
  }

  refuse(error) {
    refill(this.verdict, h("p", { class: "bad" }, error.line ? "The program has an error." : error.message));
    this.say(error);
  }

  judge(verdict) {
    if (verdict.solved) this.memory.solved(this.puzzle.id, verdict.layers, verdict.solution);
    refill(
      this.verdict,
      h("p", { class: verdict.solved ? "good" : "bad" }, verdict.message),
      verdict.solved &&
        this.next &&
        h("p", {}, h("a", { href: `#puzzle=${encodeURIComponent(this.next.id)}` }, `Next: ${this.next.title}`)),
      verdict.counterexample && this.counterexample(verdict.counterexample),
    );
    this.update();
  }

  counterexample({ input, expected, got, drawing }) {
    const picture = new Drawing("Drawing of the counterexample");
    if (drawing) picture.show(drawing, `Your program on ${input.map(shown).join(" ")}`);
    const use = () => this.bench.feed(input);
    return h(
      "div",
      { class: "counterexample" },
      valuesTable("Counterexample", [
        { label: "input", values: input },
        { label: "expected", values: expected },
        { label: "your program", values: got ?? [], marked: differences(got ?? [], expected) },
      ]),
      h("p", {}, h("button", { type: "button", on: { click: use } }, "Use this input")),
      picture.element,
    );
  }
}

function examples(all) {
  const table = ({ input, output }, place) =>
    valuesTable(`Example ${place + 1}`, [
      { label: "input", values: input },
      { label: "output", values: output },
    ]);
  return h("div", { class: "examples" }, all.map(table));
}

function worked(solution, load) {
  return h(
    "details",
    { class: "solution" },
    h("summary", {}, "Worked solution"),
    h("pre", {}, solution),
    h("p", {}, h("button", { type: "button", on: { click: load } }, "Put it into the editor")),
  );
}
