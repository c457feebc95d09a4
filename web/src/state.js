// The choices of the reader, and what follows from them. Views read this and call its methods; `changed` notifies them.

import { readInput, writeInput } from "./core/input.js";

const LARGE = 60; // models with more dimensions start with closed variables
const INPUTS = new Set(["tokens", "indices", "length"]);

export class State {
  /** `notify` is called after every change. */
  constructor(model, notify) {
    this.model = model;
    this.notify = notify;
    this.typed = false; // whether the reader changed the input
    this.opened = false; // whether the reader opened or closed variables
    this.tokens = model.input;
    this.text = writeInput(model.input, model);
    this.problem = "";
    this.patches = [];
    this.plumbing = false; // also show the wires of BOS, PAD and the constant one, and cancelled wires
    this.fit = null; // whether the columns fit into the window; null: if they can be read then
    this.at = null; // the position whose computation is shown step by step; null: the last
    this.step = 0; // the step of the current component that is shown; 0: all
    this.panel = "program"; // the part of the page shown in a narrow window
    this.written = false; // show the source text, not the listing
    this.open = new Set(opened(model));
    this.focus(firstLine(model));
    this.compute();
  }

  /** Tell the views. */
  changed() {
    if (!this.waiting) this.notify();
  }

  /** Make several changes; the views are told once, at the end. */
  together(change) {
    this.waiting = true;
    try {
      change();
    } finally {
      this.waiting = false;
    }
    this.changed();
  }

  // Choices

  /** Read the text typed; if it is not a valid input, only the message changes. */
  setInput(text) {
    this.text = text;
    this.typed = true;
    const { codes, problem } = readInput(text, this.model);
    this.problem = problem ?? "";
    if (codes) {
      this.tokens = codes;
      this.patches = [];
      this.compute();
    }
    this.changed();
  }

  /** Make a line of the program the current one, and the component that completes it. */
  focus(number) {
    this.line = Math.max(0, Math.min(this.model.lines.length - 1, number));
    this.component = this.partsOf(this.current).at(-1)?.number ?? null;
    this.step = 0;
  }

  select(number) {
    this.focus(number);
    this.changed();
  }

  selectSop(sop) {
    this.select(this.lineOf("sop", sop));
  }

  /** Make a component the current one, and the line it computes. */
  selectComponent(number) {
    const part = this.model.components[number];
    const sops = [...part.writes, ...part.clears]
      .map((group) => this.model.groups[group].sop)
      .filter((sop) => sop !== null);
    const mine = this.current.kind === "sop" && sops.includes(this.current.id);
    if (!mine) this.focus(this.lineOf("sop", sops[0] ?? this.model.outputs[0].sop));
    this.component = number;
    this.step = 0;
    this.changed();
  }

  /** Whether a component writes, clears or outputs the current line. */
  concerns(part) {
    const groups = [...part.writes, ...part.clears].map((number) => this.model.groups[number].sop);
    const { kind, id } = this.current;
    const parts = this.partsOf(this.current);
    return (kind === "sop" && groups.includes(id)) || parts.includes(part) || part.kind === "unembedding";
  }

  /** Whether a variable can be set: not if it is folded or absorbed. */
  patchable(sop) {
    return this.model.groupOfSop.has(sop) && !this.model.sops.get(sop).absorbed;
  }

  /** Set a variable at a position, in program and model; setting its own value is not a patch. */
  patch(sop, position, code) {
    const { domain } = this.model.sops.get(sop);
    this.patches = this.patches.filter((patch) => patch.sop !== sop || patch.position !== position);
    const computed = this.model.evaluate(this.tokens, this.patches).codes.get(sop)[position];
    if (!domain.same(computed, code)) this.patches.push({ sop, position, code });
    this.compute();
    this.focus(this.lineOf("sop", sop));
    this.changed();
  }

  /** Patch a variable by its label, with the value that has this text; nothing happens if there is none. */
  patchText(label, position, text) {
    const sop = [...this.model.sops.values()].find((one) => one.label === label);
    if (!sop || !this.patchable(sop.id) || !(position >= 0 && position < this.tokens.length)) return;
    const { domain } = sop;
    const code = domain.values ? domain.values.findIndex((value) => value.text === text) : readNumber(text);
    if (domain.values ? code >= 0 : domain.holds(code)) this.patch(sop.id, position, code);
  }

  unpatch() {
    this.patches = [];
    this.compute();
    this.changed();
  }

