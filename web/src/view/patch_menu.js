// The menu to choose another value for a variable at a position; program and model continue with it.

import { classes, h } from "./dom.js";
import { Finite, shortNumber } from "../core/domains.js";

export class PatchMenu {
  constructor(state, page) {
    this.state = state;
    this.page = page;
    this.element = h("div", { class: "menu", role: "dialog", "aria-label": "Patch a value", hidden: true });
    const away = (event) => this.element.contains(event.target) || this.close();
    document.addEventListener("pointerdown", away, { signal: page.signal });
    this.element.addEventListener("keydown", (event) => this.keydown(event));
  }

  open(anchor, sop, position) {
    const { model } = this.state;
    const node = model.sops.get(sop);
    const value = this.state.valueOf(sop, position);
    this.key = anchor.dataset.key;
    this.home = anchor.parentElement?.closest("[data-home]") ?? null;
    this.element.replaceChildren(
      h(
        "p",
        {},
        h("code", {}, node.label),
        ` at position ${position} is `,
        h("b", {}, value.model?.text ?? value.program),
        ". Make it",
      ),
      node.domain instanceof Finite ? this.choices(node, sop, position) : this.field(node, sop, position),
    );
    this.element.hidden = false;
    const box = anchor.getBoundingClientRect(),
      { offsetWidth: width, offsetHeight: height } = this.element;
    this.element.style.left = `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
    this.element.style.top = `${box.bottom + height + 8 < innerHeight ? box.bottom + 4 : Math.max(8, box.top - height - 4)}px`;
    (this.element.querySelector("[aria-pressed=true]") ?? this.element.querySelector("button, input"))?.focus();
  }

  choices(node, sop, position) {
    const code = this.state.now.program.codes.get(sop)[position];
    const original = this.state.base.program.codes.get(sop)[position];
    return h(
      "div",
      { class: "choices" },
      node.domain.values.map((value, choice) =>
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(choice === code),
            class: classes(choice === original && "original"),
            title: choice === original ? "the program's value" : null,
            on: { click: () => this.choose(sop, position, choice) },
          },
          value.number === null ? value.text : value.text.length > 8 ? shortNumber(value.number, 4) : value.text,
        ),
      ),
    );
  }

  field(node, sop, position) {
    const code = this.state.now.program.codes.get(sop)[position];
    const input = h("input", {
      type: "number",
      step: "any",
      value: Number.isNaN(code) ? "" : String(code),
      "aria-label": "A number",
    });
    const none =
      node.domain.maybeNone &&
      h("button", { type: "button", on: { click: () => this.choose(sop, position, NaN) } }, "None");
    const submit = (event) => {
      event.preventDefault();
      if (input.value !== "" && Number.isFinite(input.valueAsNumber)) this.choose(sop, position, input.valueAsNumber);
    };
    return h("form", { class: "choices", on: { submit } }, input, h("button", { type: "submit" }, "set"), none);
  }

  choose(sop, position, code) {
    this.close();
    this.state.patch(sop, position, code);
    this.leave();
  }

  /** Give the keyboard focus back to the value that the menu was opened from. */
  leave() {
    const target = this.home ?? this.page.element.querySelector(`[data-key="${CSS.escape(this.key ?? "")}"]`);
    target?.focus({ preventScroll: true });
  }

  close() {
    this.element.hidden = true;
  }

  keydown(event) {
    if (event.key === "Escape") {
      this.close();
      this.leave();
    }
    const buttons = [...this.element.querySelectorAll("button")];
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = buttons.indexOf(document.activeElement);
    if (step && at >= 0) {
      event.preventDefault();
      buttons[(at + step + buttons.length) % buttons.length].focus();
    }
    event.stopPropagation();
  }
}
