// Tabs, as the ARIA practices describe them: one tab stop, and the arrow keys move between tabs.

import { h } from "../view/dom.js";

export class Tabs {
  /** `panels` are {id, label, element}; `opened(id)` hears which one is shown. */
  constructor(label, panels, opened) {
    this.panels = panels;
    this.opened = opened;
    this.buttons = panels.map(({ id, label }) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${id}`,
          "aria-controls": `panel-${id}`,
          on: { click: () => this.open(id) },
        },
        label,
      ),
    );
    const list = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": label, on: { keydown: (event) => this.keydown(event) } },
      this.buttons,
    );
    for (const { id, element } of panels) {
      element.id = `panel-${id}`;
      element.setAttribute("role", "tabpanel");
      element.setAttribute("aria-labelledby", `tab-${id}`);
    }
    this.element = h(
      "section",
      { class: "inside", "aria-label": label },
      list,
      panels.map(({ element }) => element),
    );
    this.open(panels[0].id);
  }

  open(id) {
    this.current = id;
    this.panels.forEach((panel, place) => {
      const chosen = panel.id === id;
      panel.element.hidden = !chosen;
      this.buttons[place].setAttribute("aria-selected", String(chosen));
      this.buttons[place].tabIndex = chosen ? 0 : -1;
    });
    this.opened?.(id);
  }

  keydown(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = this.panels.findIndex(({ id }) => id === this.current);
    const next = (at + step + this.panels.length) % this.panels.length;
    this.open(this.panels[next].id);
    this.buttons[next].focus();
    event.preventDefault();
  }
}
