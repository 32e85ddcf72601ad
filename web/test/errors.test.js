import assert from "node:assert/strict";
import { test } from "node:test";
import { errorFromWire } from "../sdk/errors.js";
import * as sdk from "../sdk/index.js";
import { drain, MESSAGES, openClient } from "./support/peer.js";

const ours = { ...sdk };
const copy = await import("../sdk/errors.js?another-bundle");

const wire = (code, errorClass, more = {}) => ({
  code,
  class: errorClass,
  message: `about ${code}`,
  retryable: false,
  ...more,
});

test("each code becomes the class callers can catch, with its facts as fields", () => {
  const invalid = errorFromWire(wire("invalid_request", "client", { param: "seed" }));
  const denied = errorFromWire(
    wire("capability_denied", "client", { data: { capability: "chat" } }),
  );
  const data = { model: "m", requiredBytes: 9, availableBytes: 4 };
  const resource = errorFromWire(wire("resource_not_available", "capacity", { data }));
  assert.ok(invalid instanceof sdk.InvalidRequestError && invalid.param === "seed");
  assert.ok(denied instanceof sdk.CapabilityDeniedError && denied.capability === "chat");
  assert.ok(resource instanceof sdk.ResourceNotAvailableError);
  assert.deepEqual([resource.model, resource.requiredBytes, resource.availableBytes], ["m", 9, 4]);
});

test("what broke in the model or the engine is a StreamError, the rest a PlaitError", () => {
  for (const [code, errorClass] of [
    ["engine_crashed", "internal"],
    ["generation_failed", "model"],
  ]) {
    assert.ok(errorFromWire(wire(code, errorClass)) instanceof sdk.StreamError);
  }
  const full = errorFromWire(
    wire("queue_full", "capacity", { retryable: true, retryAfterMs: 500 }),
  );
  assert.equal(full.constructor, sdk.PlaitError);
  assert.deepEqual([full.class, full.retryable, full.retryAfterMs], ["capacity", true, 500]);
});

for (const name of [
  "PlaitError",
  "InvalidRequestError",
  "CapabilityDeniedError",
  "ResourceNotAvailableError",
  "StreamError",
  "StreamCancelledError",
]) {
  test(`${name}.isInstance knows errors of another copy of the package`, () => {
    const theirs = new copy[name]("x", "x");
    assert.equal(theirs instanceof ours[name], false);
    assert.equal(ours[name].isInstance(theirs), true);
    assert.equal(sdk.PlaitError.isInstance(theirs), true);
    assert.equal(theirs.name, name);
    for (const other of [null, undefined, 1, "x", {}, new Error("x")]) {
      assert.equal(ours[name].isInstance(other), false);
    }
  });
}

test("a parent is not an instance of its child", () => {
  assert.equal(sdk.StreamError.isInstance(new sdk.PlaitError("x", "x")), false);
  assert.equal(sdk.InvalidRequestError.isInstance(new sdk.StreamError("x", "x")), false);
});

test("a rejected stream throws the typed error and touches no other", async () => {
  const { client, socket } = await openClient();
  const [refused, other] = [1, 2].map(() => client.llm.chatStream({ messages: MESSAGES }));
  socket().say({
    type: "rejected",
    id: refused.id,
    error: wire("invalid_request", "client", { param: "messages" }),
  });
  const { error } = await drain(refused);
  assert.deepEqual([error.code, error.param], ["invalid_request", "messages"]);
  assert.equal(refused.state, "errored");
  assert.equal((await refused.done).error, error);
  assert.equal(other.state, "pending");
});

test("an error terminal carries its usage, and its data in camelCase", async () => {
  const { client, socket } = await openClient();
  const stream = client.llm.chatStream({ messages: MESSAGES });
  const data = { prompt_tokens: 900, limit: 512 };
  socket().say({
    type: "error",
    id: stream.id,
    seq: 0,
    error: wire("context_overflow", "client", { data }),
    usage: { prompt_tokens: 900 },
  });
  const end = await stream.done;
  assert.deepEqual(end.usage, { promptTokens: 900 });
  assert.deepEqual(end.error.data, { promptTokens: 900, limit: 512 });
});
