// A twin: a trained transformer that computes the program of its teacher, a compiled model. Its dimensions have no
// labels, so only its outputs and its attention can be compared.

import { loadModel, Model } from "./model.js";
import { Transformer } from "./transformer.js";

/** The twin of a page: the teacher's program, vocabulary and outputs, run with the twin's weights. */
export class TwinModel extends Model {
  /** @param data the JSON of tracr/viz/explorer/gallery.py for a twin */
  constructor(data) {
    super(data.teacher);
    this.teacher = loadModel(data.teacher);
    this.twin = new Transformer(data.weights, { ...data, causal: data.teacher.causal });
    this.name = data.name;
    this.description = data.description;
    this.trained = data.trained;
    this.certificate = null;
    this.sizes = data.sizes;
  }

  run(tokens) {
    return this.twin.run([this.vocab.length, ...tokens]);
  }
}
