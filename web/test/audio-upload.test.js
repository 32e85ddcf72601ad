/** Audio that goes up: what samples may be, how they are cut, and the two things that hold them back. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidRequestError } from "../sdk/index.js";
import { drain, openClient, settled, WELCOME } from "./support/peer.js";

async function uploading(source, { windowBytes, ...request } = {}) {
  const fake = await openClient();
  const stream = fake.client.transcribe.live({ source, sampleRate: 16_000, ...request });
  const peer = fake.socket();
  const sizes = () =>
    peer.sent.filter(({ type }) => type === "audio_in").map(({ payload }) => payload.length);
  const ack = (bytes, window_bytes) =>
    peer.say({ type: "input_ack", id: stream.id, bytes, window_bytes });
  if (windowBytes !== 0) peer.beginTranscription(stream.id, windowBytes);
  await settled();
  return { ...fake, stream, peer, sizes, ack };
}

const bytesOf = (samples) => [...new Uint8Array(samples.buffer)];

const SOURCES = {
  "an array of Int16Array": [Int16Array.of(1, 2), Int16Array.of(3)],
  "one Int16Array": Int16Array.of(1, 2, 3),
  "its bytes": new Uint8Array([1, 0, 2, 0, 3, 0]),
  "E14: bytes cut within a sample": [new Uint8Array([1, 0, 2]), new Uint8Array([0, 3, 0])],
  "an ArrayBuffer": Int16Array.of(1, 2, 3).buffer,
  "a Buffer of Node": Buffer.from([1, 0, 2, 0, 3, 0]),
  "part of an array": Int16Array.of(0, 1, 2, 3, 4).subarray(1, 4),
  "floats, of what 16 bits can say": Float32Array.of(1 / 32_768, 2 / 32_768, 3 / 32_768),
};
for (const [name, source] of Object.entries(SOURCES)) {
  test(`${name} may be the samples`, async () => {
    const { peer, stream } = await uploading(source);
    assert.deepEqual([...peer.heard(stream.id)], [1, 0, 2, 0, 3, 0]);
    assert.equal(peer.types(stream.id).at(-1), "end");
  });
}

test("samples may come from a generator, sync or not, and from a ReadableStream", async () => {
  const blocks = [Int16Array.of(1), Int16Array.of(2)];
  async function* later() {
    yield* blocks;
  }
  const readable = () =>
    new ReadableStream({
      start(controller) {
        for (const block of blocks) controller.enqueue(block);
        controller.close();
      },
    });
  const sources = [
    blocks.values(),
    later(),
    readable(),
    { getReader: () => readable().getReader() },
  ];
  for (const source of sources) {
    const { peer, stream } = await uploading(source);
    assert.deepEqual([...peer.heard(stream.id)], [1, 0, 2, 0]);
    assert.equal(peer.types(stream.id).at(-1), "end");
  }
});

test("floats are clipped where 16 bits end, and what is no number is silence", async () => {
  const source = Float32Array.of(0.5, 1, 1.5, -1, -7, Number.NaN, Number.POSITIVE_INFINITY);
  const { peer, stream } = await uploading(source);
  const heard = new Int16Array(Uint8Array.from(peer.heard(stream.id)).buffer);
  assert.deepEqual([...heard], [16_384, 32_767, 32_767, -32_768, -32_768, 0, 32_767]);
});

test("declared as floats, floats pass unchanged and whole numbers become them", async () => {
  const floats = Float32Array.of(0.1, -3, Number.NaN);
  const { peer, stream } = await uploading([floats, Int16Array.of(-16_384)], {
    encoding: "pcm_f32le",
  });
  const expected = [...bytesOf(floats), ...bytesOf(Float32Array.of(-0.5))];
  assert.deepEqual([...peer.heard(stream.id)], expected);
});

test("a long array goes up whole, in frames that hold nobody up", async () => {
  const source = Float32Array.from({ length: 100_001 }, (_, i) => (i % 200) / 200);
  const { peer, stream, sizes } = await uploading(source);
  const heard = new Int16Array(Uint8Array.from(peer.heard(stream.id)).buffer);
  assert.equal(heard.length, source.length);
  assert.ok(heard.every((sample, i) => sample === Math.round(source[i] * 32_768)));
  assert.ok(Math.max(...sizes()) <= 32_768);
});

test("H03: no frame is larger than the server reads", async () => {
  const limits = { ...WELCOME.limits, max_binary_bytes: 1_024 };
  const { client, socket } = await openClient({}, { ...WELCOME, limits });
  const stream = client.transcribe.live({ source: new Int16Array(2_000), sampleRate: 16_000 });
  socket().beginTranscription(stream.id);
  await settled();
  const frames = socket().sent.filter(({ type }) => type === "audio_in");
  assert.deepEqual(
    frames.map(({ payload }) => payload.length),
    [1_008, 1_008, 1_008, 976],
  );
});

test("E09: no more goes up than there is credit for, and the source is not read ahead of it", async () => {
  let asked = 0;
  function* blocks() {
    for (;;) {
      asked += 1;
      yield new Int16Array(100);
    }
  }
  const { sizes, ack, stream } = await uploading(blocks(), { windowBytes: 300 });
  assert.deepEqual([sizes(), asked], [[200, 100], 2]);
  assert.equal(stream.bufferedMs, (100 / 2 / 16_000) * 1000);
  ack(200, 300);
  await settled();
  assert.deepEqual([sizes(), asked], [[200, 100, 100, 100], 3]);
  assert.equal(stream.sentMs, (500 / 2 / 16_000) * 1000);
});

test("a repeated accepted, or an older ack, takes no credit away", async () => {
  const { peer, ack, stream, sizes } = await uploading(new Int16Array(8), { windowBytes: 8 });
  ack(0, 16);
  peer.say({ type: "accepted", id: stream.id, phase: "queued", position: 0, window_bytes: 8 });
  await settled();
  assert.deepEqual(sizes(), [8, 8]);
});

test("a socket that is behind is not filled further; an ack, or time, looks again", async () => {
  const { client, socket, time } = await openClient();
  const source = [new Int16Array(1), new Int16Array(1), new Int16Array(1)];
  const stream = client.transcribe.live({ source, sampleRate: 16_000 });
  const peer = socket();
  const count = () => peer.types(stream.id).filter((type) => type === "audio_in").length;
  peer.bufferedAmount = 200_000;
  const timers = time.pending;
  peer.beginTranscription(stream.id);
  await settled();
  assert.deepEqual([count(), time.pending], [0, timers + 1]);
  time.advance(100);
  await settled();
  assert.equal(count(), 0);
  peer.bufferedAmount = 0;
  peer.say({ type: "input_ack", id: stream.id, bytes: 0, window_bytes: 1_000_000 });
  await settled();
  assert.deepEqual([count(), time.pending], [3, timers]);
});

test("a stream that ends while its socket is behind leaves no timer", async () => {
  const { client, socket, time } = await openClient();
  const stream = client.transcribe.live({ source: new Int16Array(9), sampleRate: 16_000 });
  const timers = time.pending;
  socket().bufferedAmount = 200_000;
  socket().beginTranscription(stream.id);
  await settled();
  stream.cancel();
  socket().cancelled(stream.id);
  await settled();
  assert.equal(time.pending, timers);
});

test("frames that go out are told, as those that come in", async () => {
  const { client, socket } = await openClient();
  const told = [];
  client.on("frame", ({ direction, type, streamId, bytes, header }) =>
    told.push([direction, type, streamId, bytes, header?.kind]),
  );
  const stream = client.transcribe.live({ source: new Int16Array(4), sampleRate: 16_000 });
  socket().beginTranscription(stream.id);
  await settled();
  assert.deepEqual(
    told.find(([, type]) => type === "binary"),
    ["out", "binary", stream.id, 24, 2],
  );
});

for (const [name, piece] of Object.entries({
  "a number": 5,
  "a text": "abc",
  "an array of numbers": [1, 2],
  doubles: new Float64Array(2),
  null: null,
})) {
  test(`a source that gives ${name} is refused with what it should give, and let go`, async () => {
    let returned = 0;
    const next = async () => ({ value: piece, done: false });
    const iterator = { next, return: async () => ({ done: returned++ >= 0, value: undefined }) };
    const { stream, peer } = await uploading({ [Symbol.asyncIterator]: () => iterator });
    const { error } = await drain(stream);
    assert.ok(InvalidRequestError.isInstance(error));
    assert.match(error.message, /Int16Array or Float32Array/);
    await settled();
    assert.deepEqual([error.param, returned, peer.sent.at(-1).type], ["source", 1, "cancel"]);
  });
}

test("a source that fails cancels the stream, and the iteration rejects with its reason", async () => {
  const reason = new Error("the device is gone");
  async function* broken() {
    yield new Int16Array(4);
    throw reason;
  }
  const { stream, peer } = await uploading(broken());
  const { error } = await drain(stream);
  assert.equal(error, reason);
  assert.deepEqual(peer.types(stream.id), ["open", "audio_in", "cancel"]);
});

test("a source that fails after stopInput disturbs nobody", async () => {
  let fail = () => {};
  const next = () =>
    new Promise((_, reject) => {
      fail = reject;
    });
  const { stream, peer } = await uploading({ [Symbol.asyncIterator]: () => ({ next }) });
  stream.stopInput();
  fail(new Error("let go"));
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open", "end"]);
});
