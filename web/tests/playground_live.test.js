import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Refusal } from "../src/playground/api.js";
import { Live, PAUSE, SLOW } from "../src/playground/live.js";

/** A Live whose runs are finished by hand, with a list of what was heard. */
function rig() {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  const runs = [],
    heard = [];
  const run = (value, signal) => new Promise((resolve, reject) => runs.push({ value, signal, resolve, reject }));
  const live = new Live(run, {
    slow: () => heard.push("slow"),
    waiting: (words) => heard.push(words),
    done: (result, value) => heard.push(`done ${value} ${result}`),
    failed: (error) => heard.push(`failed ${error.message}`),
  });
  return { live, runs, heard };
}

const settled = () => new Promise(setImmediate);

test("only the last of several quick changes runs, after a pause", async () => {
  const { live, runs, heard } = rig();
  for (const value of ["a", "ab", "abc"]) {
    live.request(value);
    mock.timers.tick(PAUSE - 1);
  }
  assert.equal(runs.length, 0);
  mock.timers.tick(1);
  assert.deepEqual(
    runs.map(({ value }) => value),
    ["abc"],
  );
  runs[0].resolve("x");
  await settled();
  assert.deepEqual(heard, ["done abc x"]);
});

test("a newer value aborts the older run, and nothing is heard of it", async () => {
  const { live, runs, heard } = rig();
  live.now("old");
  live.now("new");
  assert.ok(runs[0].signal.aborted && !runs[1].signal.aborted);
  runs[1].resolve(2);
  runs[0].resolve(1);
  await settled();
  assert.deepEqual(heard, ["done new 2"]);
});

test("a slow run says so once, a quick one never", async () => {
  const { live, runs, heard } = rig();
  live.now("quick");
  mock.timers.tick(SLOW - 1);
  runs[0].resolve(1);
  await settled();
  mock.timers.tick(SLOW);
  assert.deepEqual(heard, ["done quick 1"]);
  live.now("slow");
  mock.timers.tick(SLOW);
  assert.equal(heard.at(-1), "slow");
});

test("a busy server is asked again after the time it names, unless the value changed", async () => {
  const { live, runs, heard } = rig();
  const busy = () => new Refusal({ message: "busy" }, { status: 503, retryAfter: 2 });
  live.now("a");
  runs[0].reject(busy());
  await settled();
  assert.deepEqual(heard, ["Waiting: busy. Trying again in 2 s."]);
  mock.timers.tick(2000);
  assert.equal(runs[1].value, "a");
  runs[1].reject(busy());
  await settled();
  live.request("b");
  mock.timers.tick(5000);
  assert.deepEqual(
    runs.map(({ value }) => value),
    ["a", "a", "b"],
  );
});

test("errors are heard; aborted and stale runs are not", async () => {
  const { live, runs, heard } = rig();
  live.now("a");
  runs[0].reject(new Refusal({ message: "wrong" }, { status: 422 }));
  await settled();
  live.now("b");
  runs[1].reject(new Refusal({ message: "newer" }, { status: 409 }));
  await settled();
  assert.deepEqual(heard, ["failed wrong"]);
});
