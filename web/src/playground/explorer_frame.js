// The explorer of `tracr explore`, in a frame: its styles, names and keys are its own.

import { h } from "../view/dom.js";

const PAGE = "/static/explorer.html";

export class ExplorerFrame {
  constructor(title) {
    this.frame = h("iframe", { title, src: PAGE });
    this.element = h("div", { class: "explorer" }, this.frame);
    this.loaded = new Promise((resolve) => this.frame.addEventListener("load", resolve, { once: true }));
  }

  /** Show the data of an explorer page. The reader's choices stay; a new example replaces the input typed there. */
  async show(data) {
    this.data = data;
    await this.loaded;
    const { document, tracr, scrollX, scrollY } = this.frame.contentWindow;
    if (data !== this.data || !tracr) return; // newer data came, or the frame could not be loaded
    const example = JSON.stringify(data.input.map((code) => data.words[code]));
    if (!this.explorer) this.explorer = tracr.mount(document.body, data, { whole: true });
    else {
      if (example !== this.example) this.explorer.page.state.typed = false;
      this.explorer.update(data);
      this.frame.contentWindow.scrollTo(scrollX, scrollY);
    }
    this.example = example;
  }
}
