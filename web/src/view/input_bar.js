// The input: a text field, the vocabulary as buttons, and an error message.

import { h } from "./dom.js";
import { writeInput } from "../core/input.js";

const MOST = 30; // most tokens shown as buttons

export class InputBar {
  constructor(state, page) {
    this.state = state;
    const { model } = state;
    this.field = h("input", {
      id: page.id("input"),
      type: "text",
      value: state.text,
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "aria-describedby": page.id("problem"),
      on: { input: () => state.setInput(this.field.value) },
    });
    this.problem = h("p", { id: page.id("problem"), class: "problem", role: "alert" });
    const add = (code) => () => this.put([...this.state.tokens, code]);
    const drop = () => this.put(this.state.tokens.slice(0, -1));
    const offered = model.vocab
      .slice(0, MOST)
      .map((value, code) =>
        h("button", { type: "button", title: `add ${value.text}`, on: { click: add(code) } }, value.text),
      );
    const rest = model.vocab.length - offered.length;
    const [shortest, longest] = model.lengths;
    const range =
      shortest === longest ? `exactly ${longest}` : shortest > 1 ? `${shortest} to ${longest}` : `up to ${longest}`;
    this.element = h(
      "section",
      { class: "input", "aria-label": "Input" },
      h("label", { for: page.id("input") }, "Input ", h("span", { class: "hint" }, `${range} tokens, separated by spaces`)),
      h(
        "div",
        { class: "field" },
        this.field,
        h(
          "button",
          {
            type: "button",
            title: "remove the last token",
            "aria-label": "remove the last token",
            on: { click: drop },
          },
          "⌫",
        ),
      ),
      h(
        "div",
        { class: "vocabulary" },
        h("span", { class: "hint" }, "add"),
        offered,
        rest > 0 && h("span", { class: "hint" }, `and ${rest} more`),
      ),
      this.problem,
    );
  }

  put(codes) {
    this.field.value = writeInput(codes, this.state.model);
    this.state.setInput(this.field.value);
  }

  update() {
    this.problem.textContent = this.state.problem;
    this.field.setAttribute("aria-invalid", String(Boolean(this.state.problem)));
    if (document.activeElement !== this.field && this.field.value !== this.state.text)
      this.field.value = this.state.text;
  }
}
