/** The life of a listening in the page, over a client whose streams, and a microphone that, a test drives by hand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { endingOf, waitingText } from "../playground/ending.js";
import { firstBar } from "../playground/level-strip.js";
import { Listenings } from "../playground/listenings.js";
import { troubleOf } from "../playground/microphone.js";
import { samplesOf } from "../playground/new-listening.js";
import { Store } from "../playground/store.js";

const RECEIPT = { by: "client", released: true, stopMs: 14, wasted: { audioMs: 40 }, usage: {} };
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A stream as the SDK's is seen from here. */
class ScriptedStream {
  state = "streaming";
  queue = null;
  started = { model: "m" };
  input = "open";
  inputStopped = false;
  #listeners = new Map();
  #items = [];
  #wake = () => {};

  constructor(id) {
    this.id = id;
    this.done = new Promise((resolve) => {
      this.settleDone = resolve;
    });
  }

  on(type, listener) {
    this.#listeners.set(type, listener);
  }

  emit(type, event) {
    this.#listeners.get(type)?.(event);
  }

  give(segment) {
    this.#items.push({ revision: 1, start: 0, end: 1, isFinal: false, lagMs: 9, ...segment });
    this.#wake();
  }

  end(terminal) {
    this.#items.push(null);
    this.settleDone({ usage: { audioMs: 2000 }, timing: {}, ...terminal });
    this.#wake();
  }

  fail(code) {
    this.#items.push(Object.assign(new Error("it broke"), { code }));
    this.settleDone({ state: "errored", usage: null });
    this.#wake();
  }

  stopInput() {
    this.inputStopped = true;
    this.input = "ended";
    this.emit("input", { state: "ended" });
  }

  cancel() {
    this.#items.push(new DOMException("stopped", "AbortError"));
    this.#wake();
    return this.done;
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#items.length === 0) {
        await new Promise((resolve) => {
          this.#wake = resolve;
        });
      }
      const next = this.#items.shift();
      if (next === null) return;
      if (next instanceof Error) throw next;
      yield next;
    }
  }
}

/** A microphone whose permission a test gives or refuses. */
class FakeMicrophone {
  opened = 0;
  closed = 0;
  #answers = [];

  open = () =>
    new Promise((resolve, reject) => {
      this.#answers.push({ resolve, reject });
    });

  close = (media) => {
    if (media) this.closed += 1;
  };

  async allow() {
    const track = new EventTarget();
    this.opened += 1;
    this.#answers.shift().resolve({ getAudioTracks: () => [track] });
    await settle();
    return track;
  }

  async refuse(name) {
    this.#answers.shift().reject(troubleOf(Object.assign(new Error("no"), { name })));
    await settle();
  }
}

/** @param {(request: any) => any} [live] */
function page(live) {
  const state = {
    asking: null,
    microphoneTrouble: null,
    listening: null,
    listeningStops: [],
    sample: null,
  };
  const store = new Store(/** @type {any} */ (state), () => {});
  const streams = [];
  const asked = [];
  const announced = [];
  const open = (request) => {
    asked.push(request);
    streams.push(new ScriptedStream(streams.length + 1));
    return streams.at(-1);
  };
  const microphone = new FakeMicrophone();
  const listenings = new Listenings(
    store,
    () => /** @type {any} */ ({ transcribe: { live: live ?? open } }),
    (text) => announced.push(text),
    () => {},
    /** @type {any} */ (microphone),
  );
  return { state: store.state, listenings, microphone, streams, asked, announced };
}

/** @param {object} [options] */
async function recording(options = {}) {
  const made = page();
  void made.listenings.record(options);
  const track = await made.microphone.allow();
  made.listenings.noticeFrame(1);
  return { ...made, track, stream: made.streams[0] };
}

test("a recording begins when the microphone is given, and says so once", async () => {
  const { state, listenings, microphone, asked, announced } = page();
  void listenings.record({ language: "de" });
  void listenings.record({});
  assert.notEqual(state.asking, null);
  assert.equal(asked.length, 0);

  await microphone.allow();
  listenings.noticeFrame(1);
  listenings.noticeFrame(1);

  assert.equal(state.asking, null);
  assert.equal(state.listening.state, "streaming");
  assert.equal(asked.length, 1);
  assert.equal(asked[0].language, "de");
  assert.deepEqual(announced, ["Recording."]);
});

test("a refusal keeps what was shown and says what to do", async () => {
  const { state, listenings, microphone, stream } = await recording();
  stream.give({ index: 0, text: "kept", isFinal: true });
  stream.end({ state: "completed" });
  await settle();
  const before = state.listening;

  void listenings.record({});
  await microphone.refuse("NotAllowedError");

  assert.equal(state.listening, before);
  assert.equal(state.microphoneTrouble.code, "denied");
  assert.equal(state.asking, null);
});

test("who thinks better of it is not recorded when the browser's question is answered late", async () => {
  const { state, listenings, microphone, asked } = page();
  void listenings.record({});
  listenings.stopAsking();
  void listenings.record({});

  await microphone.allow();
  assert.equal(microphone.closed, 1);
  assert.equal(asked.length, 0);
  await microphone.allow();

  assert.equal(state.listening.state, "pending");
  assert.equal(asked.length, 1);
});

