// The residual stream in words: the value of a cell, its writers and its readers.

import { count, listed, placeName, stageName } from "./names.js";
import { shortNumber } from "../core/domains.js";
import { isThere } from "../core/model.js";

/** Lines for a row's name, or for its cell at `place` {stage, position}. */
export function describe(state, row, place) {
  const { model } = state;
  const { group, dimension } = row;
  const rows = dimension ? [dimension] : group.own.length ? group.own : group.rows;
  const lines = [dimension ? dimension.label : group.label];
  if (place) lines.push(["where", where(state, place)], ["value", valueText(state, row, place)]);
  else if (group.scratch) lines.push(["", "an intermediate value of the compiler, not a variable of the program"]);
  lines.push(["written by", listed(rows.map(({ writer }) => placeName(writer)).filter(Boolean)) || "no component"]);
  lines.push(["read by", readersOf(rows) || "no component"]);
  if (!dimension && rows !== group.rows) lines.push(...besides(group));
  if (!state.plumbing && (dimension?.special || group.constant)) lines.push(["", "its wires are hidden at first"]);
  if (dimension) lines.push(...turns(model, dimension));
  else if (cleared(group).length) lines.push(["cleared by", clearedBy(model, group)]);
  return lines;
}

function readersOf(rows) {
  return listed(rows.flatMap(({ readers }) => readers.map(placeName)));
}

/** Who reads the directions of BOS and PAD, which are not values of the variable: the circuit hides these wires. */
function besides(group) {
  const special = group.rows.filter((row) => row.special && row.readers.length);
  return special.length ? [["BOS and PAD", `their directions are read by ${readersOf(special)}`]] : [];
}

/** The directions of a dimension, one after the other, if it holds several. */
function turns(model, { slot }) {
  const all = model.turns(slot);
  const { stages } = model.transformer;
  const turn = ({ label, until }) => (until < Infinity ? `${label} until ${stageName(until, stages)}` : label);
  return all.length > 1 ? [["dimension", `${slot} holds ${all.map(turn).join(", then ")}`]] : [];
}

function cleared(group) {
  return group.own.filter((row) => row.until < Infinity);
}

/** The sub-layers that clear a variable, or some of its directions. */
function clearedBy(model, group) {
  const gone = cleared(group);
  const names = listed(gone.map(({ until }) => stageName(until, model.transformer.stages)));
  const some = gone.length < group.own.length ? ` (${gone.length} of its ${group.own.length} directions)` : "";
  return `${names}${some}, after its last reader`;
}

function where({ model, tokens }, { stage, position }) {
  const token = position ? model.vocab[tokens[position - 1]].text : model.bos;
  return `${position ? `position ${position - 1}` : "BOS"} (${token}), after ${stageName(stage, model.transformer.stages)}`;
}

/** The value; if a patch changed it, before and after. */
function valueText({ model, now, base }, row, place) {
  const [before, after] = [base, now].map(({ run }) => heldText(model, run, row, place));
  return before === after ? after : `${before} → ${after}`;
}

function heldText(model, run, { group, dimension }, { stage, position }) {
  const exact = (x) => String(Number(x.toPrecision(6)));
  if (dimension && isThere(dimension, stage)) return exact(model.at(dimension, run, stage, position));
  if (dimension) return `${stage < dimension.from ? "not written yet" : "cleared"}${instead(model, dimension, stage)}`;
  const read = model.read(group, run, stage, position);
  if (read === null) return stage < group.stage ? "not written yet" : lost(group, stage) ? "cleared" : "no value";
  const why = lost(group, stage)
    ? "no later component distinguishes them"
    : "no component distinguishes them, so they have no direction";
  if (read.oneOf) return `one of ${listed(read.oneOf)}; ${why}`;
  if (read.raw === undefined || read.text === exact(read.raw)) return read.text;
  return `${read.text} (${exact(read.raw)})`;
}

/** Whether some directions of a variable are cleared at a stage. */
function lost(group, stage) {
  return group.own.some((row) => row.until <= stage);
}

/** The content of the dimension of a direction that is not stored. */
function instead(model, { slot }, stage) {
  const other = model.turns(slot).find((row) => isThere(row, stage));
  return other ? `; its dimension holds ${other.label}` : "";
}

/** A value in few characters: .33, T; longer texts are cut by the cell. */
export function brief({ raw, text }, most) {
  if (raw === undefined && !/^-?\d*\.\d+$/.test(text)) return { True: "T", False: "F" }[text] ?? text;
  const number = raw ?? Number(text);
  const rounded = (digits) => shortNumber(Number(number.toFixed(digits)), digits).replace(/^(−?)0\./, "$1.");
  const texts = [2, 1, 0].map(rounded);
  return texts.find((candidate) => candidate.length <= most) ?? texts[2];
}

/** The caption of the residual stream, one or two sentences. */
export function streamCaption(model) {
  const scratch = model.groups.filter((group) => group.scratch).length;
  const dimensions = count(model.transformer.width, "dimension"),
    variables = count(model.groups.length, "variable");
  const which = scratch === 1 ? "One, in italics, is an intermediate value" : `${scratch}, in italics, are intermediate values`;
  const aside = scratch ? ` ${which} of the compiler.` : "";
  const held = model.shared
    ? `${dimensions} for ${count(model.dimensions.length, "direction")} of ${variables}: after its last reader a variable is cleared, and another takes its place. A row is blank while its variable is not stored. Click a name to see its directions.`
    : `${dimensions}, grouped into ${variables}. Click a name to see its directions.`;
  return `${held}${aside}`;
}
