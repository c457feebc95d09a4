// The domain of an s-op. A value is a code: its index in a finite domain; in an interval, the number itself
// (NaN for None). As in tracr/ir/domains.py.

/** A table cell where the program's function raises, and one that no input reaches. */
export const ERROR = -1;
export const UNREACHED = -2;

const CLOSE = 1e-9; // the largest relative difference between a mean and its value in the domain

export class Finite {
  /** @param {{text: string, number: number | null, key: number, isNone: boolean}[]} values; equal ones share a key */
  constructor(values) {
    this.values = values;
    this.size = values.length;
    this.codeOfKey = new Map(values.map((value, code) => [value.key, code]));
    this.none = values.findIndex((value) => value.isNone);
    this.numeric = values.every((value) => value.number !== null || value.isNone);
    this.ascending = values
      .map((value, code) => code)
      .filter((code) => values[code].number !== null)
      .sort((a, b) => values[a].number - values[b].number || a - b);
    this.middles = this.ascending.slice(1).map((upper, place) => {
      const low = values[this.ascending[place]].number,
        high = values[upper].number;
      const middle = low + (high - low) / 2;
      return middle >= high ? low : middle;
    });
  }

  /** The number of a code, NaN for None. */
  number(code) {
    if (code < 0) return NaN;
    return this.values[code].number ?? NaN;
  }

  /** The code of the number nearest to x, at any distance; -1 if the domain has no numbers. */
  nearest(x) {
    if (!this.ascending.length) return -1;
    let low = 0,
      high = this.middles.length;
    while (low < high) {
      const place = (low + high) >> 1;
      if (this.middles[place] < x) low = place + 1;
      else high = place;
    }
    return this.ascending[low];
  }

  /** The code of the number x (NaN is None), ERROR or UNREACHED if it has none. */
  snap(x) {
    if (Number.isNaN(x)) return this.none >= 0 ? this.none : ERROR;
    const code = this.nearest(x);
    if (code < 0) return ERROR;
    return Math.abs(this.values[code].number - x) > CLOSE * Math.max(1, Math.abs(x)) ? UNREACHED : code;
  }

  /** The code of a value that is equal to the given one. */
  codeOf(value) {
    return this.codeOfKey.get(value.key) ?? ERROR;
  }

  text(code) {
    return code < 0 ? "–" : this.values[code].text;
  }

  /** As text, in few characters. */
  short(code) {
    const { text, number } = this.values[code] ?? {};
    return number != null && text.length > 7 ? shortNumber(number, 4) : this.text(code);
  }

  newCodes(length) {
    return new Int32Array(length);
  }

  /** Whether two codes have the same value, up to rounding. */
  same(a, b) {
    if (a === b) return true;
    if (a < 0 || b < 0) return false;
    const x = this.values[a].number,
      y = this.values[b].number;
    return x !== null && y !== null && Math.abs(x - y) <= 1e-12 * Math.max(1, Math.abs(y));
  }
}

export class Interval {
  constructor({ low, high, none }) {
    this.low = low;
    this.high = high;
    this.maybeNone = none;
    this.numeric = true;
    this.size = 0;
  }

  number(code) {
    return code;
  }

  /** Whether a number (NaN is None) lies in it, up to rounding. */
  holds(x) {
    if (Number.isNaN(x)) return this.maybeNone;
    const slack = CLOSE * Math.max(1, Math.abs(this.low), Math.abs(this.high));
    return x >= this.low - slack && x <= this.high + slack;
  }

  snap(x) {
    return x;
  }

  text(code) {
    return Number.isNaN(code) ? "None" : shortNumber(code);
  }

  short(code) {
    return this.text(code);
  }

  newCodes(length) {
    return new Float64Array(length);
  }

  same(a, b) {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
    return Math.abs(a - b) <= 1e-4 * Math.max(1, Math.abs(b));
  }
}

/** A number in few characters: 0.333, 12, 1e-7. */
export function shortNumber(x, digits = 3) {
  if (!Number.isFinite(x)) return String(x);
  const rounded = Number(x.toFixed(digits));
  if (rounded === 0 && x !== 0) return Number(x.toPrecision(1)).toExponential().replace("+", "");
  return String(rounded).replace("-", "−");
}
