/**
 * The echo guard: a room, a loudspeaker and a user, mixed here from speech; what is played must never pass for
 * the user, and the user must be heard through it. Then which words of a segment are the user's.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { EchoGuard } from "../sdk/echo-guard.js";
import { EchoModel } from "../sdk/echo-model.js";
import { EchoTap } from "../sdk/echo-worklet.js";
import { chance, echoed, level, mixed, voice } from "./support/room.js";

const RATE = 8_000;

/** Runs a room through worklet, model and guard; when the user was said to begin to talk. */
function talks(played, mic, rate = RATE) {
  const [tap, model, guard] = [new EchoTap(rate), new EchoModel(), new EchoGuard()];
  const moments = [];
  for (let at = 0; at + 128 <= mic.length; at += 128) {
    tap.take(mic.subarray(at, at + 128), played.subarray(at, at + 128), 128, at, (block) => {
      if (guard.note(model.judge(block))) moments.push(block.time);
    });
  }
  return moments;
}

const joined = (...parts) => Float32Array.from(parts.flatMap((part) => [...part]));
const PLAYED = level(voice("answer"), 0.08);
const TALK = voice("user");
const AT = 4;

for (const [delayMs, gain] of [
  [10, 1],
  [60, 0.5],
  [150, 0.25],
  [250, 0.1],
]) {
  test(`the answer's own sound is nobody, ${delayMs} ms late at ${gain} of its loudness`, () => {
    const echo = echoed(PLAYED, delayMs, gain, RATE);
    assert.deepEqual(talks(PLAYED, mixed(echo)), []);
  });

  test(`a user as loud as the echo is heard within 150 ms, ${delayMs} ms late at ${gain}`, () => {
    const echo = echoed(PLAYED, delayMs, gain, RATE);
    const user = level(TALK, Math.max(0.01, 0.08 * gain));
    const [moment] = talks(PLAYED, mixed(echo, user, AT * RATE));
    assert.ok(moment > AT && moment < AT + 0.15, `heard at ${moment}`);
  });
}

test("a user with headphones is heard at once: nothing of what is played comes back", () => {
  const silent = new Float32Array(PLAYED.length);
  const [moment] = talks(PLAYED, mixed(silent, level(TALK, 0.02), AT * RATE));
  assert.ok(moment > AT && moment < AT + 0.15, `heard at ${moment}`);
});

test("a loudspeaker that is turned up is nobody", () => {
  const echo = echoed(PLAYED, 60, 0.2, RATE).map((sample, i) =>
    i > 3 * RATE ? 2 * sample : sample,
  );
  assert.deepEqual(talks(PLAYED, mixed(echo)), []);
});

test("another loudspeaker may pass for the user once, but is known to the next answer", () => {
  const pause = new Float32Array(RATE);
  const played = joined(PLAYED, pause, PLAYED);
  const [here, there] = [60, 65].map((ms) => echoed(played, ms, 0.4, RATE));
  const echo = here.map((sample, i) => (i < 3 * RATE ? sample : there[i]));
  assert.ok(talks(played, mixed(echo)).every((moment) => moment < PLAYED.length / RATE));
});

test("a loudspeaker that distorts is nobody", () => {
  const echo = echoed(PLAYED, 60, 0.5, RATE).map((sample) => Math.tanh(12 * sample) / 12);
  assert.deepEqual(talks(PLAYED, mixed(echo)), []);
});

test("what the browser's own canceller leaves over is nobody", () => {
  const random = chance(5);
  let gain = 0;
  const echo = echoed(PLAYED, 60, 1, RATE).map((sample, i) => {
    if (i % 800 === 0) gain = 0.01 + 0.15 * random();
    return gain * sample;
  });
  assert.deepEqual(talks(PLAYED, mixed(echo)), []);
});

test("blocks are 16 ms, at a device's own rate too, and end when they say", () => {
  for (const rate of [16_000, 44_100, 48_000]) {
    const tap = new EchoTap(rate);
    const times = [];
    for (let frame = 0; frame < rate; frame += 128) {
      tap.take(undefined, undefined, 128, frame, ({ time }) => times.push(time));
    }
    assert.ok(times.length >= 61 && times.length <= 69);
    assert.ok(Math.abs(times.at(-1) - 1) < 0.02);
  }
});

// Whose words they are.

const quiet = { level: 0, played: 0, explained: 0, near: false };

/** Sound is played from 1 s to 3 s; the user talks from `from` on. */
function guarded(from = Number.POSITIVE_INFINITY, to = 5) {
  const guard = new EchoGuard();
  for (let time = 0; time < 5; time += 0.016) {
    const played = time > 1 && time < 3 ? 0.1 : 0;
    guard.note({ ...quiet, time, played, near: time > from && time < to });
  }
  return guard;
}

const words = (list) => list.map(([text, start, end]) => ({ text, start, end }));

test("a segment that lies within the sound, and nobody talks, is nothing of the user's", () => {
  const segment = { text: "One two.", start: 1.1, end: 2.5 };
  assert.equal(guarded().usersText(segment), "");
  assert.equal(guarded(9).usersText({ ...segment, words: words([["One", 1.1, 1.5]]) }), "");
});

test("a segment before or after the sound is all the user's", () => {
  assert.equal(guarded().usersText({ text: "Hello.", start: 0.1, end: 0.9 }), "Hello.");
  assert.equal(guarded().usersText({ text: "Hello.", start: 4, end: 4.9 }), "Hello.");
});

test("of a segment that begins as echo and goes on as the user, the user's words are kept", () => {
  const segment = { text: "One two stop it.", start: 1.1, end: 3.2 };
  segment.words = words([
    ["One", 1.1, 1.4],
    [" two", 1.4, 1.7],
    [" stop", 2.1, 2.6],
    [" it.", 2.6, 3.2],
  ]);
  assert.equal(guarded(2.1).usersText(segment), "stop it.");
});

test("a user who spoke before the sound began keeps those words", () => {
  const segment = { text: "Well, one two", start: 0.3, end: 2 };
  segment.words = words([
    ["Well,", 0.3, 0.8],
    [" one", 1.2, 1.5],
    [" two", 1.5, 2],
  ]);
  assert.equal(guarded().usersText(segment), "Well,");
});

test("detected speech is the user's where nothing sounds, and where somebody talks", () => {
  const guard = new EchoGuard();
  guard.note({ ...quiet, time: 1, played: 0.1 });
  assert.equal(guard.users(0.9), false);
  for (let i = 0; i < 9; i += 1) guard.note({ ...quiet, time: 1.1 + i / 60, near: true });
  assert.equal(guard.users(0.9), true);
  assert.equal(guarded().users(4.5), true);
});

test("who fell silent before it began to sound is not who is detected then", () => {
  const guard = new EchoGuard();
  for (let i = 0; i < 9; i += 1) guard.note({ ...quiet, time: 1 + i * 0.016, near: true });
  for (let i = 9; i < 25; i += 1) guard.note({ ...quiet, time: 1 + i * 0.016, played: 0.1 });
  assert.equal(guard.users(1.2), false);
});

test("it forgets what no segment can be about any more", () => {
  const guard = new EchoGuard();
  for (let time = 0; time < 4000; time += 2) guard.note({ ...quiet, time, played: 0.1 });
  assert.equal(guard.usersText({ text: "Long ago.", start: 10, end: 11 }), "Long ago.");
});
