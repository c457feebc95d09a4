// What this page is about, and how to read it.

import { h } from "./dom.js";
import { count } from "./names.js";

const THEMES = ["system", "light", "dark"];

export function header(model) {
  const { layers, d_model, parameters } = model.sizes;
  return h(
    "header",
    { class: "header" },
    h("div", { class: "heading" }, h("h1", {}, model.name), h("p", {}, model.description)),
    h(
      "p",
      { class: "facts" },
      "A transformer compiled, not trained, from the program below: ",
      [
        count(layers, "layer"),
        count(d_model, "dimension"),
        count(parameters, "parameter"),
        `level ${model.level}`,
        model.causal ? "causal attention" : "",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    theme(),
    help(model),
  );
}

function theme() {
  const button = h(
    "button",
    { type: "button", class: "theme", title: "light, dark, or as the system" },
    "theme: system",
  );
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % THEMES.length];
    document.documentElement.dataset.theme = next;
    button.textContent = `theme: ${next}`;
  });
  return button;
}

function help(model) {
  const key = (name) => h("kbd", {}, name);
  return h(
    "details",
    { class: "help" },
    h("summary", {}, "How to read this page"),
    h(
      "div",
      {},
      h(
        "p",
        {},
        "This is a transformer whose weights were not trained but compiled from the program on the left. The page runs both: the program by its tables, the transformer by its weights. Change the input and everything follows.",
      ),
      h(
        "p",
        {},
        "Step through the program: each line lights up the components that compute it. Variables have directions of their own in the residual stream, so at any time you can read off what the model knows, and compare.",
        model.shared &&
          " Here dimensions are used again: where nothing reads a variable any more, neurons clear it, and its dimensions hold another.",
      ),
      h(
        "p",
        {},
        "Click a value to patch it: the model runs on with the new value, and what changes downstream turns purple.",
      ),
      h(
        "p",
        {},
        key("↑"),
        key("↓"),
        " step · ",
        key("/"),
        " edit the input · ",
        key("Esc"),
        " undo patches · ",
        key("Tab"),
        " and arrow keys go everywhere.",
      ),
    ),
  );
}
