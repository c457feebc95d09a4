// A guided tour for a reader who sees the page for the first time. It is offered once, and can be taken again.

import { h } from "./dom.js";

const KEY = "tracr-tour"; // in the browser's storage
const MARGIN = 10;

const STOPS = [
  [
    ".input",
    "The input",
    "Type tokens, or click them. The page runs the program and the transformer on them at once; beside it are both outputs.",
  ],
  [
    "section.program",
    "The program",
    "This RASP program was compiled into the weights. Each line is a variable with a value at every position, or a selector, which says which positions look at which.",
  ],
  [
    ".stream",
    "The residual stream",
    "Every token has a vector that the layers read and add to. Here each variable has its own directions in it: a row for each variable, a column for each sub-layer, a cell for each token.",
  ],
  [
    ".stages .bos",
    "BOS",
    "The model puts one more token before the input: BOS, the beginning. A head that selects no position attends to BOS; a head that counts compares with it.",
  ],
  [
    ".node.head",
    "Heads and neurons",
    "A round box is an attention head: it moves values between positions. A box with corners is a group of neurons: it computes a function at each position. Wires are the variables they read and write.",
  ],
  [
    ".detail",
    "The current line",
    "Its meaning, its values in program and model, the selector beside the attention of the head, and the computation step by step in numbers.",
  ],
  [
    "[data-key='play-all']",
    "Play, and try",
    "Play shows the whole computation. Then click a value in the stream and choose another one: the model continues with it, and what changes turns purple.",
  ],
];

export class Tour {
  constructor(page) {
    this.page = page;
    this.stop = -1;
    this.card = h("div", { class: "tour", role: "dialog", "aria-label": "Guided tour", hidden: true });
    this.card.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.end();
      if (event.key === "ArrowRight") this.show(this.stop + 1);
      if (event.key === "ArrowLeft") this.show(Math.max(0, this.stop - 1));
      event.stopPropagation();
    });
    addEventListener("resize", () => this.stop >= 0 && this.place(), { signal: page.signal });
  }

  /** The offer in the header: prominent for a new reader of a whole page, else a small button. */
  offer(whole) {
    const fresh = whole && !seen();
    const start = h(
      "button",
      { type: "button", class: "start", on: { click: () => this.show(0) } },
      fresh ? "▸ Take the tour" : "tour",
    );
    if (!fresh) return start;
    const offer = h("span", { class: "offer" }, "New here? ", start);
    const away = () => {
      remember();
      offer.replaceWith(start);
      start.textContent = "tour";
    };
    offer.append(h("button", { type: "button", on: { click: away } }, "no, thanks"));
    this.forget = away;
    return offer;
  }

  show(number) {
    if (number >= STOPS.length) return this.end();
    if (number === 0) this.home = document.activeElement;
    this.stop = number;
    const [selector, title, text] = STOPS[number];
    this.target?.classList.remove("toured");
    this.target = this.find(selector);
    this.target.classList.add("toured");
    const button = (label, act) => h("button", { type: "button", on: { click: act } }, label);
    const last = number === STOPS.length - 1;
    const next = button(last ? "done" : "next ▸", () => this.show(number + 1));
    this.card.replaceChildren(
      h("p", { class: "hint" }, `${number + 1} of ${STOPS.length}`),
      h("h3", {}, title),
      h("p", {}, text),
      h(
        "div",
        { class: "tools" },
        number > 0 && button("◂ back", () => this.show(number - 1)),
        next,
        !last && button("end the tour", () => this.end()),
      ),
    );
    this.page.tooltip.hide();
    this.card.hidden = false;
    this.target.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.place();
    next.focus({ preventScroll: true });
    return undefined;
  }

  /** The element of a stop (a model without heads shows another component); a narrow window opens its part. */
  find(selector) {
    const { root, state } = this.page;
    const find = () => root.querySelector(selector) ?? root.querySelector(".node");
    const panel = find().closest(".map") ? "map" : find().closest(".detail") ? "detail" : "program";
    if (!find().offsetParent && state.panel !== panel) state.set("panel", panel);
    return find();
  }

  /** Beside the element, where there is room. */
  place() {
    const box = this.target.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.card;
    const right = box.right + width + 2 * MARGIN < innerWidth;
    const left = right ? box.right + MARGIN : Math.max(MARGIN, Math.min(box.left, innerWidth - width - MARGIN));
    const below = box.bottom + height + 2 * MARGIN < innerHeight;
    const top = right ? box.top : below ? box.bottom + MARGIN : box.top - height - MARGIN;
    this.card.style.left = `${left}px`;
    this.card.style.top = `${Math.max(MARGIN, Math.min(top, innerHeight - height - MARGIN))}px`;
  }

  end() {
    this.stop = -1;
    this.card.hidden = true;
    this.target?.classList.remove("toured");
    this.forget?.();
    remember();
    if (this.home?.isConnected) this.home.focus({ preventScroll: true });
  }
}

/** Whether this browser has seen the tour; a page without storage (in a frame) does not offer it. */
function seen() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return true;
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "seen");
  } catch {
    // a browser without storage offers it again
  }
}
