// The results: tokens, the outputs of the program and of the model; with a patch, before and after.

import { classes, h } from "./dom.js";

const ROW = 29; // the height of a row

export function results(state) {
  const { model, tokens, now, base } = state;
  const patched = now !== base;
  const fails = now.program.errors.length > 0;
  const rows = [
    row(
      "input",
      tokens.map((code) => ({ text: model.vocab[code].text })),
      "tokens",
    ),
  ];
  let agree = true;
  for (const output of model.outputs) {
    const { domain } = model.sops.get(output.sop);
    const of = model.outputs.length > 1 ? ` ${output.name}` : "";
    const says = tokens.map((_, p) => now.program.codes.get(output.sop)[p]);
    const does = tokens.map((_, p) => model.decode(output, now.run, p));
    const did = tokens.map((_, p) => model.decode(output, base.run, p));
    const wrong = (p) => !fails && !domain.same(does[p], says[p]);
    agree &&= tokens.every((_, p) => !wrong(p));
    if (patched)
      rows.push(
        row(
          `before${of}`,
          did.map((code) => cell(domain, code)),
          "before",
        ),
      );
    rows.push(
      row(
        `program${of}`,
        says.map((code) => (fails ? { text: "–" } : cell(domain, code))),
        "program",
      ),
    );
    rows.push(
      row(
        `model${of}`,
        does.map((code, p) => ({ ...cell(domain, code), wrong: wrong(p), changed: !domain.same(code, did[p]) })),
        "model",
      ),
    );
  }
  const stale = state.problem && "stale";
  const room = `min-height:${ROW * (1 + 3 * model.outputs.length)}px`; // also for the rows that a patch adds
  return [
    h("div", { class: classes("scroll", stale), style: room }, h("table", { class: "results" }, h("tbody", {}, rows))),
    h(
      "p",
      { class: classes("verdict", stale ? "hint" : fails || !agree ? "bad" : "ok"), role: "status" },
      stale ? "The page still shows the last valid input." : verdict(state, fails, agree),
    ),
  ];
}

function cell(domain, code) {
  return { text: domain.short(code), title: domain.text(code) };
}

function row(name, cells, kind) {
  return h(
    "tr",
    { class: kind },
    h("th", { scope: "row" }, name),
    cells.map(({ text, title, wrong, changed }, p) =>
      h("td", { class: classes(wrong && "wrong", changed && "changed"), title, data: { at: p + 1 } }, text),
    ),
  );
}

function verdict(state, fails, agree) {
  const { model, tokens, now, base } = state;
  if (!tokens.length) return "No tokens yet: the input is only BOS, which the model adds.";
  if (fails) {
    const { sop, position } = now.program.errors[0];
    const where = `${model.sops.get(sop).label} at position ${position}`;
    if (now !== base)
      return `With this patch the program has no value (${where}): no input leads there, so the model's output has no meaning.`;
    return `The program has no value on this input: ${where} fails. The model's output has no meaning there.`;
  }
  if (!agree && model.trained) return "✗ The twin differs from the program on this input: it was trained, not compiled.";
  if (!agree) return "✗ Model and program differ. This is a bug in tracr: please report it.";
  return now === base
    ? "✓ Model and program agree."
    : "✓ With the same patches, model and program agree.";
}
