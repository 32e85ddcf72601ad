/** Files: opened once their header was read, sent slice by slice, decoded by a browser where they are no WAV. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidRequestError, PlaitError } from "../sdk/index.js";
import { drain, fakeClient, MESSAGES, openClient, settled } from "./support/peer.js";
import { bytesOf, chunk, fmt, wavFile } from "./support/wav.js";

const SAMPLES = Int16Array.from({ length: 160 }, (_, i) => i);
const WAV = wavFile([fmt({ rate: 44_100 }), chunk("data", bytesOf(SAMPLES))]);
const NO_WAV = new Blob(["ID3 and what follows it"]);

const segment = (index, text, isFinal = true) => ({
  index,
  revision: 1,
  text,
  start: index,
  end: index + 1,
  is_final: isFinal,
  lag_ms: 1,
});

/** Until the client has asked for a stream: a file is read in its own time. */
async function opened(peer, count = 1) {
  for (;;) {
    const opens = peer.sent.filter(({ type }) => type === "open");
    if (opens.length >= count) return opens.at(-1);
    await settled();
  }
}

/** Until all of it has gone up. */
async function sent(peer, id) {
  while (!peer.types(id).includes("end")) await settled();
}

test("a WAV file is opened at its own rate, and only its samples go up", async () => {
  const { client, socket } = await openClient();
  const stream = client.transcribe.live({ source: WAV, words: true });
  assert.deepEqual([stream.id, stream.durationMs, stream.state], [0, null, "pending"]);
  const { id, params } = await opened(socket());
  assert.deepEqual(params, {
    words: true,
    encoding: "pcm_s16le",
    sample_rate: 44_100,
    channels: 1,
  });
  assert.equal(stream.id, id);
  assert.equal(stream.durationMs, (160 / 44_100) * 1000);
  socket().beginTranscription(id);
  await sent(socket(), id);
  assert.deepEqual([...socket().heard(id)], bytesOf(SAMPLES));
});

test("ids only increase on the wire, though a file waits for its header", async () => {
  const { client, socket } = await openClient();
  client.transcribe.live({ source: WAV });
  const chat = client.llm.chatStream({ messages: MESSAGES });
  await opened(socket(), 2);
  const ids = socket().sent.map(({ id }) => id);
  assert.deepEqual([ids[0], ids[0] < ids[1]], [chat.id, true]);
});

test("file() answers with the final segments and their text, and asks for no others", async () => {
  const { client, socket } = await openClient();
  const whole = client.transcribe.file({ file: WAV, language: "en" });
  const { id, params } = await opened(socket());
  assert.deepEqual([params.interim, params.language, "file" in params], [false, "en", false]);
  const peer = socket();
  peer.beginTranscription(id);
  peer.segment(id, segment(0, "Hel", false));
  peer.segment(id, segment(0, "Hello."));
  peer.segment(id, segment(1, ""));
  peer.segment(id, segment(2, "Bye."));
  peer.done(id);
  const { text, segments } = await whole;
  assert.equal(text, "Hello. Bye.");
  assert.deepEqual(
    segments.map(({ index, isFinal }) => [index, isFinal]),
    [
      [0, true],
      [2, true],
    ],
  );
});

test("file() that breaks rejects, with the transcript so far", async () => {
  const { client, socket } = await openClient();
  const whole = client.transcribe.file({ file: WAV }).catch((reason) => reason);
  const { id } = await opened(socket());
  socket().beginTranscription(id);
  socket().segment(id, segment(0, "Hello."));
  await settled();
  socket().drop();
  const error = await whole;
  assert.equal(error.code, "connection_lost");
  assert.equal(error.partial.text, "Hello.");
  assert.equal(error.partial.segments.length, 1);
});

test("a file may be given as its bytes", async () => {
  const { client, socket } = await openClient();
  const bytes = await WAV.arrayBuffer();
  let count = 0;
  for (const file of [bytes, new Uint8Array(bytes), Buffer.from(bytes)]) {
    count += 1;
    client.transcribe.file({ file }).catch(() => {});
    const { id, params } = await opened(socket(), count);
    assert.equal(params.sample_rate, 44_100);
    socket().done(id);
  }
});

test("what is no file is refused before anything is sent", async () => {
  const { client, socket } = await openClient();
  for (const file of [undefined, null, "a.wav", {}, []]) {
    await assert.rejects(
      client.transcribe.file({ file }),
      (error) => InvalidRequestError.isInstance(error) && error.param === "file",
    );
  }
  assert.deepEqual(socket().sent, []);
});

test("half-close works for files too: what was not read is not sent", async () => {
  const { client, socket } = await openClient();
  const stream = client.transcribe.live({ source: WAV });
  const { id } = await opened(socket());
  socket().beginTranscription(id, 100);
  while (socket().heard(id).length < 100) await settled();
  stream.stopInput();
  socket().say({ type: "input_ack", id, bytes: 100, window_bytes: 1_000 });
  await sent(socket(), id);
  socket().done(id);
  assert.deepEqual((await drain(stream)).error, null);
});

