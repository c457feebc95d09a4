// The page's data brought to life: the program, the transformer, and what its dimensions mean.

import { Finite, Interval, shortNumber } from "./domains.js";
import { evaluate } from "./program.js";
import { Transformer } from "./transformer.js";

const NOT_HOT = 0.5; // a one-hot direction below this is off

export function loadModel(data) {
  if (data.format !== "tracr explorer" || data.version !== 1) throw new Error("this is not a model the page can read");
  return new Model(data);
}

export class Model {
  /** @param data what tracr/viz/explorer/data.py writes; its fields are the model's, some of them brought to life. */
  constructor(data) {
    Object.assign(this, data);
    this.values = data.values.map(([text, number, key], id) => ({ text, number, key, isNone: id === data.none }));
    const value = (id) => this.values[id];
    this.vocab = data.vocab.map((id, code) => ({ ...value(id), text: data.words[code] }));
    this.sops = new Map(
      data.sops.map((sop) => [
        sop.id,
        { ...sop, domain: Array.isArray(sop.domain) ? new Finite(sop.domain.map(value)) : new Interval(sop.domain) },
      ]),
    );
    this.selectors = new Map(data.selectors.map((selector) => [selector.id, selector]));
    this.transformer = new Transformer(data.weights, data);
    this.groups = data.groups.map((group, number) => ({
      ...group,
      number,
      rows: group.rows.map(([slot, id]) => ({ slot, value: id === null ? null : value(id) })),
      dropped: group.dropped.map(value),
    }));
    this.groupOfSlot = [];
    for (const group of this.groups) for (const row of group.rows) this.groupOfSlot[row.slot] = group;
    this.components = data.components.map((part, number) => ({
      ...part,
      number,
      stage: stageOf(part, this.transformer.stages),
    }));
    for (const group of this.groups) {
      const writers = this.components.filter((part) => part.writes.includes(group.number));
      group.stage = Math.max(0, ...writers.map((part) => part.stage));
    }
    this.groupOfSop = new Map(this.groups.filter((group) => group.settable).map((group) => [group.sop, group]));
  }

  /** The components that compute an s-op: those that write its directions or scratch of its own. */
  componentsOf(sop) {
    const mine = new Set(this.groups.filter((group) => group.sop === sop).map((group) => group.number));
    return this.components.filter((part) => part.writes.some((number) => mine.has(number)));
  }

  /** What the program computes on token codes; `patches` are {sop, position, code}. */
  evaluate(tokens, patches = []) {
    return evaluate(this, tokens, patches);
  }

  /**
   * A forward pass on token codes. A patch writes the code of its value where the variable lives; what else the
   * embedding writes may be a function of it.
   */
  run(tokens, patches = []) {
    const bos = this.vocab.length;
    const embedded = [...this.groupOfSop].filter(([, group]) => group.stage === 0);
    const changed = patches.some(({ sop }) => this.groupOfSop.get(sop)?.stage === 0);
    const codes = changed ? this.evaluate(tokens, patches).codes : null;
    return this.transformer.run([bos, ...tokens], (stage, stream) => {
      for (const [sop, group] of stage === 0 && codes ? embedded : [])
        for (let i = 0; i < tokens.length; i++)
          if (codes.get(sop)[i] >= 0) this.write(group, stream, i + 1, codes.get(sop)[i]);
      for (const { sop, position, code } of patches) {
        const group = this.groupOfSop.get(sop);
        if (group?.stage === stage && position < tokens.length) this.write(group, stream, position + 1, code);
      }
    });
  }

  write(group, stream, position, code) {
    const { domain } = this.sops.get(group.sop);
    let value = domain instanceof Finite ? domain.values[code] : { number: code, key: -1 };
    if (Number.isNaN(code)) value = this.values[this.none];
    group.rows.forEach((row, i) => {
      const x = row.value === null ? (value.number ?? 0) : Number(row.value.key === value.key);
      stream[position * this.transformer.width + row.slot] = group.codes?.[code][i] ?? x;
    });
  }

  /**
   * The value a group of directions holds at a position (BOS is 0) after a stage: {code, text, raw}; null where nothing
   * is written yet. The code is that of the s-op's domain, where the group is an s-op.
   */
  read(group, run, stage, position) {
    if (stage < group.stage) return null;
    const at = (slot) => run.streams[stage][position * run.width + slot];
    if (group.numerical) return this.readNumber(group, at);
    if (group.codes) return this.readCode(group, at);
    const hot = group.rows.reduce((best, row) => (at(row.slot) > at(best.slot) ? row : best), group.rows[0]);
    if (at(hot.slot) >= NOT_HOT) return this.held(group, hot.value);
    if (position === 0) return null;
    if (group.dropped.length === 1) return this.held(group, group.dropped[0]);
    return group.dropped.length ? { code: null, text: "…", dropped: group.dropped.map((value) => value.text) } : null;
  }

  /** The value whose code it is; several may have the same one, if no reader tells them apart. */
  readCode(group, at) {
    const special = group.rows.find((row) => row.value !== null && at(row.slot) >= NOT_HOT);
    if (special) return this.held(group, special.value);
    const near = (x, y) => Math.abs(x - y) <= 1e-3 * Math.max(1, Math.abs(y));
    const fits = (code) => code.every((y, i) => near(at(group.rows[i].slot), y));
    const found = group.codes.flatMap((code, number) => (fits(code) ? [number] : []));
    const { domain } = this.sops.get(group.sop);
    if (found.length === 1) return { code: found[0], text: domain.text(found[0]) };
    return found.length ? { code: null, text: "…", dropped: found.map((code) => domain.text(code)) } : null;
  }

  held(group, value) {
    const domain = this.sops.get(group.sop)?.domain;
    return { code: domain instanceof Finite ? domain.codeOf(value) : null, text: value.text };
  }

  readNumber(group, at) {
    const flag = group.rows.find((row) => row.value !== null && at(row.slot) >= NOT_HOT);
    const domain = group.settable ? this.sops.get(group.sop).domain : null;
    if (flag) return domain instanceof Interval ? { code: NaN, text: "None" } : this.held(group, flag.value);
    const row = group.rows.find((candidate) => candidate.value === null);
    if (!row) return { code: null, text: "…" };
    const raw = at(row.slot);
    if (domain instanceof Finite) {
      const code = domain.nearest(raw);
      if (code >= 0 && Math.abs(domain.number(code) - raw) <= 1e-3 * Math.max(1, Math.abs(raw)))
        return { code, text: domain.text(code), raw };
      return { code: null, text: domain.text(-1), raw, off: true };
    }
    return { code: raw, text: shortNumber(raw), raw };
  }

  /** The model's value of an output at a position (no BOS), decoded from the logits. */
  decode(output, run, position) {
    const width = this.transformer.W_U.shape[1];
    const logits = run.logits.subarray((position + 1) * width + output.start, (position + 1) * width + output.stop);
    const sop = this.sops.get(output.sop),
      { domain } = sop;
    if (sop.encoding === "categorical") return logits.indexOf(Math.max(...logits));
    const none = logits.length > 1 && logits[1] > NOT_HOT;
    if (domain instanceof Interval) return none ? NaN : logits[0];
    return none ? Math.max(domain.none, 0) : domain.nearest(logits[0]);
  }
}

function stageOf(part, stages) {
  if (part.kind === "embedding") return 0;
  if (part.kind === "unembedding") return stages;
  return 1 + 2 * part.layer + (part.kind === "neurons" ? 1 : 0);
}
