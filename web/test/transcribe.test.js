/** Transcribe: what is asked, what a segment is, what is told at once, how it ends. Sources have their own files. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { InvalidRequestError, PlaitError } from "../sdk/index.js";
import { joined } from "../sdk/transcript.js";
import { drain, fakeClient, openClient, settled } from "./support/peer.js";

const SEGMENT = {
  index: 0,
  revision: 2,
  text: "Hello wor",
  stable: "Hello",
  start: 0,
  end: 0.9,
  is_final: false,
  lag_ms: 180,
};
const FINAL = {
  index: 0,
  revision: 3,
  text: "Hello world.",
  start: 0,
  end: 1.1,
  is_final: true,
  lag_ms: 250,
};

/** Samples that come until nobody wants more of them. */
function endless() {
  const state = { asked: 0, returned: 0 };
  const next = async () => {
    state.asked += 1;
    return { value: new Int16Array(160), done: false };
  };
  const end = async () => {
    state.returned += 1;
    return { value: undefined, done: true };
  };
  return { state, [Symbol.asyncIterator]: () => ({ next, return: end }) };
}

async function openTranscription(request = {}) {
  const fake = await openClient();
  const source = [Int16Array.of(1, -2), Int16Array.of(3)];
  const stream = fake.client.transcribe.live({ source, sampleRate: 16_000, ...request });
  return { ...fake, stream, peer: fake.socket() };
}

test("the open says what the samples are", async () => {
  const { peer, stream } = await openTranscription();
  assert.deepEqual(peer.sent, [
    {
      type: "open",
      id: stream.id,
      method: "transcribe",
      params: { sample_rate: 16_000, channels: 1, encoding: "pcm_s16le" },
      window: 64,
    },
  ]);
});

test("params go as they are, options beside them, and what is the client's own stays here", async () => {
  const { peer } = await openTranscription({
    channels: 2,
    encoding: "pcm_f32le",
    language: "en",
    interim: false,
    words: true,
    events: true,
    prompt: "Plait",
    silenceMs: 700,
    maxSegmentSeconds: 20,
    speechThreshold: 0.4,
    model: "whisper-base",
    window: 8,
    deadlineMs: 60_000,
    priority: "batch",
    workletUrl: "/w.js",
    context: undefined,
  });
  const { params, window, deadline_ms, priority } = peer.sent[0];
  assert.deepEqual([window, deadline_ms, priority], [8, 60_000, "batch"]);
  assert.deepEqual(params, {
    language: "en",
    interim: false,
    words: true,
    events: true,
    prompt: "Plait",
    silence_ms: 700,
    max_segment_seconds: 20,
    speech_threshold: 0.4,
    model: "whisper-base",
    sample_rate: 16_000,
    channels: 2,
    encoding: "pcm_f32le",
  });
});

test("audio goes up, then its end, once there is room", async () => {
  const { peer, stream } = await openTranscription();
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open"]);
  peer.beginTranscription(stream.id);
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open", "audio_in", "audio_in", "end"]);
  assert.deepEqual([...peer.heard(stream.id)], [1, 0, 254, 255, 3, 0]);
  const { seq, aux, flags } = peer.sent[1];
  assert.deepEqual([seq, aux, flags], [0, 0, 0]);
});

test("segments come as they are revised, in camelCase, and the iteration ends with done", async () => {
  const { peer, stream } = await openTranscription();
  peer.beginTranscription(stream.id);
  peer.segment(stream.id, SEGMENT);
  peer.segment(stream.id, {
    ...FINAL,
    words: [{ text: "Hello", start: 0, end: 0.5 }],
    language: "en",
  });
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  assert.equal(error, null);
  const { is_final, lag_ms, ...same } = SEGMENT;
  assert.deepEqual(items[0], { ...same, isFinal: false, lagMs: 180 });
  assert.deepEqual([items[1].isFinal, items[1].language], [true, "en"]);
  assert.deepEqual(items[1].words, [{ text: "Hello", start: 0, end: 0.5 }]);
  assert.equal((await stream.done).state, "completed");
});

