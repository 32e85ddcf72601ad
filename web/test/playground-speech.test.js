/** What the Speak panel knows without a page: words and their times, peaks, voices, endings, an answer as text. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { endingOf, waitingText } from "../playground/ending.js";
import { Peaks } from "../playground/peaks.js";
import { begunBy, piecesOf } from "../playground/reading.js";
import { textOf } from "../playground/spoken.js";
import { detailsOf, greetingOf, groupsOf } from "../playground/voices.js";
import { describeVoice } from "../sdk/index.js";

const word = (text, start) => ({ text, start, end: start + 0.1 });

test("a mark's pieces joined are its text, and words know their times", () => {
  const text = "“Go, go!” 3 times. ";
  const words = [word("Go", 0), word("go", 0.2), word("3", 0.5), word("times", 0.8)];
  const pieces = piecesOf({ text, start: 0, end: 1, words });
  assert.equal(pieces.map((piece) => piece.text).join(""), text);
  assert.deepEqual(
    pieces.filter((piece) => piece.start !== undefined).map((piece) => [piece.text, piece.start]),
    words.map((one) => [one.text, one.start]),
  );
});

test("a word that is said otherwise than written leaves the text whole", () => {
  const words = [word("four", 0), word("apples", 0.3)];
  const pieces = piecesOf({ text: "4 apples", start: 0, end: 1, words });
  assert.deepEqual(
    pieces.map((piece) => piece.text),
    ["4 ", "apples"],
  );
  assert.deepEqual(piecesOf({ text: "😀", start: 0, end: 0 }), [{ text: "😀" }]);
});

test("the word being spoken is the last that has begun", () => {
  const words = [word("a", 0.1), word("b", 0.2), word("c", 0.2), word("d", 1)];
  assert.deepEqual(
    [0, 0.1, 0.15, 0.2, 0.99, 5].map((seconds) => begunBy(words, seconds)),
    [0, 1, 1, 3, 3, 4],
  );
  assert.equal(begunBy([], 1), 0);
});

test("peaks are the loudest of each hundredth of a second, however the audio was cut", () => {
  const samples = Int16Array.from({ length: 2_400 }, (_, i) => (i === 700 ? -16_384 : 0));
  for (const size of [1, 100, 240, 333, 2_400]) {
    const peaks = new Peaks();
    for (let at = 0; at < samples.length; at += size) {
      peaks.push(samples.subarray(at, at + size), 24_000);
    }
    assert.equal(peaks.seconds, 0.1);
    assert.deepEqual(
      [peaks.between(0, 0.02), peaks.between(0.02, 0.03), peaks.between(0.03, 0.2)],
      [0, 0.5, 0],
    );
  }
});

test("peaks of a long speech are kept from its beginning", () => {
  const peaks = new Peaks();
  peaks.push(Int16Array.of(32_767), 24_000);
  for (let second = 0; second < 60; second += 1) peaks.push(new Int16Array(24_000), 24_000);
  assert.ok(peaks.between(0, 0.01) > 0.99);
  assert.equal(peaks.between(30, 60), 0);
});

test("a voice's name is said as people do", () => {
  assert.equal(detailsOf(describeVoice("af_heart")), "American English, female");
  assert.equal(detailsOf(describeVoice("bm_george")), "British English, male");
  assert.deepEqual(
    [describeVoice("custom").name, detailsOf(describeVoice("custom"))],
    ["Custom", "Other"],
  );
  assert.match(greetingOf(describeVoice("ff_siwis")), /^Bonjour, je suis Siwis/);
  assert.deepEqual(
    groupsOf(["bf_emma", "af_heart", "bm_lewis"]).map(({ label, voices }) => [
      label,
      voices.map(({ name }) => name),
    ]),
    [
      ["British English", ["Emma", "Lewis"]],
      ["American English", ["Heart"]],
    ],
  );
});

const SPEECH = {
  kind: "speech",
  state: "cancelled",
  stream: { started: { model: "k" }, queue: null },
  items: 3,
  sentAt: 0,
  endedAt: 1,
  finishReason: null,
  slotBack: false,
  trouble: null,
};
const RECEIPT = { by: "client", released: true, stopMs: 14, wasted: { audioMs: 120 }, usage: {} };

test("a stopped speech says what the server said, in audio", () => {
  assert.deepEqual(endingOf({ ...SPEECH, receipt: RECEIPT }).parts, [
    "stopped in 14 ms",
    "120 ms of audio wasted",
    "slot released",
  ]);
  const over = { by: null, released: true, stopMs: 0, wasted: null, usage: {} };
  assert.deepEqual(endingOf({ ...SPEECH, receipt: over }).parts, [
    "silent",
    "all of it had been computed",
  ]);
});

test("a finished speech says how long it was and what computing it took", () => {
  const timing = { totalMs: 5_000, queuedMs: 500, pausedMs: 2_500 };
  const done = { ...SPEECH, state: "completed", receipt: null, usage: { audioMs: 6_000 }, timing };
  assert.deepEqual(endingOf(done).parts, ["spoke 6.00 s", "computed in 2.00 s"]);
  assert.deepEqual(endingOf({ ...done, usage: { audioMs: 0 } }).parts, [
    "done",
    "there was nothing to speak",
  ]);
});

test("a waiting speech says for what, and a lost one what is left", () => {
  assert.equal(
    waitingText({ ...SPEECH, state: "streaming", items: 0 }),
    "Computing the first sound…",
  );
  const stream = { started: null, queue: { phase: "queued", position: 1, etaMs: 3_000 } };
  assert.equal(
    waitingText({ ...SPEECH, state: "pending", stream }),
    "2nd in line · about 3 seconds",
  );
  const trouble = { code: "connection_lost", message: "m", lost: true };
  assert.match(endingOf({ ...SPEECH, trouble }).parts[0], /can be saved/);
});

function answer(fields) {
  return { state: "streaming", attempt: 0, text: "", listeners: [], ...fields };
}
function wake(chat, fields) {
  Object.assign(chat, fields);
  for (const resolve of chat.listeners.splice(0)) resolve();
}

test("an answer is text piece by piece while it is written, once and to its end", async () => {
  const chat = answer({ text: "One " });
  const text = textOf(chat)[Symbol.asyncIterator]();
  assert.equal((await text.next()).value, "One ");
  const next = text.next();
  await null;
  wake(chat, { text: "One more." });
  assert.equal((await next).value, "more.");
  const last = text.next();
  await null;
  wake(chat, { state: "completed" });
  assert.equal((await last).done, true);
});

test("A20: an answer that is stopped, fails or is asked again ends its speech", async () => {
  for (const fields of [{ state: "stopping" }, { state: "errored" }, { attempt: 1 }]) {
    const chat = answer({});
    const next = textOf(chat)[Symbol.asyncIterator]().next();
    await null;
    wake(chat, fields);
    await assert.rejects(next, { name: "AbortError" });
  }
});

test("an answer that is over is one text", () => {
  assert.equal(textOf(answer({ state: "completed", text: "All." })), "All.");
  assert.equal(textOf(answer({ state: "cancelled", text: "Half" })), "Half");
});
