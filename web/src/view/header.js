// The header: the model of the page, and how to read the page.

import { h } from "./dom.js";
import { count } from "./names.js";

const THEMES = ["system", "light", "dark"];

/** The header, with `asides` in its last line; its heading is the page's own if the explorer is the whole page. */
export function header(model, whole = true, asides = []) {
  return h(
    "header",
    { class: "header" },
    h("div", { class: "heading" }, h(whole ? "h1" : "h2", { class: "model-name" }, model.name), h("p", {}, model.description)),
    whole && theme(),
    h("div", { class: "asides" }, facts(model), certificate(model), help(model), ...asides),
  );
}

function facts(model) {
  const { layers, d_model, parameters } = model.sizes;
  const sizes = [count(layers, "layer"), count(d_model, "dimension"), count(parameters, "parameter")];
  if (model.trained) return h("p", { class: "facts" }, [model.trained, ...sizes].join(" · "));
  const rest = [`level ${model.level}`, model.causal ? "causal attention" : ""].filter(Boolean);
  return h("p", { class: "facts" }, ["compiled, not trained", ...sizes, ...rest].join(" · "));
}

function certificate(model) {
  if (!model.certificate) return null;
  const { accepted, headline, lines } = model.certificate;
  return h(
    "details",
    { class: `certificate ${accepted ? "accepted" : "rejected"}` },
    h("summary", {}, `Certificate: ${headline}`),
    h("div", {}, ...lines.map((line) => h("p", {}, line))),
  );
}

export function theme() {
  const button = h(
    "button",
    { type: "button", class: "theme", title: "light, dark, or the system's setting" },
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
        "The weights of this transformer were not trained but compiled from the program on the left. The page runs both: the program with its tables, the transformer with its weights. Change the input, and the whole page changes.",
      ),
      h(
        "p",
        {},
        "Step through the program: the page highlights the components that compute each line. Every variable has its own directions in the residual stream, so you can read its value after each sub-layer and compare it with the program's.",
        model.shared &&
          " In this model dimensions are used again: after the last reader of a variable, neurons clear it, and its dimensions hold another variable.",
      ),
      h(
        "p",
        {},
        "Click a value to patch it: the model continues with the new value, and later values that change turn purple.",
      ),
      h(
        "p",
        {},
        key("↑"),
        key("↓"),
        " step through the program · ",
        key("p"),
        " play · ",
        key("n"),
        key("b"),
        " next step of the computation, and back · ",
        key("/"),
        " edit the input · ",
        key("Esc"),
        " remove patches · ",
        key("Tab"),
        " and arrow keys move around.",
      ),
    ),
  );
}