test("speech events are told when they arrive, though segments before them wait for the reader", async () => {
  const { peer, stream } = await openTranscription({ events: true });
  const told = [];
  stream.on("speech", (event) => told.push(event));
  peer.beginTranscription(stream.id);
  peer.event(stream.id, "speech_started", 0.5);
  peer.segment(stream.id, FINAL);
  peer.event(stream.id, "speech_stopped", 1.2);
  assert.deepEqual(told, [
    { type: "started", at: 0.5 },
    { type: "stopped", at: 1.2 },
  ]);
  peer.done(stream.id);
  assert.deepEqual((await drain(stream)).items.length, 1);
});

test("events are items of the window: with one of 1 nothing stalls", async () => {
  const { peer, stream } = await openTranscription({ events: true, window: 1 });
  peer.beginTranscription(stream.id);
  peer.event(stream.id, "speech_started", 0.5);
  assert.deepEqual(peer.sent.at(-1), { type: "ack", id: stream.id, seq: 1 });
  peer.event(stream.id, "something newer", 0.6);
  assert.deepEqual(peer.sent.at(-1), { type: "ack", id: stream.id, seq: 2 });
  peer.segment(stream.id, FINAL);
  const { value } = await stream[Symbol.asyncIterator]().next();
  assert.equal(value.text, "Hello world.");
});

test("an item that is neither segment nor event breaks the protocol", async () => {
  const { peer, stream } = await openTranscription();
  peer.beginTranscription(stream.id);
  peer.items(stream.id, "chat?");
  assert.equal((await drain(stream)).error.code, "protocol_error");
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("nothing is told after the consumer left", async () => {
  const { peer, stream } = await openTranscription({ events: true });
  const told = [];
  stream.on("speech", (event) => told.push(event));
  peer.beginTranscription(stream.id);
  stream.cancel();
  peer.event(stream.id, "speech_started", 0.5);
  peer.cancelled(stream.id);
  assert.deepEqual(told, []);
});

test("on() refuses what there is not, and can be taken back", async () => {
  const { peer, stream } = await openTranscription({ events: true });
  assert.throws(() => stream.on("words", () => {}), /speech, level, input/);
  const told = [];
  const off = stream.on("speech", (event) => told.push(event));
  peer.beginTranscription(stream.id);
  off();
  peer.event(stream.id, "speech_started", 0.5);
  assert.deepEqual(told, []);
});

test("E05: stopInput is a half-close: the source is let go, and what was said still comes", async () => {
  const source = endless();
  const { peer, stream } = await openTranscription({ source });
  peer.beginTranscription(stream.id, 640);
  await settled();
  stream.stopInput();
  stream.stopInput();
  await settled();
  const types = peer.types(stream.id);
  assert.deepEqual(types, ["open", "audio_in", "audio_in"]); // a third waits for room, and is not lost
  assert.equal(source.state.returned, 1);
  peer.say({ type: "input_ack", id: stream.id, bytes: 640, window_bytes: 640 });
  await settled();
  assert.deepEqual(peer.types(stream.id).slice(3), ["audio_in", "end"]);
  peer.segment(stream.id, FINAL);
  peer.done(stream.id);
  assert.deepEqual((await drain(stream)).items.length, 1);
  assert.equal(source.state.returned, 1);
});

test("stopInput before there is room sends the end when there is", async () => {
  const { peer, stream } = await openTranscription({ source: endless() });
  stream.stopInput();
  assert.equal(stream.input, "ended");
  peer.beginTranscription(stream.id);
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open", "end"]);
});

test("stopInput does not wait for a source that gives nothing", async () => {
  const source = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) };
  const { peer, stream } = await openTranscription({ source });
  peer.beginTranscription(stream.id);
  await settled();
  stream.stopInput();
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open", "end"]);
});

test("the state of the input is told as it changes", async () => {
  const { peer, stream } = await openTranscription();
  const states = [stream.input];
  stream.on("input", ({ state }) => states.push(state));
  peer.beginTranscription(stream.id);
  await settled();
  assert.deepEqual(states, ["waiting", "open", "ended"]);
  peer.done(stream.id);
  await drain(stream);
  assert.deepEqual(states, ["waiting", "open", "ended"]);
});

test("the level of samples is told as they are sent, block by block", async () => {
  const loud = new Int16Array(960).fill(16_384, 0, 480);
  const { peer, stream } = await openTranscription({
    source: [loud.subarray(0, 301), loud.subarray(301)],
  });
  const levels = [];
  stream.on("level", (level) => levels.push(level));
  peer.beginTranscription(stream.id);
  await settled();
  assert.deepEqual(levels, [
    { rms: 0.5, peak: 0.5, at: 0.03 },
    { rms: 0, peak: 0, at: 0.06 },
  ]);
  assert.equal(stream.sentMs, 60);
});

