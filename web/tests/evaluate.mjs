// Runs pages' programs and weights without a browser, for tests/viz/explorer/test_core.py: JSON in, JSON out.
import { readFileSync } from "node:fs";
import { headSteps } from "../src/core/head_steps.js";
import { loadModel } from "../src/core/model.js";

const jobs = JSON.parse(readFileSync(0, "utf8"));
const results = jobs.map(({ data, inputs, patches }) => {
  const model = loadModel(data);
  return inputs.map((tokens, number) => {
    const changes = (patches?.[number] ?? []).map((patch) => ({ ...patch, code: patch.code ?? NaN }));
    const evaluation = model.evaluate(tokens, changes);
    const run = model.run(tokens, changes);
    return {
      program: Object.fromEntries([...evaluation.codes].map(([id, codes]) => [id, [...codes].map(orNull)])),
      fails: evaluation.errors.length > 0,
      model: model.outputs.map((output) => tokens.map((_, position) => orNull(model.decode(output, run, position)))),
      steps: stepsError(model, run),
      streams: run.streams.map((stream) => [...stream]),
      // by stage and position: a code, [] where the value is not there, "?" where nothing tells which it is
      variables: [...model.groupOfSop].map(([sop, group]) => [
        sop,
        run.streams.map((_, stage) =>
          tokens.map((_, position) => {
            const held = model.read(group, run, stage, position + 1);
            return held === null ? [] : held.code === null ? "?" : orNull(held.code);
          }),
        ),
      ]),
    };
  });
});
process.stdout.write(JSON.stringify(results));

function orNull(x) {
  return Number.isNaN(x) ? null : x;
}

/** How far the numbers of the heads' steps are from the forward pass: softmax of the scores, and what is written. */
function stepsError(model, run) {
  let worst = 0;
  const far = (x, y) => (worst = Math.max(worst, Math.abs(x - y) / Math.max(1, Math.abs(y))));
  for (let stage = 1; stage < run.streams.length; stage += 2)
    for (let p = 0; p < run.length; p++) {
      const sums = new Map();
      for (const part of model.components.filter((one) => one.kind === "head" && one.stage === stage)) {
        const { scores, weights, rows } = headSteps(model, run, part, p);
        const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
        const total = powers.reduce((a, b) => a + b, 0);
        powers.forEach((power, k) => far(power / total, weights[k]));
        for (const { slot, sum } of rows) sums.set(slot, (sums.get(slot) ?? 0) + sum);
      }
      for (const [slot, sum] of sums) {
        const place = p * run.width + slot;
        far(sum, run.streams[stage][place] - run.streams[stage - 1][place]);
      }
    }
  return worst;
}
