// The residual stream in words: what a cell holds, who wrote it, who reads it.

import { count, listed, placeName, stageName } from "./names.js";
import { shortNumber } from "../core/domains.js";

/** Lines for a row's name, or for its cell at `place` {stage, position}. */
export function describe(state, row, place) {
  const { model } = state;
  const { group, dimension } = row;
  const slots = (dimension ? [dimension] : group.rows).map(({ slot }) => model.dimensions[slot]);
  const lines = [dimension ? slots[0].label : group.label];
  if (place) lines.push(["where", where(state, place)], ["value", valueText(state, row, place)]);
  else if (group.scratch) lines.push(["", "an intermediate of the construction, not a variable of the program"]);
  lines.push(["written by", listed(slots.map(({ writer }) => placeName(writer)).filter(Boolean)) || "nothing"]);
  lines.push(["read by", listed(slots.flatMap(({ readers }) => readers.map(placeName))) || "nothing"]);
  return lines;
}

function where({ model, tokens }, { stage, position }) {
  const token = position ? model.vocab[tokens[position - 1]].text : model.bos;
  return `${position ? `position ${position - 1}` : "BOS"} (${token}), after ${stageName(stage, model.transformer.stages)}`;
}

/** The value, before and after where a patch changed it. */
function valueText({ model, now, base }, row, place) {
  const [before, after] = [base, now].map(({ run }) => heldText(model, run, row, place));
  return before === after ? after : `${before} → ${after}`;
}

function heldText(model, run, { group, dimension }, { stage, position }) {
  const exact = (x) => String(Number(x.toPrecision(6)));
  if (dimension) return exact(run.streams[stage][position * run.width + dimension.slot]);
  const read = model.read(group, run, stage, position);
  if (read === null) return stage < group.stage ? "not written yet" : "nothing";
  if (read.dropped) return `one of ${listed(read.dropped)}; nothing reads which, so it has no direction`;
  if (read.raw === undefined || read.text === exact(read.raw)) return read.text;
  return `${read.text} (${exact(read.raw)})`;
}

/** A value in so many characters: .33, T; what is longer gets cut by the cell. */
export function brief({ raw, text }, most) {
  if (raw === undefined && !/^-?\d*\.\d+$/.test(text)) return { True: "T", False: "F" }[text] ?? text;
  const number = raw ?? Number(text);
  const rounded = (digits) => shortNumber(Number(number.toFixed(digits)), digits).replace(/^(−?)0\./, "$1.");
  const texts = [2, 1, 0].map(rounded);
  return texts.find((candidate) => candidate.length <= most) ?? texts[2];
}

/** In a sentence or two, what the reader sees. */
export function streamCaption(model) {
  const scratch = model.groups.filter((group) => group.scratch).length;
  const dimensions = count(model.transformer.width, "dimension"),
    variables = count(model.groups.length, "variable");
  const which = scratch === 1 ? "One, in italics, is an intermediate" : `${scratch}, in italics, are intermediates`;
  const aside = scratch ? ` ${which} of the construction.` : "";
  return `${dimensions}, grouped into ${variables}; a name opens its directions.${aside}`;
}
