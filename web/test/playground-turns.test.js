/** What the moments of a turn amount to: stages, lanes, receipts. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  answeredAfterMs,
  endingOf,
  lanesOf,
  spanOf,
  splitHeard,
  stagesOf,
  stopTimesOf,
  withdrawnText,
} from "../playground/turn-stages.js";

const TIMES = {
  speechStarted: 1000,
  speechStopped: 2000,
  transcribed: 2700,
  firstToken: 2800,
  lastToken: 3300,
  firstAudio: 3000,
  firstHeard: 3100,
};
const PROOF = { by: "client", released: true, stopMs: 12, wasted: null, usage: null };
const CUT = { by: "talk", heardMs: 1830, heard: "A river is", chat: PROOF, speech: PROOF };

function turn(times = {}, part = {}) {
  return /** @type {any} */ ({
    state: "speaking",
    written: "",
    chatId: 5,
    speechId: 6,
    interruption: null,
    withdrawn: [],
    error: null,
    times: { ...TIMES, ...times },
    ...part,
  });
}

const words = ({ parts }) => parts.map(({ text }) => text).join(" · ");

test("the silence that ends a turn is told from the transcription after it", () => {
  assert.deepEqual(stagesOf(turn({ ended: 6100 }), 600), {
    spoke: 1000,
    wait: 600,
    transcription: 100,
    token: 100,
    sound: 300,
    answer: 1100,
    speaking: 3000,
  });
});

test("a stage that is not over has no figure", () => {
  const hearing = turn({}, { times: { speechStarted: 1000 } });

  assert.deepEqual(stagesOf(hearing, 600), {});
  assert.equal(answeredAfterMs(hearing), null);
});

test("each stream has a lane, which ends with the interruption and is marked where it was proved", () => {
  const cut = turn({ interrupted: 4000, chatStopped: 4012, speechReleased: 4009, ended: 4000 });
  delete cut.times.lastToken;

  const [you, chat, speech] = lanesOf(cut, 9000, 3);

  assert.deepEqual(you.bars, [
    { kind: "work", from: 0, to: 1000 },
    { kind: "wait", from: 1000, to: 1700 },
  ]);
  assert.deepEqual(chat.bars.at(-1), { kind: "work", from: 1800, to: 3000 });
  assert.deepEqual(speech.bars.at(-1), { kind: "work", from: 2100, to: 3000 });
  assert.deepEqual([you.cancelled, chat.cancelled, speech.cancelled], [null, 3012, 3009]);
  assert.deepEqual([you.streamId, chat.streamId, speech.streamId], [3, 5, 6]);
});

test("what is not over reaches until now, on a timeline that grows in steps", () => {
  const live = turn();

  assert.equal(lanesOf(live, 4000, 3)[2].bars.at(-1).to, 3000);
  assert.deepEqual(
    [spanOf(live, 3900), spanOf(live, 3999), spanOf(live, 4001)],
    [3000, 3000, 4000],
  );
});

test("what was heard is split from what was not, however the marks break its words", () => {
  assert.deepEqual(splitHeard("A  river\nis water.", CUT), ["A  river\nis", " water."]);
  assert.deepEqual(splitHeard("A river", null), ["A river", ""]);
  assert.deepEqual(splitHeard("A river", { ...CUT, heard: "" }), ["", "A river"]);
  assert.deepEqual(splitHeard("A river", { ...CUT, heard: "A river is water" }), ["A river", ""]);
});

test("the receipt of an interruption has the server's proofs, each with its stream", () => {
  const receipt = endingOf(turn({}, { interruption: CUT }));

  assert.equal(
    words(receipt),
    "interrupted after 1.83 s · chat stopped in 12 ms · speech stopped in 12 ms · released",
  );
  assert.equal(receipt.tone, "good");
  assert.deepEqual(
    receipt.parts.map(({ streamId }) => streamId),
    [null, 5, 6, null],
  );
});

test("a stream that had ended needs no proof, one that is late is said to be", () => {
  const late = { ...CUT, by: "app", heardMs: 0, chat: null, speech: { ...PROOF, released: false } };

  const receipt = endingOf(turn({}, { interruption: late }));

  assert.equal(
    words(receipt),
    "stopped before it was heard · speech stopped in 12 ms · not confirmed within 100 ms",
  );
  assert.equal(receipt.tone, "warn");
  assert.deepEqual(stopTimesOf(late), ["late"]);
});

test("an answer that was taken back is told with its proofs", () => {
  assert.equal(withdrawnText(turn()), "");
  assert.equal(
    withdrawnText(turn({}, { withdrawn: [CUT, { ...CUT, speech: null }] })),
    "you went on, so the answer was taken back (2 times) · chat stopped in 12 ms",
  );
});

test("a moment that is told late draws nothing before its turn", () => {
  const [you] = lanesOf(turn({ speechStopped: 900 }), 9000, 3);

  assert.deepEqual(you.bars[0], { kind: "work", from: 0, to: 0 });
  assert.equal(you.bars[1].from, 0);
});

test("a receipt has its place from the interruption on, and a failure has its reason", () => {
  assert.equal(words(endingOf(turn())), "");
  assert.equal(words(endingOf(turn({ interrupted: 4000 }))), "interrupted");
  assert.equal(words(endingOf(turn({}, { error: new Error("It broke.") }))), "It broke.");
});
