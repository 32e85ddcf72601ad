/**
 * Playback on a fake audio context: what goes to the audio thread, what the server hears of it, and how it ends.
 * The thread's own logic is in playout.test.js; a real one plays in e2e.
 */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { preparePlayback } from "../sdk/index.js";
import { PlaybackClock } from "../sdk/playback-clock.js";
import { FakeContext, FakeNode } from "./support/audio.js";
import { openClient, settled } from "./support/peer.js";

const SECOND = Array.from({ length: 24_000 }, (_, i) => i % 100);
const part = (seconds) => SECOND.slice(0, seconds * 24_000);

async function playing({ context = new FakeContext(), options, ...request } = {}) {
  const fake = await openClient();
  const stream = fake.client.tts.synthesize({ text: "Hello.", ...request });
  const peer = fake.socket();
  const playback = stream.play(context, options);
  peer.beginSpeech(stream.id);
  const acks = () => peer.sent.filter(({ type }) => type === "ack").map(({ seq }) => seq);
  const node = () => FakeNode.made.at(-1);
  return { ...fake, stream, peer, playback, context, acks, node };
}

/** The same, with a chunk of half a second on its way to the ear. */
async function sounding(options) {
  const fake = await playing(options);
  fake.peer.audio(fake.stream.id, part(0.5));
  await settled();
  fake.node().report({ time: 1, position: 0 });
  return fake;
}

test("chunks go to the audio thread at once, as copies, with their rate", async () => {
  const { peer, stream, node, playback } = await playing();
  const chunks = [];
  playback.on("chunk", (chunk) => chunks.push(chunk));
  peer.audio(stream.id, [1, 2, 3]);
  peer.audio(stream.id, [4]);
  await settled();
  assert.deepEqual(
    node().posted.map(({ samples }) => [...samples]),
    [[1, 2, 3], [4]],
  );
  assert.equal(node().options.processorOptions.sourceRate, 24_000);
  assert.equal(node().destination.name, "speakers");
  assert.deepEqual([...chunks[0].samples], [1, 2, 3]);
  assert.notEqual(chunks[0].samples.buffer, node().posted[0].samples.buffer);
});

test("the server hears what was played, not what was taken", async () => {
  const { peer, stream, node, acks } = await playing({ window: 4 });
  for (let i = 0; i < 4; i += 1) peer.audio(stream.id, part(0.25));
  await settled();
  assert.equal(node().posted.length, 4);
  assert.deepEqual(acks(), []);
  node().report({ position: 0.2 * 24_000 });
  assert.deepEqual(acks(), [1]); // 0.2 s and the 0.12 s that lie ready anyway
  node().report({ position: 0.7 * 24_000 });
  assert.deepEqual(acks(), [1, 3]);
});

test("a window of one item, or items smaller than the start buffer, do not stall", async () => {
  const { peer, stream, acks } = await playing({ window: 1, marks: true });
  peer.mark(stream.id, { text: "Hello.", start: 0, end: 1, words: [] });
  peer.audio(stream.id, part(0.05));
  await settled();
  peer.audio(stream.id, part(0.05));
  await settled();
  assert.deepEqual(acks(), [1, 2, 3]);
});

test("where shortages make it wait for more, the server is asked for that much", async () => {
  const { peer, stream, node, acks } = await playing({ window: 1 });
  peer.audio(stream.id, part(0.3));
  await settled();
  node().report({ position: 7_200, moving: false, underruns: 3, startSamples: 24_000 });
  for (const seq of [2, 3, 4]) {
    peer.audio(stream.id, part(0.3));
    await settled();
    assert.equal(acks().at(-1), seq);
  }
});

test("heardMs is by the audio clock, less what is still on its way to the ear", async () => {
  const { node, context, playback } = await sounding();
  context.currentTime = 1.01;
  assert.equal(playback.heardMs, 0);
  node().report({ time: 1.1, position: 2_400 });
  context.currentTime = 1.1;
  assert.ok(Math.abs(playback.heardMs - 50) < 1e-6);
  context.currentTime = 1.25;
  assert.ok(Math.abs(playback.heardMs - 200) < 1e-6);
});

test("it is finished when the last sample has reached the ear", async () => {
  const { peer, stream, node, playback, time } = await sounding();
  peer.done(stream.id);
  await settled();
  assert.deepEqual(node().posted.at(-1), { end: true });
  node().report({ time: 1.5, position: 12_000, moving: false, finished: true });
  await settled();
  assert.equal(playback.state, "playing");
  time.advance(50);
  await playback.finished;
  assert.deepEqual([playback.state, playback.heardMs], ["finished", 500]);
  assert.equal(node().destination, null);
});

