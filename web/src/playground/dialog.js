// Dialogs, with a heading and a close button. The browser keeps the focus inside, and gives it back.

import { h } from "../view/dom.js";

/** Show a dialog; it is removed when it is closed. */
export function dialog(title, ...children) {
  const close = h("button", { type: "button", "aria-label": "Close", on: { click: () => element.close() } }, "✕");
  const element = h(
    "dialog",
    { "aria-label": title },
    h("div", { class: "dialog-head" }, h("h2", {}, title), close),
    children,
  );
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

/** A text to take away: shown, selected with one key, and copied with a button. */
export function copyable(title, text, rows) {
  const field = h("textarea", { readonly: true, rows, "aria-label": title, spellcheck: "false" });
  field.value = text;
  const said = h("span", { role: "status" });
  const copy = async () => {
    field.select();
    const copied = await copyText(text);
    said.textContent = copied ? "Copied." : "Press Ctrl+C to copy.";
  };
  const button = h("button", { type: "button", class: "main", on: { click: copy } }, "Copy");
  field.addEventListener("focus", () => field.select());
  return [field, h("p", { class: "tools" }, button, said)];
}

/** Browsers offer the clipboard only to pages from this machine or over https. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
