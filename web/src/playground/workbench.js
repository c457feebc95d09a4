// The workbench: the program and its settings on one side, what it computes on the other, and the model below.

import { h, refill } from "../view/dom.js";
import { count } from "../view/names.js";
import { Drawing } from "./drawing.js";
import { Editor } from "./editor.js";
import { ExplorerFrame } from "./explorer_frame.js";
import { Levels } from "./levels.js";
import { Live } from "./live.js";
import { Passes } from "./passes.js";
import { Problem } from "./problem.js";
import { FIRST } from "./settings.js";
import { SettingsForm } from "./settings_form.js";
import { Tabs } from "./tabs.js";
import { Toolbar } from "./toolbar.js";
import { differences, shown, valuesTable } from "./values_table.js";

export class Workbench {
  /** `changed(settings)` hears every change made by the reader; `submit()`, if there is one, hears Ctrl+Enter. */
  constructor(api, changed) {
    this.changed = changed;
    this.submit = null;
    this.valid = FIRST;
    this.output = "";
    this.editor = new Editor("Program", { changed: () => this.edited(), submit: () => this.submit?.() });
    this.form = new SettingsForm(() => this.edited());
    this.problem = new Problem((error) => this.editor.go(error));
    this.drawing = new Drawing("Drawing of the program");
    this.status = h("p", { class: "status", role: "status" });
    this.values = h("div", {});
    this.busy = h("div", { class: "busy", "aria-hidden": "true" });
    this.explorer = new ExplorerFrame("Explorer of the model");
    this.levels = new Levels(api);
    this.passes = new Passes();
    this.toolbar = new Toolbar(api, this, (error) => this.problem.show(error));
    this.live = new Live((settings, signal) => api.compile(settings, signal), {
      slow: () => this.wait("Compiling…"),
      waiting: (words) => this.wait(words),
      done: (result) => this.show(result),
      failed: (error) => this.fail(error),
    });
    this.element = this.arrange();
  }

  arrange() {
    const panels = [
      { id: "explorer", label: "Explorer", element: this.explorer.element },
      { id: "levels", label: "Levels", element: this.levels.element },
      { id: "passes", label: "Passes", element: this.passes.element },
    ];
    this.tabs = new Tabs("The model", panels, (id) => id === "levels" && this.compareLevels());
    this.side = h("div", { class: "side" });
    return h(
      "div",
      { class: "workbench" },
      h(
        "div",
        { class: "bench" },
        this.side,
        h(
          "section",
          { class: "writing", "aria-label": "Write" },
          this.toolbar.element,
          h("div", { class: "editing" }, this.editor.element, this.problem.element),
          this.form.element,
        ),
        h(
          "section",
          { class: "seeing", "aria-label": "Result" },
          this.busy,
          h("div", { class: "result-head" }, this.status, this.drawing.size),
          this.values,
          this.drawing.element,
        ),
      ),
      this.tabs.element,
    );
  }

  /** The program and its settings; fields that cannot be read keep their last value. */
  get settings() {
    this.valid = { ...this.valid, ...this.form.read(), source: this.editor.text };
    return this.valid;
  }

  /** Another program with its settings. */
  load(settings, options) {
    this.valid = settings;
    this.form.show(settings, options);
    this.write(settings.source);
  }

  /** Another program, for the same inputs: its output is the last s-op. */
  replace(source) {
    this.form.names([], "");
    this.write(source);
  }

  /** The same program, written otherwise. */
  write(source) {
    this.editor.text = source;
    this.editor.mark(null);
    this.changed(this.settings);
    this.live.now(this.settings);
  }

  /** Another input. */
  feed(input) {
    this.form.show({ ...this.settings, input }, { locked: this.form.vocab.readOnly });
    this.edited();
  }

  edited() {
    this.changed(this.settings);
    this.live.request(this.settings);
  }

  // What the server answers

  wait(words) {
    this.element.classList.add("waiting");
    this.status.textContent = words;
  }

  show(result) {
    this.element.classList.remove("waiting", "outdated");
    this.output = result.name;
    this.editor.mark(null, result.warnings);
    this.problem.show(null, result.warnings);
    this.form.names(result.names, this.form.name.value, this.form.name.value ? undefined : result.name);
    refill(this.status, h("b", {}, result.name), ` ${sizes(result.summary)}`);
    refill(this.values, outcome(result));
    this.drawing.show(result.drawing, described(result), result.not_drawn);
    this.explorer.show(result.explorer);
    this.passes.show(result.passes);
    if (this.tabs.current === "levels") this.compareLevels();
  }

  fail(error) {
    this.element.classList.remove("waiting");
    this.element.classList.add("outdated");
    this.status.textContent = this.output ? "Below is the last program that compiled." : "";
    this.editor.mark(error);
    this.problem.show(error);
  }

  compareLevels() {
    this.levels.ask(this.settings);
  }
}

/** The values of the program and of the model on the input. */
function outcome({ input, outputs: { program, model } }) {
  return valuesTable("Values on the input", [
    { label: "input", values: input },
    { label: "program", values: program },
    { label: "model", values: model, marked: differences(model, program) },
  ]);
}

/** The size of a model in words. */
function sizes({ layers, heads, dimensions, parameters }) {
  const counts = { layer: layers, head: heads, dimension: dimensions, parameter: parameters };
  return Object.entries(counts)
    .map(([noun, number]) => count(number, noun))
    .join(" · ");
}

function described({ name, input, outputs }) {
  return `Drawing of ${name} on ${input.map(shown).join(" ")}: it gives ${outputs.program.map(shown).join(" ")}`;
}