test("cancel sends the frame at once, stops the reading, and answers with the proof", async () => {
  const source = endless();
  const { peer, stream } = await openTranscription({ source });
  peer.beginTranscription(stream.id, 640);
  await settled();
  const proof = stream.cancel();
  assert.deepEqual([peer.sent.at(-1).type, stream.state], ["cancel", "cancelled"]);
  peer.cancelled(stream.id, "client", { wasted: { audio_ms: 30 } });
  const { released, wasted } = await proof;
  assert.deepEqual([released, wasted], [true, { audioMs: 30 }]);
  await settled();
  assert.equal(source.state.returned, 1);
});

test("leaving the loop cancels on the wire and lets the source go", async () => {
  const source = endless();
  const { peer, stream } = await openTranscription({ source });
  peer.beginTranscription(stream.id, 640);
  peer.segment(stream.id, SEGMENT);
  for await (const _ of stream) break;
  await settled();
  assert.deepEqual([peer.sent.at(-1).type, source.state.returned], ["cancel", 1]);
});

test("K01: abort sends the cancel frame and leaves 'streaming' in the same tick", async () => {
  const controller = new AbortController();
  const { peer, stream } = await openTranscription({
    source: endless(),
    signal: controller.signal,
  });
  peer.beginTranscription(stream.id);
  const reading = drain(stream);
  controller.abort();
  assert.deepEqual([peer.sent.at(-1).type, stream.state], ["cancel", "cancelled"]);
  assert.equal((await reading).error.name, "AbortError");
});

test("K04: a signal that is already aborted sends nothing, and lets the source go", async () => {
  const { client, sockets } = fakeClient();
  const source = endless();
  const signal = AbortSignal.abort();
  const stream = client.transcribe.live({ source, sampleRate: 16_000, signal });
  assert.equal((await drain(stream)).error.name, "AbortError");
  await settled();
  assert.deepEqual([sockets.length, source.state.asked, source.state.returned], [0, 0, 1]);
  const file = new Blob(["RIFF"]);
  await assert.rejects(client.transcribe.file({ file, signal }), { name: "AbortError" });
});

test("K09: a lost connection throws after the segments that came, and never looks like an end", async () => {
  const source = endless();
  const { peer, stream } = await openTranscription({ source });
  peer.beginTranscription(stream.id);
  peer.segment(stream.id, SEGMENT);
  peer.drop();
  const { items, error } = await drain(stream);
  assert.deepEqual([items.length, error.code], [1, "connection_lost"]);
  await settled();
  assert.equal(source.state.returned, 1);
  const { partial } = await openTranscription().then(async ({ peer: other, stream: second }) => {
    other.beginTranscription(second.id);
    other.segment(second.id, SEGMENT);
    other.drop();
    return second.collect().catch((reason) => reason);
  });
  assert.equal(partial[0].text, "Hello wor");
});

const ENDINGS = {
  done: (peer, stream) => peer.done(stream.id),
  error: (peer, stream) =>
    peer.say({ type: "error", id: stream.id, seq: 0, error: { code: "internal", message: "m" } }),
  rejected: (peer, stream) =>
    peer.say({ type: "rejected", id: stream.id, error: { code: "queue_full", message: "m" } }),
  deadline: (peer, stream) => peer.cancelled(stream.id, "deadline"),
  cancel: (_, stream) => void stream.cancel(),
  break: (_, stream) => void stream[Symbol.asyncIterator]().return(),
};

for (const [name, end] of Object.entries(ENDINGS)) {
  test(`K03: a thousand transcriptions that end by ${name} leave no listener on one signal`, async () => {
    const { client, socket } = await openClient();
    const { signal } = new AbortController();
    for (let i = 0; i < 1000; i++) {
      const stream = client.transcribe.live({ source: [], sampleRate: 16_000, signal });
      assert.equal(getEventListeners(signal, "abort").length, 1);
      end(socket(), stream);
      assert.equal(getEventListeners(signal, "abort").length, 0);
    }
  });

  test(`a transcription that ends by ${name} lets its source go, once, and sends no more`, async () => {
    const source = endless();
    const { peer, stream } = await openTranscription({ source });
    if (name !== "rejected") peer.beginTranscription(stream.id, 640);
    await settled();
    end(peer, stream);
    const sent = peer.sent.length;
    peer.say({ type: "input_ack", id: stream.id, bytes: 640, window_bytes: 640 });
    await settled();
    assert.deepEqual([source.state.returned, peer.sent.length], [1, sent]);
    assert.equal(stream.input, "ended");
  });
}

