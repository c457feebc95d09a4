import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, Refusal, fileName } from "../src/playground/api.js";

function answering(status, body, headers = {}) {
  const sent = [];
  const fetch = async (path, options) => {
    sent.push({ path, ...options });
    return new Response(body, { status, headers });
  };
  return { api: new Api(fetch, "tab1"), sent };
}

test("requests carry the tab and JSON", async () => {
  const { api, sent } = answering(200, '{"name": "y"}');
  assert.deepEqual(await api.compile({ source: "y = 1;" }), { name: "y" });
  assert.equal(sent[0].path, "/api/compile");
  assert.equal(sent[0].headers["X-Tracr-Tab"], "tab1");
  assert.deepEqual(JSON.parse(sent[0].body), { source: "y = 1;" });
});

test("a refusal has the message, the place and the hint", async () => {
  const error = { message: "no such name", line: 2, column: 5, hint: "write it" };
  const { api } = answering(422, JSON.stringify({ error }));
  await assert.rejects(api.compile({}), (refusal) => {
    assert.ok(refusal instanceof Refusal && refusal.retry === null && !refusal.stale);
    assert.deepEqual([refusal.message, refusal.line, refusal.column, refusal.hint], ["no such name", 2, 5, "write it"]);
    return true;
  });
});

test("a busy server names the seconds to wait; an answer that is not JSON still is a refusal", async () => {
  await assert.rejects(answering(503, "{}", { "Retry-After": "3" }).api.compile({}), { retry: 3 });
  await assert.rejects(answering(500, "<html>").api.compile({}), { message: "the server answered 500", retry: null });
});

test("a server that is gone is a refusal, an aborted request is not", async () => {
  const gone = new Api(() => Promise.reject(new TypeError("Failed to fetch")), "t");
  await assert.rejects(gone.compile({}), (refusal) => /does not answer/.test(refusal.message) && refusal.retry > 0);
  const aborted = new Api(() => Promise.reject(new DOMException("stop", "AbortError")), "t");
  await assert.rejects(aborted.compile({}), { name: "AbortError" });
});

test("downloads have a name without folders", async () => {
  const { api } = answering(200, "text", { "Content-Disposition": 'attachment; filename="../../sort.svg"' });
  const { name, blob } = await api.download({}, "svg");
  assert.equal(name, "sort.svg");
  assert.equal(await blob.text(), "text");
  assert.equal(fileName(null), null);
});
