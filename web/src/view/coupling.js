// What belongs together lights up together: a token, its row of attention, its cells of the stream; a variable, its
// line, its wires, its row of the stream. Elements say what they show: `data-at` a position (BOS is 0), `data-to` the
// position of a key, `data-sop` the variables, separated by spaces.

const LIGHTS = { at: "hot", to: "hot-key", sop: "hot-line" };

export class Coupling {
  constructor(root, signal) {
    this.root = root;
    this.pointed = {};
    this.lit = [];
    const follow = (event) => this.point(found(event.target));
    root.addEventListener("mouseover", follow, { signal });
    root.addEventListener("focusin", follow, { signal });
    root.addEventListener("mouseleave", () => this.point({}), { signal });
  }

  /** Light what shows this position, key or variable: {at, to, sop}, as texts. */
  point(pointed) {
    if (Object.keys(LIGHTS).every((name) => pointed[name] === this.pointed[name])) return;
    this.pointed = pointed;
    this.apply();
  }

  /** Light the elements again, after some were made anew. */
  apply() {
    for (const [element, name] of this.lit) element.classList.remove(name);
    this.lit = [];
    for (const [name, light] of Object.entries(LIGHTS)) {
      const words = this.pointed[name]?.split(" ").filter(Boolean) ?? [];
      for (const word of words)
        for (const element of this.root.querySelectorAll(`[data-${name}~="${CSS.escape(word)}"]`)) {
          element.classList.add(light);
          this.lit.push([element, light]);
        }
    }
  }
}

/** What an element shows; its own parts, then those of the elements around it. */
function found(target) {
  const of = (name) => target.closest?.(`[data-${name}]`)?.dataset[name];
  return { at: of("at"), to: of("to"), sop: of("sop") };
}
