/** What the wire inspector remembers, and what it never shows. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, FrameLog, preview } from "../playground/frames.js";

/** @param {object} [fields] */
function frame(fields) {
  const message = { type: "item", id: 1, seq: 1, data: { content: "hello" } };
  return { direction: "in", type: "item", streamId: 1, bytes: 60, time: 5, message, ...fields };
}

test("history is bounded in frames, oldest first out", () => {
  const log = new FrameLog();
  for (let n = 0; n < 10_000; n += 1) log.add(frame());

  assert.ok(log.total <= 4000);
  assert.equal(log.shown.length, log.total);
  assert.equal(log.shown.at(-1)?.n, 10_000);
});

test("history is bounded in bytes", () => {
  const log = new FrameLog();
  for (let n = 0; n < 100; n += 1) log.add(frame({ bytes: 1024 * 1024 }));

  assert.ok(log.total <= 9);
});

test("a filter gives the same whether frames come before or after it", () => {
  const after = new FrameLog();
  const before = new FrameLog();
  before.filter(2, "WORLD");
  for (const log of [after, before]) {
    log.add(frame());
    log.add(frame({ streamId: 2, message: { data: { content: "world" } } }));
    log.add(frame({ streamId: 2 }));
  }
  after.filter(2, "WORLD");

  assert.equal(before.shown.length, 1);
  assert.deepEqual(before.shown, after.shown);
});

test("the connection's own frames can be seen alone", () => {
  const log = new FrameLog();
  log.add(frame());
  log.add(frame({ streamId: null, type: "welcome" }));

  log.filter("connection", "");

  assert.deepEqual(
    log.shown.map(({ type }) => type),
    ["welcome"],
  );
});

test("a paused log keeps nothing and counts what it missed", () => {
  const log = new FrameLog();
  log.paused = true;
  log.add(frame());

  assert.equal(log.total, 0);
  assert.equal(log.missed, 1);
});

test("secrets are neither shown nor copied", () => {
  const log = new FrameLog();
  log.add(frame({ message: { type: "welcome", resume_token: "s3cret", usage: { tokens: 3 } } }));

  const shown = `${describe(/** @type {any} */ (log.shown[0]))} ${log.asText()}`;

  assert.ok(!shown.includes("s3cret"));
  assert.ok(shown.includes('"tokens": 3'));
});

test("a binary frame shows its header in hex and in words", () => {
  const header = { kind: 1, flags: 2, id: 258, seq: 3, aux: 4 };
  const log = new FrameLog();
  log.add(frame({ type: "audio_out", message: undefined, header, bytes: 116 }));

  const shown = describe(/** @type {any} */ (log.shown[0]));

  assert.ok(shown.startsWith("01 01 02 00 02 01 00 00\n03 00 00 00 04 00 00 00"));
  assert.ok(shown.includes("payload  100 bytes"));
});

test("a frame of vectors previews where it begins, texts going up how many they are, an answer its fault", () => {
  const header = { kind: 3, flags: 0, id: 1, seq: 2, aux: 42 };
  const log = new FrameLog();
  log.add(frame({ type: "binary", message: undefined, header }));
  log.add(frame({ type: "input", message: { type: "input", id: 1, texts: ["a", "b"] } }));
  const error = { code: "input_too_long", message: "m" };
  log.add(frame({ message: { type: "item", id: 1, seq: 3, data: { index: 7, error } } }));

  assert.deepEqual(
    log.shown.map((row) => [row.type, preview(row)]),
    [
      ["rows", "from 42"],
      ["input", "2 texts"],
      ["item", "7 input_too_long"],
    ],
  );
});

test("a row previews an item's text and how a stream ended", () => {
  const said = (message) => preview(/** @type {any} */ ({ message, header: null }));

  assert.equal(said({ type: "item", data: { content: "a\n" } }), '"a\\n"');
  assert.equal(said({ type: "cancelled", by: "client", released: true, stop_ms: 3 }), "3 ms");
  assert.equal(said({ type: "cancelled", by: "slow", released: false }), "late, slow");
  assert.equal(said({ type: "rejected", error: { code: "queue_full" } }), "queue_full");
  assert.equal(said({ type: "accepted" }), "");
});

/** @param {object} [fields] */
function audio(fields) {
  const header = { kind: 2, flags: 0, id: 3, seq: 0, aux: 0 };
  const binary = { direction: "out", type: "binary", message: undefined, header, bytes: 116 };
  return frame({ ...binary, streamId: 3, ...fields });
}

test("audio going up with nothing of its stream between is one row, for a second", () => {
  const log = new FrameLog();
  for (let n = 0; n < 100; n += 1) {
    log.add(audio({ time: n * 20 }));
    log.add(frame());
  }
  const rows = log.shown.filter(({ type }) => type === "audio_in");
  assert.deepEqual(
    rows.map(({ count, bytes }) => [count, bytes]),
    [
      [51, 51 * 116],
      [49, 49 * 116],
    ],
  );
  assert.equal(preview(rows[0]), "×51");
  assert.match(describe(rows[0]), /payload {2}5100 bytes\nframes {3}51/);
});

test("its acknowledgements are a row of their own, with the newest in it", () => {
  const log = new FrameLog();
  const ack = (/** @type {number} */ bytes) =>
    frame({ streamId: 3, type: "input_ack", message: { type: "input_ack", id: 3, bytes } });
  for (let n = 1; n <= 3; n += 1) {
    log.add(audio());
    log.add(ack(100 * n));
  }
  log.add(frame({ streamId: 3 }));
  log.add(audio());
  assert.deepEqual(
    log.shown.map(({ type, count }) => [type, count]),
    [
      ["audio_in", 3],
      ["input_ack", 3],
      ["item", 1],
      ["audio_in", 1],
    ],
  );
  assert.match(log.asText(), /"bytes":300} ×3$/m);
});

test("another stream's audio, or a cleared log, begins another row", () => {
  const log = new FrameLog();
  log.add(audio());
  log.clear();
  log.add(audio());
  log.add(audio({ streamId: 5 }));
  assert.deepEqual(
    log.shown.map(({ count }) => count),
    [1, 1],
  );
});

test("a row that was forgotten is not gone on in", () => {
  const log = new FrameLog();
  log.add(audio());
  for (let n = 0; n < 5000; n += 1) log.add(frame());
  log.add(audio());
  assert.equal(log.shown.at(-1)?.type, "audio_in");
  assert.equal(log.shown.at(-1)?.count, 1);
});

test("a segment's text and an event are seen in their row", () => {
  const item = (/** @type {object} */ data) => frame({ message: { type: "item", data } });
  const log = new FrameLog();
  log.add(item({ segment: { index: 0, text: "Ask not" } }));
  log.add(item({ event: "speech_started", at: 1 }));
  assert.deepEqual(log.shown.map(preview), ['"Ask not"', "speech_started"]);
});
