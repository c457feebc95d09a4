// The tooltip of the page: next to the mouse, or next to the cell with the keyboard focus.

import { h } from "./dom.js";

export class Tooltip {
  constructor() {
    this.element = h("div", { class: "tooltip", role: "tooltip", hidden: true });
  }

  /** Show lines ([name, text] pairs or texts) beside a rectangle. */
  show(rect, lines) {
    this.element.replaceChildren(
      ...lines
        .filter(Boolean)
        .map((line) =>
          Array.isArray(line)
            ? h("div", {}, h("span", { class: "key" }, line[0]), line[1])
            : h("div", { class: "head" }, line),
        ),
    );
    this.element.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = Math.max(8, Math.min(rect.left + rect.width / 2 - width / 2, innerWidth - width - 8));
    const top = rect.top - height - 8 > 0 ? rect.top - height - 8 : Math.min(rect.bottom + 8, innerHeight - height - 8);
    this.element.style.left = `${left}px`;
    this.element.style.top = `${top}px`;
  }

  hide() {
    this.element.hidden = true;
  }
}
