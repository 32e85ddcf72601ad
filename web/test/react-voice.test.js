/** The states behind useTranscription and useSpeech, over a peer in memory, a fake device and frames that come when told. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { leaseOf } from "../react/lease.js";
import { SpeechStore } from "../react/speech-store.js";
import { TranscriptionStore } from "../react/transcription-store.js";
import { FakeContext, FakeNode } from "./support/audio.js";
import { openClient, settled } from "./support/peer.js";
import { Frames } from "./support/stage.js";

const HALF_SECOND = Array.from({ length: 12_000 }, (_, i) => i % 100);

async function open(Kind, options) {
  const { client, socket } = await openClient();
  const frames = new Frames();
  const store = new Kind(leaseOf(client), options, frames.schedule);
  const leave = store.enter(leaseOf(client));
  const seen = [];
  store.subscribe(() => seen.push(store.get()));
  return { socket: socket(), frames, store, leave, seen };
}

/** Samples that never end, so a transcription goes on until it is stopped. */
function endless() {
  return { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) };
}

const segment = (index, text, more) => ({
  index,
  revision: 1,
  text,
  start: index,
  end: index + 1,
  is_final: true,
  lag_ms: 5,
  ...more,
});

async function listening(options) {
  const stage = await open(TranscriptionStore, options);
  stage.store.get().start(endless(), { sampleRate: 16_000 });
  stage.socket.beginTranscription(1);
  await settled();
  return stage;
}

test("segments replace each other by index and are one text", async () => {
  const { socket, store, frames } = await listening();

  socket.segment(1, segment(0, "Hello wor", { is_final: false }));
  socket.segment(1, segment(0, "Hello world.", { revision: 2 }));
  socket.segment(1, segment(1, "And", { is_final: false }));
  await settled();
  frames.next();

  assert.equal(store.get().text, "Hello world. And");
  assert.deepEqual(
    store.get().segments.map(({ isFinal }) => isFinal),
    [true, false],
  );
  assert.equal(store.get().status, "streaming");
});

test("speech is told at once, loudness beside the state", async () => {
  const { socket, store, frames, seen } = await open(TranscriptionStore);
  store.get().start([new Int16Array(4_800).fill(16_384)], { sampleRate: 16_000 });
  socket.beginTranscription(1);
  await settled();
  frames.next();
  const before = seen.length;

  assert.ok(Math.abs(store.get().level.get().rms - 0.5) < 0.01);
  assert.equal(seen.length, before);
  socket.event(1, "speech_started", 0.2);
  assert.equal(store.get().speaking, true);
  socket.event(1, "speech_stopped", 0.4);

  assert.equal(store.get().speaking, false);
  assert.equal(seen.length, before + 2);
});

test("stop lets what was said become final, then it is completed", async () => {
  const { socket, store } = await listening();

  store.get().stop();
  assert.equal(store.get().isListening, false);
  assert.equal(store.get().status, "streaming");
  await settled();
  assert.deepEqual(socket.types(1).slice(-1), ["end"]);
  socket.segment(1, segment(0, "Done."));
  socket.done(1);
  await settled();

  assert.deepEqual([store.get().status, store.get().text], ["completed", "Done."]);
  assert.equal(store.get().usage.promptTokens, 3);
});

test("cancel and leaving are on the wire in the same tick", async () => {
  const { socket, store, leave } = await listening();

  const proof = store.get().cancel();
  assert.deepEqual([socket.types(1).at(-1), store.get().status], ["cancel", "cancelled"]);
  socket.cancelled(1);
  assert.equal((await proof).released, true);

  store.get().start(endless(), { sampleRate: 16_000 });
  leave();
  assert.equal(socket.types(2).at(-1), "cancel");
});

test("listening anew stops the one before and begins with nothing", async () => {
  const { socket, store, frames } = await listening();
  socket.segment(1, segment(0, "Old."));
  await settled();
  frames.next();

  store.get().start(endless(), { sampleRate: 16_000 });
  socket.cancelled(1);
  await settled();

  assert.equal(socket.types(1).at(-1), "cancel");
  assert.deepEqual([store.get().text, store.get().status], ["", "queued"]);
});

test("a source that is none is an error, and nothing runs", async () => {
  const { store, socket } = await open(TranscriptionStore);

  store.get().start(endless());

  assert.equal(store.get().error.param, "sampleRate");
  assert.deepEqual([store.get().status, store.get().isListening], ["error", false]);
  assert.deepEqual(socket.sent, []);
});