test("K04: transcriptions nobody looks at, ended in every way, leave no unhandled rejection", async () => {
  const unhandled = [];
  const listener = (reason) => unhandled.push(reason);
  process.on("unhandledRejection", listener);
  const { client, socket } = await openClient();
  const ends = Object.values(ENDINGS);
  for (let i = 0; i < 200; i++) {
    const controller = new AbortController();
    const request = { sampleRate: 16_000, signal: controller.signal };
    const stream = client.transcribe.live({ source: endless(), ...request });
    if (i % 2 === 0) socket().beginTranscription(stream.id, 640);
    if (i % 7 === 6) controller.abort();
    else ends[i % ends.length](socket(), stream);
    client.transcribe.live({ source: new Blob([]) });
    await settled();
  }
  socket().drop();
  await settled();
  process.off("unhandledRejection", listener);
  assert.deepEqual(unhandled, []);
});

test("a server that gives no room for audio is said so, not waited for", async () => {
  const { peer, stream } = await openTranscription();
  peer.begin(stream.id);
  assert.equal((await drain(stream)).error.code, "protocol_error");
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("errors are typed as for chat, with what the server says beside them", async () => {
  const { peer, stream } = await openTranscription();
  peer.beginTranscription(stream.id);
  const error = { code: "invalid_audio", class: "client", message: "a WAV header" };
  peer.say({ type: "error", id: stream.id, seq: 0, error });
  const thrown = (await drain(stream)).error;
  assert.ok(PlaitError.isInstance(thrown));
  assert.deepEqual([thrown.code, thrown.class], ["invalid_audio", "client"]);
});

test("E16: samples that do not say what they are, are refused before anything is sent", async () => {
  const { client, socket } = await openClient();
  for (const sampleRate of [undefined, null, 0, -1, "abc", Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(
      () => client.transcribe.live({ source: [], sampleRate }),
      (error) => InvalidRequestError.isInstance(error) && error.param === "sampleRate",
    );
  }
  for (const wrong of [{ channels: 3 }, { encoding: "opus" }]) {
    assert.throws(
      () => client.transcribe.live({ source: [], sampleRate: 16_000, ...wrong }),
      (error) => InvalidRequestError.isInstance(error) && error.param === Object.keys(wrong)[0],
    );
  }
  for (const source of [undefined, null, 5, {}]) {
    assert.throws(
      () => client.transcribe.live({ source, sampleRate: 16_000 }),
      (error) => InvalidRequestError.isInstance(error) && error.param === "source",
    );
  }
  assert.deepEqual(socket().sent, []);
});

test("a bad option lets the source go too", async () => {
  const { client } = await openClient();
  const source = endless();
  assert.throws(
    () => client.transcribe.live({ source, sampleRate: 16_000, window: 0 }),
    InvalidRequestError,
  );
  await settled();
  assert.equal(source.state.returned, 1);
});

test("the audio_in vectors of the wire are what is sent", async () => {
  const url = new URL("../../tests/vectors/plait.v1.json", import.meta.url);
  const vector = JSON.parse(readFileSync(url, "utf8")).binary.find(({ kind }) => kind === 2);
  const source = [Uint8Array.from(Buffer.from(vector.payload_hex, "hex"))];
  const { peer, stream } = await openTranscription({ source });
  peer.beginTranscription(stream.id);
  await settled();
  assert.equal(peer.heard(stream.id).toString("hex"), vector.payload_hex);
});

test("a transcript is its finals joined, as their language writes it", () => {
  const texts = (...parts) => parts.map((text) => ({ text }));
  assert.equal(joined(texts(" Hello there.", "", "How are you? ")), "Hello there. How are you?");
  assert.equal(joined(texts("今日は", "いい天気です。", "散歩")), "今日はいい天気です。散歩");
  assert.equal(joined(texts("日本", "and more")), "日本 and more");
  assert.equal(joined([]), "");
});