  toggleGroup(number) {
    if (!this.open.delete(number)) this.open.add(number);
    this.opened = true;
    this.changed();
  }

  openAll(yes) {
    this.opened = true;
    this.open = new Set(yes ? this.model.groups.map((group) => group.number) : []);
    this.changed();
  }

  set(name, value) {
    this[name] = value;
    this.changed();
  }

  toggle(name) {
    this[name] = !this[name];
    this.changed();
  }

  // What follows

  compute() {
    const { model, tokens, patches } = this;
    this.base = { program: model.evaluate(tokens), run: model.run(tokens) };
    this.now = patches.length
      ? { program: model.evaluate(tokens, patches), run: model.run(tokens, patches) }
      : this.base;
  }

  /** The components that compute a line: those of an s-op, or the heads of a selector or of its combinations. */
  partsOf(line) {
    const { model } = this;
    if (line.kind === "sop") return model.componentsOf(line.id);
    const within = (id) => id === line.id || (model.selectors.get(id).parts ?? []).some(within);
    return model.components.filter((part) => part.selector !== null && within(part.selector));
  }

  lineOf(kind, id) {
    return this.model.lines.findIndex((line) => line.kind === kind && line.id === id);
  }

  /** The position whose computation is shown; -1 if there is no token. */
  get position() {
    return Math.min(this.at ?? Infinity, this.tokens.length - 1);
  }

  get current() {
    return this.model.lines[this.line];
  }

  /** The components of the current line, and the one that is selected. */
  get lit() {
    const parts = this.partsOf(this.current).map((part) => part.number);
    return new Set([...parts, this.component].filter((number) => number !== null));
  }

  /** The program's and the model's value of an s-op at a position, now and before patching. */
  valueOf(sop, position) {
    const { domain } = this.model.sops.get(sop);
    const group = this.model.groupOfSop.get(sop);
    const program = this.now.program.codes.get(sop)[position];
    const before = this.base.program.codes.get(sop)[position];
    const held = group ? this.model.read(group, this.now.run, group.stage, position + 1) : null;
    const fails = this.now.program.errors.length > 0;
    const knows = held !== null && held.code !== null;
    return {
      program: domain.short(program),
      exact: domain.text(program),
      model: held,
      agree: !knows ? null : fails ? null : domain.same(held.code, program),
      changed: !domain.same(before, program),
      before: domain.short(before),
      patched: this.patches.some((patch) => patch.sop === sop && patch.position === position),
    };
  }

  /** Whether a patch changed the value of a group of directions. */
  differs(group, stage, position) {
    if (this.now === this.base) return false;
    return group.rows.some((row) => this.cellDiffers(row, stage, position));
  }

  cellDiffers(row, stage, position) {
    if (this.now === this.base) return false;
    const [now, before] = [this.now, this.base].map(({ run }) => this.model.at(row, run, stage, position));
    return Math.abs(now - before) > 5e-4;
  }

  /** Whether a patch changed what a component writes or clears, at some position. */
  affected(part) {
    if (this.now === this.base || part.stage >= this.model.transformer.stages) return false;
    const differs = (stage) => (number) => {
      for (let p = 0; p <= this.tokens.length; p++) if (this.differs(this.model.groups[number], stage, p)) return true;
      return false;
    };
    return part.writes.some(differs(part.stage)) || part.clears.some(differs(part.stage - 1));
  }
}

/** The line shown at first: the first that some component computes, else the first that is not an input. */
function firstLine(model) {
  const computed = ({ kind, id }) => kind === "sop" && !INPUTS.has(model.sops.get(id).op.kind);
  const built = (line) => computed(line) && model.groupOfSop.has(line.id) && model.componentsOf(line.id).length > 0;
  const first = model.lines.findIndex(built);
  return first >= 0 ? first : model.lines.findIndex(computed);
}

/** A number as the page writes it; NaN is None. */
function readNumber(text) {
  return text === "None" ? NaN : Number(text.replace("−", "-"));
}

/** The groups that are open at first: small variables of small models, as long as the page stays short. */
function opened(model) {
  if (model.transformer.width > LARGE) return [];
  const small = model.groups.filter((group) => group.rows.length <= 6 && !group.scratch);
  const rows = model.groups.length + small.reduce((sum, group) => sum + group.rows.length, 0);
  return rows <= 36 ? small.map((group) => group.number) : [];
}
