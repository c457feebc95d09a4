// The interpreter of the tabulated program, on one input; the page compares the model with it. It does not use weights.
// As in tracr/runtime/table_interpreter.py, position by position.

import { ERROR, Finite, UNREACHED } from "./domains.js";

/**
 * Whether a selector selects the key at position k for the query at position q: 1, 0 or ERROR. No causal mask here.
 * `codes` maps s-ops to their codes.
 */
export function selected(program, selector, q, k, codes) {
  switch (selector.kind) {
    case "table": {
      const query = codes.get(selector.queries)[q],
        key = codes.get(selector.keys)[k];
      if (query < 0 || key < 0) return 0;
      const cell = selector.table[query].charCodeAt(key);
      return cell === 49 ? 1 : cell === 101 ? ERROR : 0; // "1", "e"
    }
    case "and":
    case "or":
    case "not": {
      const parts = selector.parts.map((id) => selected(program, program.selectors.get(id), q, k, codes));
      if (parts.includes(ERROR)) return ERROR;
      if (selector.kind === "not") return 1 - parts[0];
      return Number(selector.kind === "and" ? parts.every(Boolean) : parts.some(Boolean));
    }
    default:
      throw new Error(`no selector of kind ${selector.kind}`);
  }
}

/** The program's values on an input: codes of every s-op, and the places where it has no value. */
export function evaluate(program, tokens, patches = []) {
  return new Evaluation(program, tokens, patches).run();
}

class Evaluation {
  constructor(program, tokens, patches) {
    this.program = program;
    this.tokens = tokens;
    this.length = tokens.length;
    this.patches = patches;
    this.codes = new Map();
    this.errors = []; // {sop, position}
    this.chosen = new Map();
  }

  run() {
    for (const sop of this.program.sops.values()) {
      const codes = this.compute(sop);
      for (const patch of this.patches)
        if (patch.sop === sop.id && patch.position < this.length) codes[patch.position] = patch.code;
      this.codes.set(sop.id, codes);
      if (sop.domain instanceof Finite)
        codes.forEach((code, position) => {
          if (code < 0) this.fail(sop, position);
        });
      else if (this.patches.length)
        codes.forEach((number, position) => {
          if (!sop.domain.holds(number)) this.fail(sop, position); // the bounds were proved for unpatched values
        });
    }
    return {
      codes: this.codes,
      errors: this.errors,
      selections: (id) => this.selection(this.program.selectors.get(id)),
    };
  }

  fail(sop, position) {
    if (!this.errors.some((error) => error.sop === sop.id && error.position === position))
      this.errors.push({ sop: sop.id, position });
  }

  compute(sop) {
    const { op, domain } = sop;
    const codes = domain.newCodes(this.length);
    for (let position = 0; position < this.length; position++) codes[position] = this.at(sop, op, position);
    return codes;
  }

  at(sop, op, position) {
    switch (op.kind) {
      case "tokens":
        return this.tokens[position];
      case "indices":
        return position;
      case "length":
        return this.length - this.program.lengths[0];
      case "constant":
        return 0;
      case "positions":
        return op.table[position];
      case "lookup": {
        const code = this.codes.get(op.inner)[position];
        return code < 0 ? ERROR : op.table[code];
      }
      case "pair_lookup": {
        const first = this.codes.get(op.fst)[position],
          second = this.codes.get(op.snd)[position];
        return first < 0 || second < 0 ? ERROR : op.table[first * this.program.sops.get(op.snd).domain.size + second];
      }
      case "linear":
        return this.linear(sop, op, position);
      case "width":
        return sop.domain.snap(this.keys(sop, op.selector, position).length);
      case "aggregation":
        return this.aggregate(sop, op, position);
      default:
        throw new Error(`no operation ${op.kind}`);
    }
  }

  linear(sop, op, position) {
    let total = op.constant;
    for (const [id, factor] of op.terms) {
      const code = this.codes.get(id)[position],
        { domain } = this.program.sops.get(id);
      if (domain instanceof Finite && code < 0) return ERROR;
      total += factor * domain.number(code);
    }
    return sop.domain.snap(total);
  }

  /** The selected cells of a selector: [query][key], true if selected, masked if attention is causal. */
  selection(selector) {
    if (!this.chosen.has(selector.id)) {
      const cells = [];
      let raises = false;
      for (let q = 0; q < this.length; q++) {
        cells.push([]);
        for (let k = 0; k < this.length; k++) {
          const cell = selected(this.program, selector, q, k, this.codes);
          raises ||= cell === ERROR; // also at a masked key
          cells[q].push(cell === 1 && (!this.program.causal || k <= q));
        }
      }
      this.chosen.set(selector.id, { cells, raises });
    }
    return this.chosen.get(selector.id);
  }

  keys(sop, id, position) {
    const selector = this.program.selectors.get(id);
    const { cells, raises } = this.selection(selector);
    const keys = [...cells[position].keys()].filter((k) => cells[position][k]);
    const expected = !this.patches.length || selector.counts.includes(keys.length); // proved for unpatched values
    if (raises || !expected) this.fail(sop, position);
    return keys;
  }

  aggregate(sop, op, position) {
    const keys = this.keys(sop, op.selector, position);
    const source = this.program.sops.get(op.value),
      held = this.codes.get(op.value);
    const fallback = this.program.values[op.default];
    if (!source.domain.numeric) {
      if (!keys.length) return sop.domain.codeOf(fallback);
      const values = keys.map((k) => source.domain.values[Math.max(held[k], 0)]);
      if (values.length === 1) return sop.domain.codeOf(values[0]);
      if (values.some((value) => value.number === null)) return ERROR;
      return this.mean(sop, op, position, values.map((value) => value.number));
    }
    if (!keys.length) {
      if (fallback.number !== null) return sop.domain.snap(fallback.number);
      if (fallback.isNone) return sop.domain.snap(NaN);
      return sop.domain.codeOf(fallback);
    }
    const numbers = keys.map((k) => source.domain.number(held[k]));
    if (numbers.some(Number.isNaN)) {
      if (numbers.length > 1) this.fail(sop, position);
      return sop.domain.snap(NaN);
    }
    return this.mean(sop, op, position, numbers);
  }

  mean(sop, op, position, numbers) {
    if (op.copies && this.patches.length && numbers.some((number) => number !== numbers[0]))
      this.fail(sop, position); // equal values were proved for unpatched values only
    return sop.domain.snap(mean(numbers));
  }
}

/** The mean, independent of the order of the numbers: the sum is exact and rounded once, at the end. */
export function mean(numbers) {
  const partials = []; // numbers that do not overlap, smallest first
  for (let x of numbers) {
    let kept = 0;
    for (let y of partials) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const sum = x + y;
      const lost = y - (sum - x);
      if (lost) partials[kept++] = lost;
      x = sum;
    }
    partials.length = kept;
    partials.push(x);
  }
  return partials.reduce((total, x) => total + x, 0) / numbers.length;
}
