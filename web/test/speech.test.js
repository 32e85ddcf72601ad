/** Synthesize: what goes out, what a chunk is, how it ends. Playback has its own file. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { InvalidRequestError, PlaitError } from "../sdk/index.js";
import { drain, fakeClient, openClient, settled } from "./support/peer.js";

async function openSpeech(request = {}) {
  const fake = await openClient();
  const stream = fake.client.tts.synthesize({ text: "Hello.", ...request });
  return { ...fake, stream, peer: fake.socket() };
}

const MARK = {
  text: "Hello. ",
  start: 0,
  end: 0.5,
  words: [{ text: "Hello", start: 0, end: 0.4 }],
};

test("a text and its voice are one open, with speech's own window", async () => {
  const { peer, stream } = await openSpeech({ voice: "af_heart", speed: 1.25, marks: true });
  assert.deepEqual(peer.sent, [
    {
      type: "open",
      id: stream.id,
      method: "synthesize",
      params: { text: "Hello.", voice: "af_heart", speed: 1.25, marks: true },
      window: 16,
    },
  ]);
});

test("stream options go beside the params, as for chat", async () => {
  const { peer } = await openSpeech({ window: 4, deadlineMs: 50, priority: "batch", model: "k" });
  const { window, deadline_ms, priority, params } = peer.sent[0];
  assert.deepEqual([window, deadline_ms, priority], [4, 50, "batch"]);
  assert.deepEqual(params, { text: "Hello.", model: "k" });
});

test("a chunk is the frame's own memory, aligned, with its place in the audio", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  peer.audio(stream.id, [1, -2, 3]);
  peer.audio(stream.id, [32767, -32768]);
  peer.done(stream.id);
  const { items } = await drain(stream);
  assert.deepEqual(
    items.map(({ samples, startSample, sampleRate }) => [[...samples], startSample, sampleRate]),
    [
      [[1, -2, 3], 0, 24_000],
      [[32767, -32768], 3, 24_000],
    ],
  );
  const [{ audioBytes, samples }] = items;
  assert.equal(samples.buffer, audioBytes.buffer);
  assert.equal(audioBytes.byteOffset, 16);
  assert.deepEqual([...audioBytes], [1, 0, 254, 255, 3, 0]);
});

test("a mark rides on the chunk it precedes, and several become one", async () => {
  const { peer, stream } = await openSpeech({ marks: true });
  peer.beginSpeech(stream.id);
  peer.mark(stream.id, MARK);
  peer.mark(stream.id, { text: "So. ", start: 0.5, end: 0.7, words: [] });
  peer.audio(stream.id, [1]);
  peer.audio(stream.id, [2]);
  peer.done(stream.id);
  const { items } = await drain(stream);
  assert.deepEqual(items[0].mark, {
    text: "Hello. So. ",
    start: 0,
    end: 0.7,
    words: MARK.words,
  });
  assert.equal("mark" in items[1], false);
});

test("a mark after the last audio comes as an empty chunk: the marks' texts joined are the input", async () => {
  const { peer, stream } = await openSpeech({ marks: true });
  peer.beginSpeech(stream.id);
  peer.audio(stream.id, [1, 2]);
  peer.mark(stream.id, { text: "😀", start: 0, end: 0 });
  peer.done(stream.id);
  const { items, error } = await drain(stream);
  assert.equal(error, null);
  assert.deepEqual([items[1].samples.length, items[1].startSample], [0, 2]);
  assert.equal(items[1].mark.text, "😀");
});

test("marks count as items of the window: with one of 1 nothing stalls", async () => {
  const { peer, stream } = await openSpeech({ marks: true, window: 1 });
  peer.beginSpeech(stream.id);
  const iterator = stream[Symbol.asyncIterator]();
  peer.mark(stream.id, MARK);
  assert.deepEqual(peer.sent.at(-1), { type: "ack", id: stream.id, seq: 1 });
  peer.audio(stream.id, [1]);
  await iterator.next();
  assert.deepEqual(peer.sent.at(-1), { type: "ack", id: stream.id, seq: 2 });
});

test("a mark is not acked before the chunk that lies before it was taken", async () => {
  const { peer, stream } = await openSpeech({ marks: true, window: 4 });
  peer.beginSpeech(stream.id);
  peer.audio(stream.id, [1]);
  peer.mark(stream.id, MARK);
  assert.deepEqual(peer.types(stream.id), ["open"]);
  await stream[Symbol.asyncIterator]().next();
  assert.deepEqual(peer.sent.at(-1), { type: "ack", id: stream.id, seq: 2 });
});

test("the format is known at the start", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  assert.deepEqual(await stream.format, {
    encoding: "pcm_s16le",
    sampleRate: 24_000,
    channels: 1,
  });
});

test("the format rejects with what ended the stream before it began", async () => {
  const refused = await openSpeech({ voice: "nope" });
  refused.peer.say({
    type: "rejected",
    id: refused.stream.id,
    error: { code: "voice_not_found", message: "no such voice", param: "voice" },
  });
  await assert.rejects(refused.stream.format, { code: "voice_not_found" });
  const left = await openSpeech();
  left.stream.cancel();
  left.peer.cancelled(left.stream.id);
  await assert.rejects(left.stream.format, { name: "AbortError" });
});

test("errors are typed as for chat", async () => {
  const { peer, stream } = await openSpeech({ text: "!!!" });
  peer.beginSpeech(stream.id);
  peer.say({
    type: "error",
    id: stream.id,
    seq: 0,
    error: { code: "empty_text", class: "client", message: "nothing to speak" },
  });
  const { error } = await drain(stream);
  assert.ok(PlaitError.isInstance(error));
  assert.deepEqual([error.code, error.class], ["empty_text", "client"]);
});

test("half a sample breaks the protocol, and the stream with it", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  peer.sayBytes(new Uint8Array([1, 1, 0, 0, stream.id, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]));
  const { error } = await drain(stream);
  assert.equal(error.code, "protocol_error");
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("cancel says how much was heard, and answers with the text that was", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  const proof = stream.cancel(undefined, { heardMs: 1234.5 });
  assert.deepEqual(peer.sent.at(-1), { type: "cancel", id: stream.id, heard_ms: 1234.5 });
  peer.cancelled(stream.id, "client", { heard: "Hello", wasted: { audio_ms: 120 } });
  const { heard, wasted, released } = await proof;
  assert.deepEqual([heard, wasted, released], ["Hello", { audioMs: 120 }, true]);
  assert.equal((await stream.done).heard, "Hello");
});

test("cancel without a listener says nothing of hearing", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  stream.cancel();
  assert.deepEqual(peer.sent.at(-1), { type: "cancel", id: stream.id });
});

test("leaving the loop cancels on the wire", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  peer.audio(stream.id, [1]);
  for await (const _ of stream) break;
  assert.equal(peer.sent.at(-1).type, "cancel");
});

test("F04, F06: toWav has one header, with the true lengths", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  const wav = stream.toWav();
  peer.audio(stream.id, [1, 2, 3]);
  peer.audio(stream.id, [4]);
  peer.done(stream.id);
  const bytes = new DataView(await (await wav).arrayBuffer());
  assert.equal((await wav).type, "audio/wav");
  assert.equal(bytes.byteLength, 44 + 8);
  assert.equal(bytes.getUint32(4, true), bytes.byteLength - 8);
  assert.equal(bytes.getUint32(40, true), 8);
  assert.deepEqual(
    [0, 1, 2, 3].map((i) => bytes.getInt16(44 + 2 * i, true)),
    [1, 2, 3, 4],
  );
});

test("K09: a lost connection never makes a WAV; what had arrived is on the error", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  const wav = stream.toWav();
  peer.audio(stream.id, [1, 2]);
  await settled();
  peer.drop();
  const error = await wav.catch((reason) => reason);
  assert.equal(error.code, "connection_lost");
  assert.deepEqual([...error.partial[0].samples], [1, 2]);
});

test("K04: a signal that is already aborted sends nothing, and lets the text go", async () => {
  const { client, sockets } = fakeClient();
  let returned = 0;
  const text = { [Symbol.asyncIterator]: () => ({ next() {}, return: () => returned++ }) };
  const stream = client.tts.synthesize({ text, signal: AbortSignal.abort() });
  const { error } = await drain(stream);
  assert.equal(error.name, "AbortError");
  assert.deepEqual([sockets.length, returned], [0, 1]);
  await assert.rejects(stream.format, { name: "AbortError" });
});

test("K01: abort sends the cancel frame and leaves 'streaming' in the same tick", async () => {
  const controller = new AbortController();
  const { peer, stream } = await openSpeech({ signal: controller.signal });
  peer.beginSpeech(stream.id);
  controller.abort();
  assert.deepEqual([peer.sent.at(-1).type, stream.state], ["cancel", "cancelled"]);
});

test("K03: a thousand speeches with text on its way up leave no listener on one signal", async () => {
  const { client, socket } = await openClient();
  const { signal } = new AbortController();
  for (let i = 0; i < 1000; i++) {
    const stream = client.tts.synthesize({ text: ["a"], signal });
    if (i % 3 === 0) stream.cancel();
    else if (i % 3 === 1) socket().done(stream.id);
    else socket().cancelled(stream.id, "slow");
    assert.equal(getEventListeners(signal, "abort").length, 0);
  }
});

test("text that is no text is refused before anything is sent", async () => {
  const { client, socket } = await openClient();
  for (const text of [undefined, null, 5, {}]) {
    assert.throws(() => client.tts.synthesize({ text }), InvalidRequestError);
  }
  assert.deepEqual(socket().sent, []);
});

test("a bad option lets the text go too", async () => {
  const { client } = await openClient();
  let returned = 0;
  const text = { [Symbol.asyncIterator]: () => ({ next() {}, return: () => returned++ }) };
  assert.throws(() => client.tts.synthesize({ text, window: 0 }), InvalidRequestError);
  await settled();
  assert.equal(returned, 1);
});

test("the first audio vector of the wire is a chunk of two samples", async () => {
  const url = new URL("../../tests/vectors/plait.v1.json", import.meta.url);
  const [{ hex }] = JSON.parse(readFileSync(url, "utf8")).binary;
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
  new DataView(bytes.buffer).setUint32(4, stream.id, true);
  peer.sayBytes(bytes);
  const { value } = await stream[Symbol.asyncIterator]().next();
  assert.deepEqual([[...value.samples], value.startSample], [[1, -2], 24_000]);
});

test("voices are grouped by language, with names as people say them", async () => {
  const { client } = await openClient();
  const groups = await client.tts.voices();
  assert.deepEqual(
    groups.map(({ language, label, voices }) => [language, label, voices.map(({ id }) => id)]),
    [
      ["en-us", "American English", ["af_heart", "am_adam"]],
      ["en-gb", "British English", ["bf_emma"]],
      ["ja", "Japanese", ["jf_alpha"]],
    ],
  );
  assert.deepEqual(groups[0].voices[0], {
    id: "af_heart",
    name: "Heart",
    gender: "female",
    language: "en-us",
    label: "American English",
  });
});

test("a server that does not speak has no voices", async () => {
  const { client, socket } = fakeClient();
  const voices = client.tts.voices();
  await settled();
  const { WELCOME } = await import("./support/peer.js");
  socket().welcome({ ...WELCOME, methods: { chat: { models: ["smol"] } } });
  assert.deepEqual(await voices, []);
});

test("play() where there is no AudioContext says what to do instead, and cancels nothing", async () => {
  const { peer, stream } = await openSpeech();
  peer.beginSpeech(stream.id);
  assert.throws(() => stream.play(), /toWav\(\)/);
  assert.deepEqual(peer.types(stream.id), ["open"]);
  peer.done(stream.id);
  assert.equal((await stream.toWav()).size, 44);
});