test("speech without any audio is finished at its end", async () => {
  const { peer, stream, playback } = await playing();
  peer.done(stream.id);
  await playback.finished;
  assert.deepEqual([playback.state, playback.heardMs], ["finished", 0]);
});

test("stop() silences at once, cancels with what was heard, and answers with the proof", async () => {
  const { peer, stream, node, context, playback } = await sounding();
  context.currentTime = 1.25;
  const proof = playback.stop();
  assert.deepEqual(node().posted.at(-1), { stop: true });
  const { heard_ms, type } = peer.sent.at(-1);
  assert.equal(type, "cancel");
  assert.ok(Math.abs(heard_ms - 200) < 1e-6);
  peer.cancelled(stream.id, "client", { heard: "Hel" });
  assert.equal((await proof).heard, "Hel");
  await playback.finished;
  context.currentTime = 9;
  assert.ok(Math.abs(playback.heardMs - 200) < 1e-6);
});

test("cancelling the stream stops its playback, with what it heard", async () => {
  const { peer, stream, node, context, playback } = await sounding();
  context.currentTime = 1.25;
  stream.cancel();
  assert.ok(Math.abs(peer.sent.at(-1).heard_ms - 200) < 1e-6);
  assert.deepEqual(node().posted.at(-1), { stop: true });
  await playback.finished;
  assert.equal(playback.state, "stopped");
});

test("an abort silences in the same tick and rejects with its reason", async () => {
  const controller = new AbortController();
  const { peer, node, playback } = await sounding({ signal: controller.signal });
  controller.abort();
  assert.deepEqual(node().posted.at(-1), { stop: true });
  assert.equal(peer.sent.at(-1).type, "cancel");
  await assert.rejects(playback.finished, { name: "AbortError" });
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
});

test("K03: speeches that are played wait for one signal with one listener, and leave none", async () => {
  const { signal } = new AbortController();
  const playbacks = [];
  for (let i = 0; i < 12; i += 1) playbacks.push((await sounding({ signal })).playback);
  assert.equal(getEventListeners(signal, "abort").length, 1);
  for (const playback of playbacks) void playback.stop();
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("an abort after the server's last word still silences what is queued", async () => {
  const controller = new AbortController();
  const { peer, stream, node, playback } = await sounding({ signal: controller.signal });
  peer.done(stream.id);
  await settled();
  controller.abort();
  assert.deepEqual(node().posted.at(-1), { stop: true });
  await assert.rejects(playback.finished, { name: "AbortError" });
  assert.equal(peer.types(stream.id).includes("cancel"), false);
});

test("a failure is told after what had arrived was heard", async () => {
  const { peer, node, playback, time } = await sounding();
  peer.drop();
  await settled();
  assert.deepEqual(node().posted.at(-1), { end: true });
  assert.equal(playback.state, "playing");
  node().report({ time: 1.5, position: 12_000, moving: false, finished: true });
  time.advance(50);
  await assert.rejects(playback.finished, { code: "connection_lost" });
  assert.deepEqual([playback.state, playback.heardMs], ["failed", 500]);
});

test("a source that fails silences, and finished rejects with its reason", async () => {
  const reason = new RangeError("out of ink");
  let fail = () => {};
  const text = {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise((_, reject) => (fail = reject)) }),
  };
  const { node, playback } = await sounding({ text });
  fail(reason);
  await assert.rejects(playback.finished, reason);
  assert.deepEqual(node().posted.at(-1), { stop: true });
});

async function blocked() {
  const context = new FakeContext();
  context.state = "suspended";
  const fake = await playing({ context });
  const states = [];
  fake.playback.on("state", ({ state }) => states.push(state));
  return { ...fake, states };
}

test("L01: a context that stays silent is said to be blocked; nothing is lost when it starts", async () => {
  const { peer, stream, context, playback, states, time, node } = await blocked();
  peer.audio(stream.id, part(0.5));
  await settled();
  assert.equal(context.resumed, 1);
  time.advance(400);
  assert.deepEqual(states, ["blocked"]);
  await playback.resume();
  context.become("running");
  assert.deepEqual(states, ["blocked", "waiting"]);
  assert.equal(node().posted[0].samples.length, 12_000);
  node().report({ time: 1, position: 0 });
  assert.equal(playback.state, "playing");
});

test("L01: a context that only needs a moment to start is never called blocked", async () => {
  const { context, states, time } = await blocked();
  time.advance(200);
  context.become("running");
  time.advance(1_000);
  assert.deepEqual(states, []);
});

