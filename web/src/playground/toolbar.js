// What can be done with the program: examples, files, formatting, sharing, Python and downloads.

import { h } from "../view/dom.js";
import { copyable, dialog } from "./dialog.js";
import { fileFor, load, save } from "./files.js";
import { gallery } from "./gallery.js";
import { fragmentOf } from "./share.js";

export class Toolbar {
  /** `bench` has the program; `say(error)` shows what went wrong. */
  constructor(api, bench, say) {
    Object.assign(this, { api, bench, say });
    const button = (text, act, title) =>
      h("button", { type: "button", title, on: { click: () => this.attempt(act) } }, text);
    this.examples = button("Examples", () => this.showExamples());
    this.element = h(
      "div",
      { class: "toolbar", role: "group", "aria-label": "Program" },
      this.examples,
      button("Open…", () => this.open(), "read a .rasp file"),
      button("Save", () => this.saveSource(), "write a .rasp file"),
      button("Format", () => this.format(), "lay out the program as tracr fmt does"),
      button("Share", () => this.share(), "a link with the program and its settings"),
      button("Python", () => this.python(), "the same in Python"),
      this.downloads(button),
    );
  }

  downloads(button) {
    const choices = [
      ["Explorer page (HTML)", () => this.download("page")],
      ["Drawing (SVG)", () => this.download("svg")],
      ["Drawing (PNG)", () => this.png()],
      ["GPT-2 model (zip)", () => this.download("gpt2")],
    ];
    const menu = h(
      "details",
      { class: "menu" },
      h("summary", {}, "Download"),
      h(
        "div",
        {},
        choices.map(([text, act]) => button(text, act)),
      ),
    );
    const close = (event) => !menu.contains(event.target) && (menu.open = false);
    document.addEventListener("pointerdown", close);
    menu.addEventListener(
      "focusout",
      (event) => event.relatedTarget && !menu.contains(event.relatedTarget) && (menu.open = false),
    );
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
    menu.addEventListener("click", (event) => event.target.closest("button") && (menu.open = false));
    return menu;
  }

  async attempt(act) {
    try {
      await act();
    } catch (error) {
      this.say(error);
    }
  }

  async showExamples() {
    this.known ??= await this.api.examples();
    gallery(this.known, ({ source, vocab, max_len, input }) =>
      this.bench.load({ ...this.bench.settings, name: "", source, vocab, max_len, input }),
    );
  }

  async open() {
    const file = await load();
    if (file?.problem) throw new Error(file.problem);
    if (file) this.bench.replace(file.text);
  }

  saveSource() {
    save(fileFor(this.bench.output, "rasp"), new Blob([this.bench.settings.source], { type: "text/plain" }));
  }

  async format() {
    const { source } = await this.api.format(this.bench.settings.source);
    if (source !== this.bench.settings.source) this.bench.write(source);
  }

  share() {
    const link = new URL(fragmentOf(this.bench.settings), location.href);
    dialog(
      "Share",
      h("p", {}, "The link contains the program and its settings. It opens them on a playground at this address."),
      copyable("Link", link.href, 4),
    );
  }

  async python() {
    const { blob } = await this.api.download(this.bench.settings, "python");
    dialog("The same in Python", copyable("Python", await blob.text(), 16));
  }

  async download(kind) {
    const { name, blob } = await this.api.download(this.bench.settings, kind);
    save(name, blob);
  }

  async png() {
    if (!this.bench.drawing.svg) throw new Error("There is no drawing yet: the program does not compile.");
    save(fileFor(this.bench.output, "png"), await this.bench.drawing.png());
  }
}