test("done waits for the last of the microphone, closes it, and all becomes final", async () => {
  const { state, listenings, microphone, announced, stream } = await recording();
  stream.give({ index: 0, text: "one tw" });
  await settle();

  listenings.finish();
  assert.equal(state.listening.state, "finishing");
  assert.equal(microphone.closed, 1);
  stream.give({ index: 0, revision: 2, text: "one two", isFinal: true });
  stream.end({ state: "completed", finishReason: "stop" });
  await settle();

  assert.equal(state.listening.state, "completed");
  assert.equal(state.listening.transcript.entries[0].text, "one two");
  assert.deepEqual(endingOf(state.listening).parts, ["heard 2.00 s", "all of it is final"]);
  assert.equal(announced.at(-1), "Finished: 1 segment.");
});

test("stop freezes the text and the receipt is the server's", async () => {
  const { state, listenings, microphone, stream } = await recording();
  stream.give({ index: 0, text: "one" });
  await settle();

  listenings.stop(listenings.focused());
  stream.give({ index: 0, revision: 2, text: "one two" });
  await settle();
  assert.equal(state.listening.state, "stopping");
  assert.equal(microphone.closed, 1);
  stream.settleDone({ state: "cancelled", ...RECEIPT });
  await settle();

  assert.equal(state.listening.transcript.entries[0].text, "one");
  assert.deepEqual(state.listeningStops, [14]);
  assert.equal(
    endingOf(state.listening).parts.join(" · "),
    "stopped in 14 ms · 40 ms of audio wasted · slot released",
  );
});

test("a device that goes ends the input, keeps the text and is told of", async () => {
  const { state, track, stream } = await recording();

  track.dispatchEvent(new Event("ended"));

  assert.equal(stream.inputStopped, true);
  assert.equal(state.listening.state, "finishing");
  assert.match(state.listening.note, /microphone is gone/);
});

test("after a lost connection recording goes on below the text", async () => {
  const { state, listenings, microphone, streams, stream } = await recording();
  stream.emit("level", { peak: 0.5, rms: 0.1, at: 3 });
  stream.give({ index: 0, text: "one", isFinal: true });
  stream.fail("connection_lost");
  await settle();
  assert.equal(state.listening.trouble.lost, true);
  assert.match(endingOf(state.listening).parts[0], /text so far is kept/);

  listenings.again({});
  await microphone.allow();
  streams[1].give({ index: 0, text: "two", start: 1, end: 2 });
  streams[1].emit("speech", { type: "started", at: 1 });
  await settle();

  const { entries } = state.listening.transcript;
  assert.deepEqual(
    entries.map(({ text, start }) => [text, start]),
    [
      ["one", 0],
      ["two", 4],
    ],
  );
  assert.equal(state.listening.talk.between(4, 5), true);
  assert.equal(microphone.closed, 1);
});

test("a file is taken as it is and once more from its beginning", async () => {
  const { state, listenings, streams, asked } = page();
  const file = new File(["x"], "a.wav");
  listenings.transcribe(file, {});
  listenings.transcribe(file, {});
  assert.equal(asked.length, 1);
  streams[0].give({ index: 0, text: "one", isFinal: true });
  streams[0].end({ state: "completed" });
  await settle();

  listenings.again({});

  assert.equal(asked[1].source, file);
  assert.equal(state.listening.transcript.entries.length, 0);
});

test("what it waits for is said, and nobody having spoken too", async () => {
  const { state, stream } = await recording();
  assert.equal(waitingText(state.listening), "Listening…");
  stream.end({ state: "completed" });
  await settle();
  assert.deepEqual(endingOf(state.listening).parts, ["heard 2.00 s", "nobody spoke"]);
});

test("the strip moves by whole bars, and begins anew where motion is unwanted", () => {
  assert.deepEqual(
    [0, 5, 10, 10.04, 25].map((seconds) => firstBar(seconds, 100, false)),
    [0, 0, 0, 1, 150],
  );
  assert.deepEqual(
    [0, 5, 10, 10.1, 25].map((seconds) => firstBar(seconds, 100, true)),
    [0, 0, 0, 100, 200],
  );
});

test("its own voice is heard without the marks between, and stops with the listening", async () => {
  const left = [];
  const chunks = [[], [1, 2], [], [3]].map((samples) => ({
    samples: Int16Array.from(samples),
    sampleRate: 24_000,
  }));
  const speech = () => ({
    [Symbol.asyncIterator]: () => ({
      next: async () => ({ done: chunks.length === 0, value: chunks.shift() }),
      return: async () => ({ done: true, value: left.push("left") }),
    }),
  });
  const heard = [];
  for await (const samples of samplesOf(/** @type {any} */ (speech()))) heard.push([...samples]);
  assert.deepEqual(heard, [[1, 2], [3]]);
  assert.deepEqual(left, []);

  await samplesOf(/** @type {any} */ (speech()))
    [Symbol.asyncIterator]()
    .return?.();
  assert.deepEqual(left, ["left"]);
});

test("without a connection yet it says so, and no microphone stays open", async () => {
  const { state, microphone, listenings } = page(() => {
    throw new Error("Not connected yet");
  });
  void listenings.record({});
  await microphone.allow();

  assert.equal(state.listening.state, "errored");
  assert.match(state.listening.trouble.message, /Not connected/);
  assert.equal(microphone.closed, 1);
  listenings.overhear("hello", {});
  assert.equal(state.listening.state, "errored");
});
