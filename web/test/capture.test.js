/**
 * Capture: the audio thread's logic without an audio thread, then a MediaStream on a fake context: when it listens,
 * what it sends, what it keeps, and how it ends. A real microphone is heard in e2e.
 */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Capture } from "../sdk/capture-worklet.js";
import { InvalidRequestError, StreamError } from "../sdk/index.js";
import { FakeContext, FakeMediaStream, FakeNode } from "./support/audio.js";
import { drain, openClient, settled } from "./support/peer.js";

// The audio thread.

/** Renders blocks of 128 samples through it; what it gave, whole blocks and the rest. */
function captured(capture, planes) {
  const blocks = [];
  const [first = []] = planes;
  for (let at = 0; at < first.length; at += 128) {
    const parts = planes.map((plane) => plane.subarray(at, at + 128));
    capture.take(parts, parts[0].length, (block) => blocks.push(block));
  }
  return { blocks, rest: capture.flush() };
}

const joined = (blocks) => blocks.flatMap(({ samples }) => [...samples]);

test("blocks are 30 ms at the context's own rate, whatever that is", () => {
  for (const rate of [8_000, 16_000, 44_100, 48_000]) {
    const { blocks } = captured(new Capture(rate, 1, false), [new Float32Array(rate)]);
    assert.ok(blocks.every(({ samples }) => samples.length === Math.round(0.03 * rate)));
    assert.equal(blocks.length, 33);
  }
});

test("nothing is lost or doubled between blocks, and the rest comes at the end", () => {
  const input = Float32Array.from({ length: 5_000 }, (_, i) => i / 32_768);
  const { blocks, rest } = captured(new Capture(48_000, 1, false), [input]);
  const output = joined([...blocks, rest]);
  assert.deepEqual(
    output,
    Array.from(input, (_, i) => i),
  );
});

test("two channels are interleaved", () => {
  const planes = [Float32Array.of(0.25, 0.5), Float32Array.of(-0.25, -0.5)];
  const { rest } = captured(new Capture(48_000, 2, true), planes);
  assert.deepEqual([...rest.samples], [0.25, -0.25, 0.5, -0.5]);
});

test("whole numbers are rounded and clipped; floats pass as they are", () => {
  const input = Float32Array.of(0.5, 1, -1, 2, -2, 0.4 / 32_768, 0.6 / 32_768);
  const whole = captured(new Capture(48_000, 1, false), [input]).rest.samples;
  assert.deepEqual([...whole], [16_384, 32_767, -32_768, 32_767, -32_768, 0, 1]);
  assert.deepEqual(captured(new Capture(48_000, 1, true), [input]).rest.samples, input);
});

test("a source that gives nothing is silence of the same length", () => {
  const capture = new Capture(48_000, 1, false);
  const blocks = [];
  for (let i = 0; i < 45; i += 1) capture.take([], 128, (block) => blocks.push(block));
  assert.equal(joined([...blocks, capture.flush()]).length, 45 * 128);
  assert.ok(blocks.every(({ rms, peak }) => rms === 0 && peak === 0));
});

test("each block says how loud it is, and the next begins anew", () => {
  const capture = new Capture(48_000, 1, false);
  const loud = new Float32Array(1_440).fill(-0.5);
  const { blocks } = captured(capture, [Float32Array.from([...loud, ...new Float32Array(1_440)])]);
  assert.deepEqual(
    blocks.map(({ rms, peak }) => [rms, peak]),
    [
      [0.5, 0.5],
      [0, 0],
    ],
  );
});

test("every block has memory of its own: it is handed over", () => {
  const { blocks } = captured(new Capture(48_000, 1, false), [new Float32Array(3_000)]);
  assert.notEqual(blocks[0].samples.buffer, blocks[1].samples.buffer);
});

// The page.

