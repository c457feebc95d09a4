// A drawing of the server, shown as an image: an image runs no script, whatever its text contains.

import { h } from "../view/dom.js";

const SHARPNESS = 2; // pixels of the PNG for each pixel of the drawing

export class Drawing {
  constructor(label) {
    this.image = h("img", { alt: "", on: { load: () => this.offerSize() } });
    this.scroll = h("div", { class: "paper", tabindex: "0", role: "region", "aria-label": label }, this.image);
    this.size = h(
      "button",
      { type: "button", "aria-pressed": "false", on: { click: () => this.resize() } },
      "actual size",
    );
    this.note = h("p", { class: "status" });
    this.element = h("div", { class: "drawing" }, this.scroll, this.note);
    this.scroll.hidden = true;
    this.size.hidden = true;
  }

  /** Offer the actual size if the drawing had to be made smaller. */
  offerSize() {
    const { image, scroll } = this;
    this.size.hidden = image.naturalWidth <= scroll.clientWidth && image.naturalHeight <= scroll.clientHeight;
  }

  /** Show an SVG text, or `why` there is none; `words` describes it for readers who do not see it. */
  show(svg, words, why = "") {
    this.svg = svg;
    this.note.textContent = svg ? "" : why;
    this.scroll.hidden = !svg;
    const before = this.image.src;
    this.image.src = svg ? addressOf(svg) : "data:,";
    this.image.alt = words;
    if (before.startsWith("blob:")) URL.revokeObjectURL(before);
  }

  resize() {
    const actual = this.scroll.classList.toggle("actual");
    this.size.setAttribute("aria-pressed", String(actual));
  }

  /** The drawing as a PNG file. */
  async png() {
    const image = new Image();
    image.src = addressOf(this.svg);
    await image.decode();
    const canvas = h("canvas", { width: SHARPNESS * image.width, height: SHARPNESS * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }
}

function addressOf(svg) {
  return URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
}
