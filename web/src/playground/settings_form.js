// The fields beside the program: vocabulary, length, level, attention, output and input.

import { h, refill } from "../view/dom.js";
import { LEVELS } from "./settings.js";
import { readTokens, readVocabulary, writeTokens, writeVocabulary } from "./tokens.js";

const LEVEL_NAMES = ["0: not optimised", "1: optimised", "2: optimised with a search"];

export class SettingsForm {
  /** `changed()` hears every change made by the reader. */
  constructor(changed) {
    const on = { input: () => (this.check(), changed()) };
    const text = (more) =>
      h("input", { type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: "false", on, ...more });
    this.vocab = text({ id: "vocab", "aria-describedby": "vocab-problem" });
    this.longest = h("input", { id: "longest", type: "number", min: "1", step: "1", on });
    this.level = h(
      "select",
      { id: "level", on },
      LEVELS.map((level) => h("option", { value: level }, LEVEL_NAMES[level])),
    );
    this.causal = h("input", { id: "causal", type: "checkbox", on });
    this.name = h("select", { id: "name", on });
    this.input = text({ id: "input", "aria-describedby": "input-problem", placeholder: "an example is chosen" });
    this.vocabProblem = h("p", { id: "vocab-problem", class: "wrong" });
    this.inputProblem = h("p", { id: "input-problem", class: "wrong" });
    const field = (label, control, ...more) =>
      h("div", { class: `field ${control.id}` }, h("label", { for: control.id }, label), control, more);
    this.element = h(
      "form",
      { class: "settings", "aria-label": "Settings", on: { submit: (event) => event.preventDefault() } },
      field("Vocabulary", this.vocab, this.vocabProblem),
      field("Longest input", this.longest),
      field("Input", this.input, this.inputProblem),
      field("Causal attention", this.causal),
      field("Level", this.level),
      field("Output", this.name),
    );
  }

  /** Show settings; with `locked`, vocabulary and length cannot be changed. */
  show(settings, { locked = false } = {}) {
    this.vocab.value = writeVocabulary(settings.vocab);
    this.longest.value = settings.max_len;
    for (const control of [this.vocab, this.longest]) control.readOnly = locked;
    this.level.value = settings.level;
    this.causal.checked = settings.causal;
    this.input.value = writeTokens(settings.input, settings.vocab);
    this.names([], settings.name);
    this.check();
  }

  /** The names that can be the output; the empty one is the last s-op. */
  names(names, chosen = this.name.value, last = names.at(-1)) {
    const all = chosen && !names.includes(chosen) ? [...names, chosen] : names;
    const options = [["", last ? `the last s-op (${last})` : "the last s-op"], ...all.map((name) => [name, name])];
    refill(
      this.name,
      options.map(([value, text]) => h("option", { value }, text)),
    );
    this.name.value = chosen;
  }

  /** The settings without the program; null if a field cannot be read. An input that does not fit counts as none. */
  read() {
    const vocab = readVocabulary(this.vocab.value);
    const max_len = Number(this.longest.value);
    if (!vocab.length || !Number.isInteger(max_len) || max_len < 1) return null;
    const { tokens: input = null } = readTokens(this.input.value, vocab, max_len);
    const [name, level, causal] = [this.name.value, Number(this.level.value), this.causal.checked];
    return { name, vocab, max_len, level, causal, input };
  }

  /** Show what is wrong with the fields. */
  check() {
    const vocab = readVocabulary(this.vocab.value);
    const longest = Number(this.longest.value);
    const wrongLength = !Number.isInteger(longest) || longest < 1;
    const input = vocab.length && !wrongLength ? readTokens(this.input.value, vocab, longest).problem : undefined;
    this.say(this.vocab, this.vocabProblem, vocab.length ? "" : "Write at least one token, for example: a b c");
    this.say(this.input, this.inputProblem, input ?? "");
    this.longest.setAttribute("aria-invalid", String(wrongLength));
  }

  say(control, place, problem) {
    place.textContent = problem;
    control.setAttribute("aria-invalid", String(Boolean(problem)));
  }
}
