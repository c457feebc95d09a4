// Runs pages' programs and weights without a browser, for tests/viz/explorer/test_core.py: JSON in, JSON out.
import { readFileSync } from "node:fs";
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
