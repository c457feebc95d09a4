// The script of the page. It shows the model in the element `tracr-data`, if there is one; other pages call
// `tracr.mount(root, data)`.

import { follow } from "./address.js";
import { readInput } from "./core/input.js";
import { mount } from "./explorer.js";

const given = document.getElementById("tracr-data");
globalThis.tracr = { mount };
if (given) {
  const explorer = mount(document.body, JSON.parse(given.textContent), { whole: true });
  const { state } = explorer.page;
  follow(explorer.page);
  globalThis.tracr = { ...api(state.model, state), mount, update: explorer.update };
}

/** For the console and for tests: the model without the page around it. */
function api(model, state) {
  return {
    model,
    state,
    /** The program's and the model's outputs on an input, as text. */
    outputs(text) {
      const { codes, problem } = readInput(text, model);
      if (problem) throw new Error(problem);
      const program = model.evaluate(codes),
        run = model.run(codes);
      return model.outputs.map((output) => {
        const { domain } = model.sops.get(output.sop);
        return {
          name: output.name,
          program: codes.map((_, p) => domain.text(program.codes.get(output.sop)[p])),
          model: codes.map((_, p) => domain.text(model.decode(output, run, p))),
        };
      });
    },
  };
}
