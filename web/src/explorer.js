// The explorer in an element of any page: `mount(root, data)` fills it, `update(data)` shows another model in it.

import css from "./style.css";
import { choicesOf, choose } from "./choices.js";
import { loadModel } from "./core/model.js";
import { h } from "./view/dom.js";
import { Page } from "./page.js";

let mounted = 0;

/**
 * Show the model of `data`, the JSON of tracr/viz/explorer/data.py, in `root`. `whole`: the explorer is the whole page.
 * Returns `update(data)`, which keeps the choices of the reader that fit the new model; `remove()`, which empties
 * `root`; and the current `page`.
 */
export function mount(root, data, { whole = false } = {}) {
  style();
  const prefix = mounted++ ? `explorer-${mounted}-` : "";
  root.classList.add("tracr");
  let page = null;
  const show = (next) => {
    const choices = page && choicesOf(page.state);
    const model = loadModel(next); // may refuse the data: then the page stays
    page?.remove();
    page = new Page(root, model, { whole, prefix });
    if (choices) choose(page.state, choices);
    else if (next.patches?.length) choose(page.state, { patches: next.patches });
    else page.update();
  };
  show(data);
  return {
    update: show,
    remove() {
      page.remove();
      root.classList.remove("tracr");
    },
    get page() {
      return page;
    },
  };
}

/** Put the style sheet into the document, once. */
export function style() {
  if (!document.getElementById("tracr-style")) document.head.append(h("style", { id: "tracr-style" }, css));
}
