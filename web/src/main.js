// The script of the page. It shows the model in the element `tracr-data`, if there is one; other pages call
// `tracr.mount(root, data)`. A gallery shows several models.

import { follow } from "./address.js";
import { choicesOf } from "./choices.js";
import { readInput } from "./core/input.js";
import { mount } from "./explorer.js";
import { mountGallery } from "./gallery.js";

const given = document.getElementById("tracr-data");
globalThis.tracr = { mount, mountGallery };
if (given) start(JSON.parse(given.textContent));

function start(data) {
  if (data.format === "tracr gallery") {
    globalThis.tracr.gallery = mountGallery(document.body, data);
    return;
  }
  const explorer = mount(document.body, data, { whole: true });
  const { state } = explorer.page;
  follow(explorer.page);
  explorer.page.compare = () => {
    const { patches } = choicesOf(state);
    const now = { ...data, input: state.tokens, patches: [] };
    explorer.remove();
    history.replaceState(null, "", "#");
    const pages = [now, { ...now, name: `${data.name}, patched`, patches }];
    globalThis.tracr.gallery = mountGallery(document.body, { name: `${data.name}, original and patched`, pages });
  };
  globalThis.tracr = { ...api(state.model, state), mount, mountGallery, update: explorer.update };
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
