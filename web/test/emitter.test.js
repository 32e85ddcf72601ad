import assert from "node:assert/strict";
import { test } from "node:test";
import { Emitter } from "../sdk/emitter.js";

test("each subscription is its own, also of the same function", () => {
  const emitter = new Emitter(["a"]);
  const seen = [];
  const listener = (event) => seen.push(event);
  const [offFirst, offSecond] = [emitter.on("a", listener), emitter.on("a", listener)];
  offFirst();
  offFirst();
  emitter.emit("a", 1);
  offSecond();
  emitter.emit("a", 2);
  assert.deepEqual([seen, emitter.hears("a")], [[1], false]);
});

test("a listener that throws is reported and stops nobody", async () => {
  const emitter = new Emitter(["a"]);
  const seen = [];
  emitter.on("a", () => {
    throw new Error("listener's own");
  });
  emitter.on("a", (event) => seen.push(event));
  const reported = new Promise((resolve) =>
    process.setUncaughtExceptionCaptureCallback(resolve),
  ).finally(() => process.setUncaughtExceptionCaptureCallback(null));
  emitter.emit("a", 1);
  assert.deepEqual(seen, [1]);
  assert.equal((await reported).message, "listener's own");
});
