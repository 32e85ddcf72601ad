/** A store's frames: those of the page, and a clock where a page gets none. */

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";

import { nextFrame, Store } from "../react/store.js";
import { Frames } from "./support/stage.js";

/** A page whose frames come when told. */
function page(t) {
  const frames = new Map();
  globalThis.requestAnimationFrame = (callback) => {
    frames.set(1, callback);
    return 1;
  };
  globalThis.cancelAnimationFrame = (frame) => frames.delete(frame);
  t.after(() => {
    delete globalThis.requestAnimationFrame;
    delete globalThis.cancelAnimationFrame;
  });
  return frames;
}

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

test("a frame of the page comes first, and then nothing is left", (t) => {
  const frames = page(t);
  const before = timers();
  let called = 0;
  nextFrame(() => (called += 1));
  assert.equal(timers(), before + 1);

  frames.get(1)();

  assert.deepEqual([called, frames.size, timers()], [1, 0, before]);
});

test("a hidden page, which gets no frames, goes by the clock", async (t) => {
  const frames = page(t);

  await new Promise((resolve) => nextFrame(() => resolve()));

  assert.equal(frames.size, 0);
});

test("what was taken back does not come", (t) => {
  const frames = page(t);
  const before = timers();

  nextFrame(() => assert.fail("came"))();

  assert.deepEqual([frames.size, timers()], [0, before]);
});

test("what waited for the frame is told with what is told at once, and only once", () => {
  const frames = new Frames();
  const store = new Store({ text: "", status: "queued" }, frames.schedule);
  const seen = [];
  store.subscribe(() => seen.push(store.get()));

  store.later(() => ({ text: "half" }));
  store.set({ status: "cancelled" });
  frames.next();

  assert.deepEqual(seen, [{ text: "half", status: "cancelled" }]);
});

test("what changes nothing is not told", () => {
  const frames = new Frames();
  const store = new Store({ text: "" }, frames.schedule);
  const before = store.get();
  store.subscribe(() => assert.fail("told"));

  store.later(() => ({ text: "" }));
  frames.next();

  assert.equal(store.get(), before);
});

test("the same listener twice is told twice, and each takes back its own", () => {
  const store = new Store({ n: 0 });
  let told = 0;
  const listener = () => (told += 1);
  const stop = store.subscribe(listener);
  store.subscribe(listener);

  stop();
  stop();
  store.set({ n: 1 });

  assert.equal(told, 1);
});