const REFUSED = {
  "no WAV, where nothing decodes it": [NO_WAV, "invalid_audio", /ffmpeg/],
  empty: [new Blob([]), "invalid_audio", /empty/],
  "a WAV of compressed samples": [
    wavFile([fmt({ kind: 7, bits: 8 })]),
    "invalid_audio",
    /format 7/,
  ],
  "a WAV of 96 kHz": [
    wavFile([fmt({ rate: 96_000 }), chunk("data", [1, 0])]),
    "invalid_audio",
    /96000 .* 8000 to 48000/,
  ],
  "gone from the disk": [
    { size: 5, slice: () => ({ arrayBuffer: async () => Promise.reject(new Error("NotFound")) }) },
    "invalid_request",
    /could not be read: NotFound/,
  ],
};
for (const [name, [file, code, message]] of Object.entries(REFUSED)) {
  test(`a file that is ${name}, is a typed error, and nothing is sent`, async () => {
    const { client, socket } = await openClient();
    const stream = client.transcribe.live({ source: file });
    const { error } = await drain(stream);
    assert.ok(PlaitError.isInstance(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    const end = await stream.done;
    assert.deepEqual([end.state, end.error, stream.input], ["errored", error, "ended"]);
    assert.deepEqual(socket().sent, []);
  });
}

test("a stream left while its header is read is never opened", async () => {
  const { client, socket } = await openClient();
  const stream = client.transcribe.live({ source: WAV });
  const { released, stopMs } = await stream.cancel();
  assert.deepEqual([released, stopMs], [true, 0]);
  const controller = new AbortController();
  const aborted = client.transcribe.file({ file: WAV, signal: controller.signal });
  controller.abort();
  await assert.rejects(aborted, { name: "AbortError" });
  client.llm.chatStream({ messages: MESSAGES });
  await opened(socket());
  for (let i = 0; i < 20; i += 1) await settled();
  assert.deepEqual(
    socket().sent.map(({ method }) => method),
    ["chat"],
  );
});

test("a file for a connection that is closed meanwhile fails with that", async () => {
  const { client } = fakeClient();
  const stream = client.transcribe.live({ source: WAV });
  void client.close();
  assert.equal((await drain(stream)).error.code, "connection_closed");
});

test("K04: a signal that is already aborted does not read the file", async () => {
  const { client } = fakeClient();
  const file = { size: 5, slice: () => assert.fail("it was read") };
  const stream = client.transcribe.live({ source: file, signal: AbortSignal.abort() });
  assert.equal((await drain(stream)).error.name, "AbortError");
});

class FakeOfflineContext {
  constructor(channels, length, sampleRate) {
    Object.assign(this, { channels, length, sampleRate });
  }

  async decodeAudioData(bytes) {
    if (bytes.byteLength === 5) throw new DOMException("no", "EncodingError");
    const planes = [Float32Array.of(0.5, 1, -1), Float32Array.of(0.5, 0, -1)];
    return {
      sampleRate: this.sampleRate,
      length: 3,
      duration: 3 / this.sampleRate,
      numberOfChannels: 2,
      getChannelData: (i) => planes[i],
    };
  }
}

/** As in a browser, where everything else is still like here. */
async function inBrowser(t) {
  globalThis.OfflineAudioContext = FakeOfflineContext;
  t.after(() => Reflect.deleteProperty(globalThis, "OfflineAudioContext"));
  return openClient();
}

test("a browser decodes what is no WAV, to one channel at the rate models hear", async (t) => {
  const { client, socket } = await inBrowser(t);
  const stream = client.transcribe.live({ source: NO_WAV });
  const { id, params } = await opened(socket());
  assert.deepEqual(params, { encoding: "pcm_s16le", sample_rate: 16_000, channels: 1 });
  assert.equal(stream.durationMs, 3 / 16);
  socket().beginTranscription(id);
  await sent(socket(), id);
  assert.deepEqual([...socket().heard(id)], bytesOf(Int16Array.of(16_384, 16_384, -32_768)));
});

test("a browser still reads WAV by slices, but for what only it understands", async (t) => {
  const { client, socket } = await inBrowser(t);
  client.transcribe.live({ source: WAV });
  assert.equal((await opened(socket())).params.sample_rate, 44_100);
  client.transcribe.live({ source: wavFile([fmt({ kind: 7, bits: 8 }), chunk("data", [1])]) });
  assert.equal((await opened(socket(), 2)).params.sample_rate, 16_000);
});

test("what a browser cannot decode is a typed error", async (t) => {
  const { client } = await inBrowser(t);
  const { error } = await drain(client.transcribe.live({ source: new Blob(["12345"]) }));
  assert.equal(error.code, "invalid_audio");
  assert.match(error.message, /cannot decode/);
  assert.equal(error.cause.name, "EncodingError");
});