async function listening({ context = new FakeContext(), ...request } = {}) {
  const fake = await openClient();
  const source = new FakeMediaStream();
  const stream = fake.client.transcribe.live({ source, context, ...request });
  const peer = fake.socket();
  await settled();
  const states = [];
  stream.on("input", ({ state }) => states.push(state));
  const node = FakeNode.made.find((made) => made.context === context && made.name !== "source");
  /** What the audio thread says. */
  const post = (samples, { ended = false, rms = 0.1, peak = 0.2 } = {}) =>
    node.port.onmessage({ data: { samples, rms, peak, ended } });
  return { ...fake, source, track: source.tracks[0], stream, peer, context, node, post, states };
}

const block = (...samples) => Int16Array.of(...samples);

test("E16: the open says the context's true rate, before anything was captured", async () => {
  for (const sampleRate of [44_100, 48_000]) {
    const context = Object.assign(new FakeContext(), { sampleRate });
    const { peer } = await listening({ context });
    assert.deepEqual(peer.sent[0].params, {
      sample_rate: sampleRate,
      channels: 1,
      encoding: "pcm_s16le",
    });
  }
});

test("a MediaStream goes through the worklet, mixed to as many channels as are sent", async () => {
  const { node, context, source } = await listening();
  assert.equal(node.name, "plait-capture");
  assert.deepEqual(node.options.processorOptions, { channels: 1, float: false });
  assert.deepEqual([node.options.channelCount, node.options.channelCountMode], [1, "explicit"]);
  assert.equal(context.source.destination, node);
  assert.equal(node.destination, context.destination);
  assert.deepEqual(context.source.options.tracks, source.tracks);
  assert.match(context.loads[0], /sdk\/capture-worklet\.js$/);
  const both = await listening({ channels: 2, encoding: "pcm_f32le", workletUrl: "/w.js" });
  assert.deepEqual(both.node.options.processorOptions, { channels: 2, float: true });
  assert.deepEqual(both.context.loads, ["/w.js"]);
  assert.deepEqual([both.peer.sent[0].params.channels], [2]);
});

test("what is captured before there is room is kept, and goes up in order when there is", async () => {
  const { peer, post, stream, states } = await listening();
  post(block(1, 2));
  post(block(3));
  await settled();
  assert.deepEqual([peer.types(stream.id), stream.bufferedMs], [["open"], 3 / 48]);
  peer.beginTranscription(stream.id);
  await settled();
  assert.deepEqual([...peer.heard(stream.id)], [1, 0, 2, 0, 3, 0]);
  assert.deepEqual([stream.bufferedMs, stream.sentMs], [0, 3 / 48]);
  assert.deepEqual([states, stream.input], [["open"], "open"]);
});

test("a block goes up in the turn it came in", async () => {
  const { peer, post, stream } = await listening();
  peer.beginTranscription(stream.id);
  await settled();
  post(block(7));
  await Promise.resolve();
  await settled();
  assert.equal(peer.sent.at(-1).type, "audio_in");
});

test("the level is told as it is captured, whether or not it can be sent", async () => {
  const { post, stream } = await listening();
  const levels = [];
  stream.on("level", (level) => levels.push(level));
  post(new Int16Array(1_440), { rms: 0.1, peak: 0.3 });
  post(new Int16Array(1_440), { rms: 0, peak: 0 });
  assert.deepEqual(levels, [
    { rms: 0.1, peak: 0.3, at: 0.03 },
    { rms: 0, peak: 0, at: 0.06 },
  ]);
});

test("E09: beyond 30 s that cannot be sent it stops, with an error that says so", async () => {
  const { post, stream, node, peer, context } = await listening();
  const reading = drain(stream);
  for (let i = 0; i < 30; i += 1) post(new Int16Array(48_000));
  assert.deepEqual([stream.bufferedMs, stream.state], [30_000, "pending"]);
  post(block(1));
  assert.equal(peer.sent.at(-1).type, "cancel");
  const { error } = await reading;
  assert.ok(StreamError.isInstance(error));
  assert.deepEqual([error.code, error.retryable], ["input_overflow", true]);
  assert.match(error.message, /30 s .*has not taken/);
  assert.deepEqual([stream.input, stream.bufferedMs], ["ended", 0]);
  assert.deepEqual([context.source.destination, node.destination], [null, null]);
});

