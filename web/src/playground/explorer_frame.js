// The explorer of `tracr explore` in a frame. Each compilation gets a new frame behind the old one, which takes its
// place when it is ready and has the reader's choices: nothing flickers, and nothing of old models is kept.

import { h } from "../view/dom.js";
import { choices, restore } from "./handover.js";

const PAGE = "/static/explorer.html";
const SCRIPT = "/static/explorer.js";

export class ExplorerFrame {
  constructor(title) {
    this.title = title;
    this.element = h("div", { class: "explorer" });
    this.number = 0;
  }

  /** Show the data of an explorer page; resolves when it can be seen, and earlier if newer data came. */
  async show(data) {
    const number = ++this.number;
    const frame = h("iframe", { title: this.title, src: PAGE, class: "coming" });
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
    this.element.append(frame);
    await loaded;
    if (number === this.number) await run(frame, data);
    if (number !== this.number) return frame.remove();
    this.replace(frame);
  }

  replace(frame) {
    const old = this.frame;
    const [before, after] = [old, frame].map((one) => one?.contentWindow);
    const first = after.tracr && choices(after.tracr.state);
    if (before?.tracr && first) restore(after.tracr.state, this.first, choices(before.tracr.state));
    this.first = first;
    frame.classList.remove("coming");
    after.scrollTo(0, before?.scrollY ?? 0);
    old?.remove();
    this.frame = frame;
  }

  clear() {
    this.number += 1;
    this.frame = undefined;
    this.element.replaceChildren();
  }
}

/** Give the data to the page in a frame and run the explorer's script there. */
function run(frame, data) {
  const page = frame.contentDocument;
  const held = page.createElement("script");
  held.type = "application/json";
  held.id = "tracr-data";
  held.textContent = JSON.stringify(data);
  const script = page.createElement("script");
  script.src = SCRIPT;
  const done = new Promise((resolve) => {
    script.addEventListener("load", resolve, { once: true });
    script.addEventListener("error", resolve, { once: true });
  });
  page.body.append(held, script);
  return done;
}
