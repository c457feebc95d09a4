// Runs a task again and again while its argument changes: after a pause, and only the newest counts.

export const PAUSE = 150; // milliseconds without a change before the task runs
export const SLOW = 300; // milliseconds after which the reader is told that the task is running

export class Live {
  /**
   * `run(value, signal)` is the task. `on` has the listeners: `slow()`, `done(result, value)`, `failed(error, value)`,
   * and `waiting(words)` when the task will run again because the server is busy. Nothing is heard of stale runs.
   */
  constructor(run, on) {
    this.run = run;
    this.on = on;
    this.number = 0;
  }

  /** Run the task soon. */
  request(value) {
    this.stop();
    this.timer = setTimeout(() => this.now(value), PAUSE);
  }

  /** Run the task without a pause. */
  async now(value) {
    this.stop();
    const number = this.number;
    const mine = (listener) => (number === this.number ? listener() : undefined);
    this.controller = new AbortController();
    const slow = setTimeout(() => mine(() => this.on.slow?.()), SLOW);
    try {
      const result = await this.run(value, this.controller.signal);
      mine(() => this.on.done(result, value));
    } catch (error) {
      mine(() => this.fail(error, value));
    } finally {
      clearTimeout(slow);
    }
  }

  fail(error, value) {
    if (error.name === "AbortError" || error.stale) return;
    const seconds = error.retry ?? null;
    if (seconds === null) return this.on.failed(error, value);
    this.on.waiting(`Waiting: ${error.message}. Trying again in ${seconds} s.`);
    this.timer = setTimeout(() => this.now(value), 1000 * seconds);
  }

  /** Forget what is waiting or running. */
  stop() {
    this.number += 1;
    clearTimeout(this.timer);
    this.controller?.abort();
  }
}