test("E05: stopInput asks for the last block, sends it, then the end: no word is cut", async () => {
  const { peer, post, stream, node, context, states } = await listening();
  peer.beginTranscription(stream.id);
  post(block(1));
  stream.stopInput();
  stream.stopInput();
  assert.deepEqual(node.posted, ["stop"]);
  await settled();
  assert.equal(peer.types(stream.id).includes("end"), false);
  post(block(2), { ended: true });
  await settled();
  assert.deepEqual([...peer.heard(stream.id)], [1, 0, 2, 0]);
  assert.deepEqual([peer.types(stream.id).at(-1), states.at(-1)], ["end", "ended"]);
  assert.equal(context.source.destination, null);
});

test("stopInput does not wait for an audio thread that does not answer, nor for one not there yet", async () => {
  const { peer, stream, time } = await listening();
  peer.beginTranscription(stream.id);
  stream.stopInput();
  time.advance(1_000);
  await settled();
  assert.equal(peer.types(stream.id).at(-1), "end");
  const fake = await openClient();
  const source = new FakeMediaStream();
  const early = fake.client.transcribe.live({ source, context: new FakeContext() });
  early.stopInput();
  fake.socket().beginTranscription(early.id);
  await settled();
  assert.deepEqual(fake.socket().types(early.id), ["open", "end"]);
});

test("a track whose device goes ends the input, and what was said becomes final", async () => {
  const { peer, post, stream, track, node } = await listening();
  peer.beginTranscription(stream.id);
  track.end();
  assert.deepEqual(node.posted, ["stop"]);
  post(block(5), { ended: true });
  await settled();
  assert.deepEqual([...peer.heard(stream.id)], [5, 0]);
  assert.equal(peer.types(stream.id).at(-1), "end");
  peer.done(stream.id);
  assert.equal((await drain(stream)).error, null);
});

test("a track its owner stopped, which no event tells, ends the input too", async () => {
  const { post, track, node } = await listening();
  track.stop();
  post(block(0));
  assert.deepEqual(node.posted, ["stop"]);
});

test("the track is its owner's: no ending stops it", async () => {
  const { stream, track } = await listening();
  stream.cancel();
  await settled();
  assert.equal(track.readyState, "live");
});

test("cancel ends capture: no node, no listener, no timer is left", async () => {
  const context = new FakeContext();
  const { stream, peer, time, node, track } = await listening({ context });
  const timers = time.pending;
  peer.beginTranscription(stream.id);
  stream.cancel();
  peer.cancelled(stream.id);
  await settled();
  assert.deepEqual([node.destination, context.source.destination], [null, null]);
  assert.deepEqual(node.posted, ["stop"]);
  assert.equal(getEventListeners(context, "statechange").length, 0);
  assert.equal(getEventListeners(track, "ended").length, 0);
  assert.equal(time.pending, timers);
});

test("a block that crosses the cancel is dropped", async () => {
  const { stream, peer, post } = await listening();
  peer.beginTranscription(stream.id);
  stream.cancel();
  post(block(9), { ended: true });
  await settled();
  assert.deepEqual(peer.types(stream.id), ["open", "cancel"]);
});

test("K04: a signal that is already aborted captures nothing", async () => {
  const context = new FakeContext();
  const { stream, node } = await listening({ context, signal: AbortSignal.abort() });
  assert.equal((await drain(stream)).error.name, "AbortError");
  assert.deepEqual([context.loads, node, context.resumed], [[], undefined, 0]);
});

