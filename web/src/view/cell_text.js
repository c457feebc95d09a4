// The residual stream in words: what a cell holds, who wrote it, who reads it.

import { count, listed, placeName, stageName } from "./names.js";
import { shortNumber } from "../core/domains.js";
import { isThere } from "../core/model.js";

/** Lines for a row's name, or for its cell at `place` {stage, position}. */
export function describe(state, row, place) {
  const { model } = state;
  const { group, dimension } = row;
  const rows = dimension ? [dimension] : group.rows;
  const lines = [dimension ? dimension.label : group.label];
  if (place) lines.push(["where", where(state, place)], ["value", valueText(state, row, place)]);
  else if (group.scratch) lines.push(["", "an intermediate of the construction, not a variable of the program"]);
  lines.push(["written by", listed(rows.map(({ writer }) => placeName(writer)).filter(Boolean)) || "nothing"]);
  lines.push(["read by", listed(rows.flatMap(({ readers }) => readers.map(placeName))) || "nothing"]);
  if (dimension) lines.push(...turns(model, dimension));
  else if (cleared(group).length) lines.push(["cleared by", clearedBy(model, group)]);
  return lines;
}

/** What a dimension holds, one after the other, if it holds several things. */
function turns(model, { slot }) {
  const all = model.turns(slot);
  const { stages } = model.transformer;
  const turn = ({ label, until }) => (until < Infinity ? `${label} until ${stageName(until, stages)}` : label);
  return all.length > 1 ? [["dimension", `${slot} holds ${all.map(turn).join(", then ")}`]] : [];
}

function cleared(group) {
  return group.own.filter((row) => row.until < Infinity);
}

/** Which sub-layer clears a variable, or some of its directions. */
function clearedBy(model, group) {
  const gone = cleared(group);
  const names = listed(gone.map(({ until }) => stageName(until, model.transformer.stages)));
  const some = gone.length < group.own.length ? ` (${gone.length} of its ${group.own.length} directions)` : "";
  return `${names}${some}: nothing reads it any more`;
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
  if (dimension && isThere(dimension, stage)) return exact(model.at(dimension, run, stage, position));
  if (dimension) return `${stage < dimension.from ? "not written yet" : "cleared"}${instead(model, dimension, stage)}`;
  const read = model.read(group, run, stage, position);
  if (read === null) return stage < group.stage ? "not written yet" : lost(group, stage) ? "cleared" : "nothing";
  const why = lost(group, stage) ? "nothing reads which any more" : "nothing reads which, so it has no direction";
  if (read.oneOf) return `one of ${listed(read.oneOf)}; ${why}`;
  if (read.raw === undefined || read.text === exact(read.raw)) return read.text;
  return `${read.text} (${exact(read.raw)})`;
}

/** Whether directions of a variable are cleared by now. */
function lost(group, stage) {
  return group.own.some((row) => row.until <= stage);
}

/** What the dimension of a direction that is not there holds. */
function instead(model, { slot }, stage) {
  const other = model.turns(slot).find((row) => isThere(row, stage));
  return other ? `; its dimension holds ${other.label}` : "";
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
  const held = model.shared
    ? `${dimensions} for ${count(model.dimensions.length, "direction")} of ${variables}: what nothing reads any more is cleared, and its place taken by another. Before and after its turn a row is blank; a name opens its directions.`
    : `${dimensions}, grouped into ${variables}; a name opens its directions.`;
  return `${held}${aside}`;
}
