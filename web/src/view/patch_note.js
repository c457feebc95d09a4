// The list of patches, and the button that removes them.

import { h } from "./dom.js";

export function patchNote(state, page) {
  const { model, patches } = state;
  if (!patches.length) return null;
  const parts = patches.map(({ sop, position, code }) => {
    const { label, domain } = model.sops.get(sop);
    const before = domain.text(state.base.program.codes.get(sop)[position]);
    return h(
      "span",
      { class: "change" },
      h("code", {}, label),
      ` at position ${position}: ${before} → `,
      h("b", {}, domain.text(code)),
    );
  });
  return h(
    "div",
    { class: "note" },
    h("span", { class: "title" }, "Patched"),
    parts,
    h("span", { class: "hint" }, "Values that differ from the unpatched run are purple."),
    page.compare &&
      h("button", { type: "button", data: { key: "compare" }, on: { click: page.compare } }, "side by side"),
    h("button", { type: "button", data: { key: "undo" }, on: { click: () => state.unpatch() } }, "undo"),
  );
}
