// Plays the forward pass: component by component, step by step. Values travel along the wires, unless the reader asked
// for less motion.

import { travel } from "./view/travel.js";
import { sentence, stepsOf } from "./view/walk.js";

const PAUSE = 2400; // milliseconds between two steps

export class Player {
  constructor(page) {
    this.page = page;
    this.playing = false;
    page.signal.addEventListener("abort", () => clearInterval(this.timer));
  }

  get order() {
    return [...this.page.state.model.components].sort((a, b) => a.stage - b.stage || a.number - b.number);
  }

  /** A step forwards (1) or backwards (-1); false if there is none. */
  move(by) {
    const { state } = this.page;
    const { order } = this;
    let place = order.findIndex((part) => part.number === state.component);
    let step = place < 0 ? 1 : state.step + by;
    if (place < 0 || step < 1 || step > stepsOf(order[place])) {
      place += by;
      if (place < 0 || place >= order.length) return false;
      step = by > 0 ? 1 : stepsOf(order[place]);
    }
    const part = order[place];
    state.together(() => {
      if (state.component !== part.number) state.selectComponent(part.number);
      state.step = step;
    });
    if (step === 1) travel(this.page, part);
    this.page.say(sentence(state, part, step));
    return true;
  }

  /** Show another position. */
  at(position) {
    this.page.state.set("at", position);
  }

  toggle() {
    clearInterval(this.timer);
    this.playing = !this.playing;
    const { state } = this.page;
    if (this.playing) {
      const last = this.order.at(-1);
      if (state.component === last.number && state.step >= stepsOf(last)) state.component = null; // begin again
      this.timer = setInterval(() => this.tick(), PAUSE);
      this.tick();
    } else this.page.update();
  }

  tick() {
    if (!this.move(1)) this.toggle();
  }
}
