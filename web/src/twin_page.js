// The page of a twin: its outputs, and the attention of its heads beside that of the compiled model's.

import { TwinModel } from "./core/twin.js";
import { shortNumber } from "./core/domains.js";
import { State } from "./state.js";
import { Coupling } from "./view/coupling.js";
import { h, reachable, refill } from "./view/dom.js";
import { grid } from "./view/grid.js";
import { header } from "./view/header.js";
import { InputBar } from "./view/input_bar.js";
import { componentName, computes } from "./view/names.js";
import { results } from "./view/results.js";
import { Tooltip } from "./view/tooltip.js";

const SIDE = 170; // the width of a grid

export class TwinPage {
  constructor(root, data, { prefix }) {
    this.prefix = prefix;
    this.leaving = new AbortController();
    this.changed = () => {};
    const model = new TwinModel(data);
    this.state = new State(model, () => {
      this.update();
      this.changed();
    });
    this.tooltip = new Tooltip();
    this.coupling = new Coupling(root, this.leaving.signal);
    this.inputBar = new InputBar(this.state, this);
    this.results = h("section", { class: "outcome", "aria-label": "Output" });
    this.heads = h("section", { class: "map", "aria-label": "Attention of the heads" });
    const top = h("div", { class: "top" }, this.inputBar.element, this.results);
    const page = h("div", { class: "page" }, header(model, false), top, this.heads);
    this.shell = h("div", {}, h("div", { class: "frame" }, page), this.tooltip.element);
    root.append(this.shell);
    this.update();
  }

  id(name) {
    return this.prefix + name;
  }

  update() {
    this.inputBar.update();
    refill(this.results, results(this.state));
    refill(this.heads, this.compared());
    this.coupling.apply();
    reachable(this.shell);
  }

  /** For each head of the compiled model its attention, and that of the same head of the twin. */
  compared() {
    const { model, tokens, now } = this.state;
    if (!tokens.length) return null;
    const teacher = model.teacher.run(tokens);
    const names = [model.bos, ...tokens.map((code) => model.vocab[code].text)];
    const heads = model.components.filter((part) => part.kind === "head");
    return [
      h("h2", {}, "The attention of its heads"),
      h(
        "p",
        { class: "caption" },
        "A twin was trained to answer like the compiled model under interventions. Its directions are not known; each head of the compiled model has the head of the same number as its counterpart.",
      ),
      heads.map((part) => {
        const figure = (run, caption) => this.figure(run, part, names, caption);
        return h(
          "section",
          { class: "pair" },
          h("h3", {}, componentName(part)),
          h("p", { class: "caption" }, computes(model, part)),
          h("div", { class: "figures" }, figure(teacher, "compiled"), figure(now.run, "twin")),
        );
      }),
      !heads.length && h("p", {}, "This model has no heads."),
    ];
  }

  figure(run, part, names, caption) {
    const pattern = run.patterns[part.layer][part.head];
    const at = (q, k) => pattern[q * run.length + k];
    return grid({
      caption,
      names,
      side: SIDE / names.length,
      key: `${caption}-${part.number}`,
      cell: (q, k) => Math.min(1, at(q, k)),
      describe: (q, k) => `${names[q]} attends to ${names[k]}: ${shortNumber(at(q, k))}`,
      tooltip: this.tooltip,
      point: (pointed) => this.coupling.point(pointed),
      choose: () => {},
    });
  }

  remove() {
    this.leaving.abort();
    this.shell.remove();
  }
}
