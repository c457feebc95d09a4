// The model of the page, built from its data: the program, the transformer, and the labels of its dimensions.

import { Finite, Interval, shortNumber } from "./domains.js";
import { evaluate } from "./program.js";
import { Transformer } from "./transformer.js";

const NOT_HOT = 0.5; // a one-hot direction below this is off
const CODE = 1e-3; // the largest relative error of a coordinate of a code

export function loadModel(data) {
  if (data.format !== "tracr explorer" || data.version !== 1) throw new Error("the page cannot read this model");
  return new Model(data);
}

export class Model {
  /** @param data the JSON of tracr/viz/explorer/data.py; its fields become the model's, some of them as objects. */
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
    this.dimensions = data.dimensions.map((dimension) => ({ ...dimension, until: dimension.until ?? Infinity }));
    this.groups = data.groups.map((group, number) => {
      const row = ([place, id]) => {
        const dimension = this.dimensions[place];
        const rest = dimension.label.slice(group.label.length).replace(/^:/, "") || "number";
        return { ...dimension, value: id === null ? null : value(id), name: id === null ? rest : value(id).text };
      };
      return {
        ...group,
        number,
        rows: group.rows.map(row),
        codes: group.codes?.map(([id, coordinates]) => ({ value: value(id), coordinates })),
        dropped: group.dropped.map(value),
      };
    });
    this.components = data.components.map((part, number) => ({
      ...part,
      number,
      stage: stageOf(part, this.transformer.stages),
    }));
    for (const group of this.groups) {
      group.stage = Math.max(0, ...group.rows.map((row) => row.from));
      group.own = group.rows.filter((row) => !row.special); // without BOS and PAD
    }
    this.groupOfSop = new Map(this.groups.filter((group) => group.settable).map((group) => [group.sop, group]));
  }

  /** The components that compute an s-op: those that write its directions or its intermediates. */
  componentsOf(sop) {
    const mine = new Set(this.groups.filter((group) => group.sop === sop).map((group) => group.number));
    return this.components.filter((part) => part.writes.some((number) => mine.has(number)));
  }

  /** The program's values on token codes; `patches` are {sop, position, code}. */
  evaluate(tokens, patches = []) {
    return evaluate(this, tokens, patches);
  }

  /** A forward pass on token codes. A patch writes the code of its value into the variable's dimensions. */
  run(tokens, patches = []) {
    const bos = this.vocab.length;
    const written = [...patches, ...this.following(tokens, patches)];
    return this.transformer.run([bos, ...tokens], (stage, stream) => {
      for (const { sop, position, code } of written) {
        const group = this.groupOfSop.get(sop);
        if (group?.stage === stage && position < tokens.length) this.write(group, stream, position + 1, code);
      }
    });
  }

  /** Patches of the embedded variables that are functions of patched ones: the embedding writes both. */
  following(tokens, patches) {
    const embedded = [...this.groupOfSop.values()].filter((group) => group.stage === 0);
    const patched = (sop, position) => patches.some((patch) => patch.sop === sop && patch.position === position);
    if (embedded.length < 2 || !embedded.some((group) => patches.some((patch) => patch.sop === group.sop))) return [];
    const [now, usual] = [this.evaluate(tokens, patches).codes, this.evaluate(tokens).codes];
    return embedded.flatMap(({ sop }) =>
      tokens
        .map((_, position) => ({ sop, position, code: now.get(sop)[position] }))
        .filter(({ position, code }) => code >= 0 && code !== usual.get(sop)[position] && !patched(sop, position)),
    );
  }

  write(group, stream, position, code) {
    const { domain } = this.sops.get(group.sop);
    let value = domain instanceof Finite ? domain.values[code] : { number: code, key: -1 };
    if (Number.isNaN(code)) value = this.values[this.none];
    const coded = group.codes?.find((one) => one.value.key === value.key);
    group.rows.forEach((row, i) => {
      const x = row.value === null ? (value.number ?? 0) : Number(row.value.key === value.key);
      stream[position * this.transformer.width + row.slot] = coded?.coordinates[i] ?? x;
    });
  }

  /** The coordinate of a direction at a position (BOS is 0) after a stage: 0 while it is not stored. */
  at(row, run, stage, position) {
    return isThere(row, stage) ? run.streams[stage][position * run.width + row.slot] : 0;
  }

  /** The label of each dimension after a stage, with the values of a variable next to each other. */
  labels(stage) {
    const found = new Map(this.dimensions.filter((row) => isThere(row, stage)).map((row) => [row.slot, row.label]));
    for (let slot = 0; slot < this.transformer.width; slot++)
      if (!found.has(slot)) found.set(slot, `dimension ${slot}`);
    return found;
  }

  /** Whether some dimension holds several directions, one after the other. */
  get shared() {
    return this.dimensions.length > this.transformer.width;
  }

  /** The directions of a dimension, one after the other. */
  turns(slot) {
    return this.dimensions.filter((row) => row.slot === slot).sort((a, b) => a.from - b.from);
  }

  /**
   * The value of a group of directions at a position (BOS is 0) after a stage: {code, text, raw}; null if the group is
   * not written yet, or all cleared. The code is that of the s-op's domain, if the group is an s-op.
   */
  read(group, run, stage, position) {
    if (stage < group.stage) return null;
    const at = (row) => this.at(row, run, stage, position);
    const special = group.rows.find((row) => row.special && at(row) >= NOT_HOT);
    if (special) return this.held(group, special.value);
    const there = group.own.filter((row) => isThere(row, stage));
    if (!there.length) return null;
    if (group.numerical) return there.length === group.own.length ? this.readNumber(group, at) : null;
    if (group.codes) return this.readCode(group, at, stage);
    const hot = there.reduce((best, row) => (at(row) > at(best) ? row : best));
    if (at(hot) >= NOT_HOT) return this.held(group, hot.value);
    const cleared = group.own.filter((row) => !isThere(row, stage)).map((row) => row.value);
    return position === 0 ? null : this.oneOf(group, [...group.dropped, ...cleared]);
  }

  /** The value with the stored code, or with the stored part of it; values that readers treat alike share a code. */
  readCode(group, at, stage) {
    const near = (x, y) => Math.abs(x - y) <= CODE * Math.max(1, Math.abs(y));
    const fits = ({ coordinates }) =>
      group.own.every((row, i) => !isThere(row, stage) || near(at(row), coordinates[i]));
    return this.oneOf(
      group,
      group.codes.filter(fits).map(({ value }) => value),
    );
  }

  /** A value that is one of these; the stream does not say which. */
  oneOf(group, values) {
    if (values.length === 1) return this.held(group, values[0]);
    return values.length ? { code: null, text: "…", oneOf: values.map((value) => value.text) } : null;
  }

  held(group, value) {
    const domain = this.sops.get(group.sop)?.domain;
    return { code: domain instanceof Finite ? domain.codeOf(value) : null, text: value.text };
  }

  readNumber(group, at) {
    const flag = group.rows.find((row) => row.value !== null && at(row) >= NOT_HOT);
    const domain = group.settable ? this.sops.get(group.sop).domain : null;
    if (flag) return domain instanceof Interval ? { code: NaN, text: "None" } : this.held(group, flag.value);
    const row = group.rows.find((candidate) => candidate.value === null);
    if (!row) return { code: null, text: "…" };
    const raw = at(row);
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

/** Whether a direction is stored after a stage. */
export function isThere(row, stage) {
  return row.from <= stage && stage < row.until;
}

function stageOf(part, stages) {
  if (part.kind === "embedding") return 0;
  if (part.kind === "unembedding") return stages;
  return 1 + 2 * part.layer + (part.kind === "neurons" ? 1 : 0);
}