test("a lost connection keeps what was heard and is an error", async () => {
  const { socket, store } = await listening();
  socket.segment(1, segment(0, "Half"));
  await settled();

  socket.drop();
  await settled();

  assert.deepEqual([store.get().status, store.get().text], ["error", "Half"]);
  assert.equal(store.get().error.retryable, true);
  store.get().reset();
  assert.deepEqual([store.get().status, store.get().text], ["idle", ""]);
});

async function speaking(options) {
  const context = new FakeContext();
  const stage = await open(SpeechStore, { context, ...options });
  stage.store.get().speak("Hello there.");
  stage.socket.beginSpeech(1);
  stage.socket.audio(1, HALF_SECOND);
  await settled();
  const node = FakeNode.made.at(-1);
  node.report({ time: 1, position: 0 });
  return { ...stage, context, node };
}

test("what was heard is measured once per frame, and only while it plays", async () => {
  const { store, frames, context, node, seen } = await speaking();
  assert.equal(store.get().state, "playing");
  const before = seen.length;

  context.currentTime = 1.25; // of which 50 ms are on their way to the ear
  frames.next();
  assert.ok(Math.abs(store.get().heardMs.get() - 200) < 1);
  assert.equal(seen.length, before);

  node.report({ time: 2, position: 12_000, moving: false });
  frames.next();
  assert.equal(frames.pending, 0);
});

test("stop is silent and on the wire in the same tick, and brings what was heard", async () => {
  const { store, socket, context, node, frames } = await speaking();
  context.currentTime = 1.3;

  const proof = store.get().stop();
  assert.deepEqual(node.posted.at(-1), { stop: true });
  assert.ok(Math.abs(socket.sent.at(-1).heard_ms - 250) < 1);
  assert.deepEqual([store.get().state, store.get().isSpeaking], ["stopped", false]);
  socket.cancelled(1, "client", { heard: "Hello" });

  assert.equal((await proof).heard, "Hello");
  assert.equal(store.get().heard, "Hello");
  assert.equal(frames.pending, 0);
  assert.equal(await store.get().stop(), null);
});

test("what it took is known when the server has said all of it, and gone with the next", async () => {
  const { store, socket } = await speaking();
  assert.equal(store.get().usage, undefined);

  socket.done(1);
  await settled();
  assert.deepEqual([store.get().usage.promptTokens, store.get().isSpeaking], [3, true]);

  store.get().speak("Else.");
  assert.equal(store.get().usage, undefined);
});

test("speaking anew stops the one before", async () => {
  const { store, socket, seen } = await speaking();

  store.get().speak("Else.");
  socket.cancelled(1, "client", { heard: "Hel" });
  await settled();

  assert.equal(socket.types(1).at(-1), "cancel");
  assert.deepEqual([store.get().state, store.get().heard], ["waiting", undefined]);
  assert.equal(seen.at(-1).isSpeaking, true);
});

test("leaving stops both: the speech, and the chat that it speaks", async () => {
  const { client, socket } = await openClient();
  const store = new SpeechStore(leaseOf(client), { context: new FakeContext() });
  const leave = store.enter(leaseOf(client));
  store.get().speak(client.llm.chatStream({ messages: [{ role: "user", content: "hi" }] }));
  await settled();
  socket().begin(1);
  socket().beginSpeech(2);

  leave();
  await settled();

  assert.equal(socket().types(1).at(-1), "cancel");
  assert.equal(socket().types(2).at(-1), "cancel");
});

test("what a handler asks for after its component has left is not done", async () => {
  const stages = await Promise.all([
    open(SpeechStore, { context: new FakeContext() }),
    open(TranscriptionStore, { sampleRate: 16_000 }),
  ]);
  for (const { leave } of stages) leave();
  await settled();

  stages[0].store.get().speak("Hello.");
  stages[1].store.get().start(endless());
  await settled();

  for (const { socket } of stages) assert.deepEqual(socket.sent, []);
});

test("speech that breaks has failed, with the reason", async () => {
  const { store, socket } = await open(SpeechStore, { context: new FakeContext() });
  store.get().speak("Hello.");
  socket.beginSpeech(1);

  socket.say({
    type: "error",
    id: 1,
    error: { code: "worker_crashed", class: "internal", message: "gone", retryable: true },
  });
  await settled();

  assert.deepEqual([store.get().state, store.get().isSpeaking], ["failed", false]);
  assert.equal(store.get().error.code, "worker_crashed");
});

test("where there is no audio device speech fails, and no stream stays behind", async () => {
  const { store, socket } = await open(SpeechStore);

  store.get().speak("Hello.");
  await settled();

  assert.deepEqual([store.get().state, store.get().isSpeaking], ["failed", false]);
  assert.ok(store.get().error instanceof Error);
  assert.equal(socket.types(1).at(-1), "cancel");
});