test("a blocked playback shows the server that somebody is there, item by item", async () => {
  const { peer, stream, acks, time } = await blocked();
  for (let i = 0; i < 5; i += 1) peer.audio(stream.id, part(0.3));
  await settled();
  time.advance(400);
  assert.deepEqual(acks(), []);
  time.advance(10_000);
  assert.deepEqual(acks(), [1]);
  for (let i = 0; i < 2; i += 1) {
    peer.say({ type: "pong", n: i }); // else the connection would be given up
    time.advance(10_000);
  }
  assert.deepEqual(acks(), [1, 2, 3]);
});

test("a stopped playback leaves no timer and no listener behind", async () => {
  const { playback, context, time } = await blocked();
  time.advance(400);
  const before = time.pending;
  playback.stop();
  assert.equal(time.pending, before - 1);
  assert.equal(getEventListeners(context, "statechange").length, 0);
});

test("a context that is closed under it fails the playback and stops the stream", async () => {
  const { peer, context, playback } = await sounding();
  context.become("closed");
  await assert.rejects(playback.finished, /AudioContext was closed/);
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("a module that does not load says what to serve, and stops the stream", async () => {
  const context = new FakeContext();
  context.noModule = true;
  const { peer, stream, playback } = await playing({
    context,
    options: { workletUrl: "/elsewhere.js" },
  });
  peer.audio(stream.id, [1]);
  await assert.rejects(playback.finished, /\/elsewhere\.js.*workletUrl/);
  assert.equal(playback.state, "failed");
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("a context loads the module once, from beside the SDK unless told otherwise", async () => {
  const context = new FakeContext();
  await playing({ context });
  await playing({ context });
  assert.equal(context.loads.length, 1);
  assert.match(context.loads[0], /sdk\/playout-worklet\.js$/);
});

test("the page's own context is one, and rests when nobody has played for a while", async () => {
  const made = [];
  globalThis.AudioContext = class extends FakeContext {
    suspended = 0;
    constructor() {
      super();
      made.push(this);
    }
    async suspend() {
      this.suspended += 1;
    }
  };
  const { client, socket, time } = await openClient();
  const play = () => client.tts.synthesize({ text: "a" }).play();
  const [first, second] = [play(), play()];
  first.stop();
  time.advance(9_000);
  second.stop();
  socket().say({ type: "pong", n: 0 }); // else the connection would be given up
  time.advance(9_000);
  const third = play();
  socket().say({ type: "pong", n: 1 });
  time.advance(9_000);
  assert.deepEqual([made.length, made[0].suspended], [1, 0]);
  third.stop();
  socket().say({ type: "pong", n: 2 });
  time.advance(10_000);
  assert.equal(made[0].suspended, 1);
  delete globalThis.AudioContext;
});

test("a player can be prepared before it is needed", async () => {
  const context = new FakeContext();
  await preparePlayback(context);
  await playing({ context });
  assert.equal(context.loads.length, 1);
  context.noModule = true;
  await assert.rejects(preparePlayback(context, { workletUrl: "/no.js" }), /\/no\.js/);
});

test("an audio thread that fails ends the playback and the stream", async () => {
  const { node, playback, peer } = await sounding();
  node().onprocessorerror();
  await assert.rejects(playback.finished, /audio thread failed/);
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("a stream is played, or read, once", async () => {
  const { stream, context } = await playing();
  assert.throws(() => stream.play(context), /already being read/);
  await assert.rejects(stream.toWav(), /already being read/);
});

test("shortages are counted", async () => {
  const { node, playback } = await sounding();
  node().report({ time: 2, position: 12_000, moving: false, underruns: 1 });
  assert.deepEqual([playback.underruns, playback.state], [1, "waiting"]);
});

test("K04: playbacks that nobody looks at leave no unhandled rejection", async () => {
  const unhandled = [];
  const listener = (reason) => unhandled.push(reason);
  process.on("unhandledRejection", listener);
  const controller = new AbortController();
  const { peer } = await sounding({ signal: controller.signal });
  await sounding({ signal: controller.signal });
  peer.drop();
  controller.abort();
  await settled();
  process.off("unhandledRejection", listener);
  assert.deepEqual(unhandled, []);
});

test("the clock never runs past what was played, and stands where nothing moves", () => {
  const clock = new PlaybackClock();
  assert.equal(clock.positionAt(5, 24_000), 0);
  clock.note({ time: 1, position: 0, moving: true });
  clock.note({ time: 1.02, position: 480, moving: true });
  clock.note({ time: 1.03, position: 500, moving: false });
  assert.equal(clock.positionAt(0.5, 24_000), 0);
  assert.ok(Math.abs(clock.positionAt(1.01, 24_000) - 240) < 1e-6);
  assert.equal(clock.positionAt(1.025, 24_000), 500);
  assert.equal(clock.positionAt(9, 24_000), 500);
});