test("L01: a context the browser keeps silent is said to be blocked; a gesture opens it", async () => {
  globalThis.document = new EventTarget();
  const context = Object.assign(new FakeContext(), { state: "suspended" });
  const { stream, states, time, post } = await listening({ context });
  assert.equal(context.resumed, 1);
  time.advance(400);
  assert.equal(stream.input, "blocked");
  document.dispatchEvent(new Event("keydown"));
  assert.equal(context.resumed, 2);
  context.become("running");
  post(block(1));
  context.become("interrupted");
  context.become("running");
  assert.deepEqual(states, ["blocked", "waiting", "open", "blocked", "open"]);
  stream.cancel();
  await settled();
  assert.equal(getEventListeners(document, "keydown").length, 0);
  Reflect.deleteProperty(globalThis, "document");
});

const FAILURES = {
  "a module that does not load": [
    { context: Object.assign(new FakeContext(), { noModule: true }), workletUrl: "/no.js" },
    () => {},
    /\/no\.js.*capture-worklet\.js/,
  ],
  "an audio thread that fails": [{}, ({ node }) => node.onprocessorerror(), /audio thread failed/],
  "a context closed under it": [{}, ({ context }) => context.become("closed"), /was closed/],
  "a source the browser refuses": [
    {
      context: Object.assign(new FakeContext(), {
        createMediaStreamSource() {
          throw new DOMException("different sample-rate", "NotSupportedError");
        },
      }),
    },
    () => {},
    /different sample-rate/,
  ],
};
for (const [name, [request, happen, message]] of Object.entries(FAILURES)) {
  test(`${name} cancels the stream and is what the iteration throws`, async () => {
    const fake = await listening(request);
    happen(fake);
    const { error } = await drain(fake.stream);
    assert.match(error.message, message);
    assert.equal(fake.peer.types(fake.stream.id).at(-1), "cancel");
  });
}

test("a MediaStream that cannot be heard is refused before anything is sent", async () => {
  const { client, socket } = await openClient();
  const stopped = new FakeMediaStream();
  stopped.tracks[0].stop();
  const context = new FakeContext();
  const ask = (request) => () =>
    client.transcribe.live({ source: new FakeMediaStream(), context, ...request });
  const refused = (param) => (error) =>
    InvalidRequestError.isInstance(error) && error.param === param;
  assert.throws(ask({ source: stopped }), refused("source"));
  assert.throws(ask({ source: new FakeMediaStream([]) }), refused("source"));
  assert.throws(ask({ sampleRate: 16_000 }), refused("sampleRate"));
  assert.throws(ask({ channels: 6 }), refused("channels"));
  assert.throws(ask({ context: undefined }), /AudioContext/);
  assert.deepEqual(socket().sent, []);
});

test("of several tracks the first live one is heard", async () => {
  const { client } = await openClient();
  const source = new FakeMediaStream([
    ...new FakeMediaStream().tracks,
    ...new FakeMediaStream().tracks,
  ]);
  source.tracks[0].stop();
  const context = new FakeContext();
  client.transcribe.live({ source, context });
  await settled();
  assert.deepEqual(context.source.options.tracks, [source.tracks[1]]);
});

test("the page's context is used, or a slower one where that is too fast for a server", async (t) => {
  const made = [];
  globalThis.AudioContext = class extends FakeContext {
    constructor({ sampleRate = 96_000 }) {
      super();
      Object.assign(this, { sampleRate, suspended: 0 });
      made.push(this);
    }

    async suspend() {
      this.suspended += 1;
    }
  };
  t.after(() => Reflect.deleteProperty(globalThis, "AudioContext"));
  const { client, socket, time } = await openClient();
  const stream = client.transcribe.live({ source: new FakeMediaStream() });
  assert.deepEqual(
    made.map(({ sampleRate }) => sampleRate),
    [96_000, 48_000],
  );
  assert.equal(socket().sent[0].params.sample_rate, 48_000);
  stream.cancel();
  await settled();
  time.advance(60_000);
  assert.deepEqual(
    made.map(({ suspended }) => suspended),
    [0, 1],
  );
  client.transcribe.live({ source: new FakeMediaStream() });
  assert.equal(made.length, 2);
});
