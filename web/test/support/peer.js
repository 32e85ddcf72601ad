/**
 * The other end, in memory: a WebSocket class whose server is the test, and a clock that moves when told.
 * Every message the SDK sends is in `sent` the moment it is sent; nothing is asynchronous but promises.
 */

import { decodeBinary, encodeBinary } from "../../sdk/binary.js";
import { connectWith } from "../../sdk/client.js";

export const WELCOME = {
  type: "welcome",
  protocol: "plait.v1",
  session: "s1",
  server: "fake",
  limits: {
    max_streams: 16,
    max_queued: 16,
    max_text_bytes: 1_048_576,
    max_binary_bytes: 65_536,
    window: 64,
    opens_per_second: 100,
    ping_seconds: 10,
  },
  methods: {
    chat: { models: ["smol"] },
    transcribe: { models: ["whisper-tiny.en"] },
    synthesize: { models: ["kokoro"], voices: ["af_heart", "bf_emma", "am_adam", "jf_alpha"] },
  },
  capabilities: [],
};

export const MESSAGES = [{ role: "user", content: "hi" }];

class FakeSocket {
  readyState = 0;
  binaryType = "blob";
  onopen = null;
  onmessage = null;
  onclose = null;
  onerror = null;
  bufferedAmount = 0;
  /** Everything the client sent, parsed; a binary frame as its header and payload. */
  sent = [];

  constructor(url, protocols) {
    this.url = url;
    this.protocols = protocols;
  }

  send(data) {
    if (typeof data === "string") this.sent.push(JSON.parse(data));
    else this.sent.push(audioFrame(data));
  }

  close(code) {
    if (this.readyState >= 2) return;
    this.closedWith = code;
    this.readyState = 2;
  }

  // The server's side.

  welcome(message = WELCOME) {
    this.readyState = 1;
    this.say(message);
  }

  say(...messages) {
    for (const message of messages) this.onmessage?.({ data: JSON.stringify(message) });
  }

  sayBytes(bytes) {
    this.onmessage?.({ data: bytes.buffer });
  }

  drop(code = 1006, reason = "") {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }

  items(id, ...texts) {
    const base = this.seqs?.[id] ?? 0;
    this.seqs = { ...this.seqs, [id]: base + texts.length };
    texts.forEach((content, i) => {
      this.say({ type: "item", id, seq: base + i + 1, data: { content } });
    });
  }

  begin(id) {
    this.say(
      { type: "accepted", id, phase: "queued", position: 0 },
      { type: "started", id, model: "smol", max_tokens: 256 },
    );
  }

  /** Accepts a synthesis, with room for so much text, and starts it. */
  beginSpeech(id, windowBytes = 1000) {
    this.say(
      { type: "accepted", id, phase: "preparing", position: 0, window_bytes: windowBytes },
      {
        type: "started",
        id,
        model: "kokoro",
        format: { encoding: "pcm_s16le", sample_rate: 24_000, channels: 1 },
      },
    );
  }

  /** Accepts a transcription, with room for so much audio, and starts it. */
  beginTranscription(id, windowBytes = 1_000_000) {
    this.say(
      { type: "accepted", id, phase: "preparing", position: 0, window_bytes: windowBytes },
      { type: "started", id, model: "whisper-tiny.en" },
    );
  }

  segment(id, segment) {
    this.say({ type: "item", id, seq: this.#nextSeq(id), data: { segment } });
  }

  event(id, event, at) {
    this.say({ type: "item", id, seq: this.#nextSeq(id), data: { event, at } });
  }

  /** The audio that came for a stream, joined. */
  heard(id) {
    const frames = this.sent.filter((frame) => frame.type === "audio_in" && frame.id === id);
    return Buffer.concat(frames.map(({ payload }) => payload));
  }

  mark(id, mark) {
    this.say({ type: "item", id, seq: this.#nextSeq(id), data: { mark } });
  }

  /** Audio as the server frames it; `aux` goes on from the chunk before. */
  audio(id, samples) {
    const at = this.samples?.[id] ?? 0;
    this.samples = { ...this.samples, [id]: at + samples.length };
    const payload = new Uint8Array(Int16Array.from(samples).buffer);
    this.sayBytes(
      encodeBinary({ kind: 1, flags: 0, id, seq: this.#nextSeq(id), aux: at }, payload),
    );
  }

  /** Accepts an embedding, with room for so many texts' bytes, and starts it with vectors of two numbers. */
  beginEmbedding(id, windowBytes = 1_048_576) {
    this.say(
      { type: "accepted", id, phase: "preparing", position: 0, window_bytes: windowBytes },
      { type: "started", id, model: "minilm", format: { encoding: "f32", dims: 2 } },
    );
  }

  /** Vectors as the server frames them; `aux` goes on from the text before. */
  rows(id, rows, flags = 0) {
    const payload = new Uint8Array(Float32Array.from(rows.flat()).buffer);
    const header = {
      kind: 3,
      flags,
      id,
      seq: this.#nextSeq(id),
      aux: this.#answer(id, rows.length),
    };
    this.sayBytes(encodeBinary(header, payload));
  }

  /** One answer as JSON: a vector, or an error. */
  answer(id, data) {
    const index = this.#answer(id, 1);
    this.say({ type: "item", id, seq: this.#nextSeq(id), data: { index, ...data } });
  }

  #answer(id, count) {
    const index = this.answers?.[id] ?? 0;
    this.answers = { ...this.answers, [id]: index + count };
    return index;
  }

  #nextSeq(id) {
    const seq = (this.seqs?.[id] ?? 0) + 1;
    this.seqs = { ...this.seqs, [id]: seq };
    return seq;
  }

  done(id) {
    this.say({
      type: "done",
      id,
      seq: this.seqs?.[id] ?? 0,
      finish_reason: "stop",
      usage: { prompt_tokens: 3, cached_tokens: 0, completion_tokens: 2 },
      timing: { queued_ms: 0, first_item_ms: 1, total_ms: 2, paused_ms: 0 },
    });
  }

  cancelled(id, by = "client", more = {}) {
    this.say({
      type: "cancelled",
      id,
      seq: this.seqs?.[id] ?? 0,
      by,
      released: true,
      stop_ms: 14,
      wasted: { tokens: 1 },
      usage: { prompt_tokens: 3, cached_tokens: 0, completion_tokens: 2 },
      ...more,
    });
  }

  types(id) {
    return this.sent.filter((message) => message.id === id).map(({ type }) => type);
  }
}

/** Copied at once: the client may use its memory again. */
function audioFrame(bytes) {
  const { header, payload } = decodeBinary(Uint8Array.from(bytes).buffer);
  const { kind, id, ...rest } = header;
  return { type: kind === 2 ? "audio_in" : `binary ${kind}`, id, ...rest, payload };
}

class FakeTime {
  nowMs = 0;
  #timers = new Set();

  runtime() {
    return {
      now: () => this.nowMs,
      random: () => 0,
      after: (delayMs, callback) => {
        const timer = { at: this.nowMs + delayMs, callback };
        this.#timers.add(timer);
        return { clear: () => this.#timers.delete(timer), ref() {}, unref() {} };
      },
    };
  }

  get pending() {
    return this.#timers.size;
  }

  /** Moves the clock and runs what falls due, in order. */
  advance(ms) {
    const end = this.nowMs + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due);
      this.nowMs = Math.max(this.nowMs, due.at);
      due.callback();
    }
    this.nowMs = end;
  }

  /** A page that slept: the clock jumped, and every timer that is due runs once, late. */
  wakeAfter(ms) {
    this.nowMs += ms;
    for (const timer of [...this.#timers].filter(({ at }) => at <= this.nowMs)) {
      this.#timers.delete(timer);
      timer.callback();
    }
  }
}

/** Lets every promise that can settle do so. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A client with its fake surroundings; `socket()` is the newest one. */
export function fakeClient(options = {}) {
  const sockets = [];
  class Socket extends FakeSocket {
    constructor(...args) {
      super(...args);
      sockets.push(this);
    }
  }
  const time = new FakeTime();
  const client = connectWith(time.runtime(), "ws://server.test/v1/ws", {
    WebSocket: Socket,
    ...options,
  });
  return { client, time, sockets, socket: () => sockets.at(-1) };
}

/** The same, connected. */
export async function openClient(options, welcome) {
  const fake = fakeClient(options);
  const opened = fake.client.models();
  await settled();
  fake.socket().welcome(welcome);
  await opened;
  return fake;
}

/** Reads to the end; what came, and what it threw. */
export async function drain(stream) {
  const items = [];
  try {
    for await (const item of stream) items.push(item);
  } catch (error) {
    return { items, error };
  }
  return { items, error: null };
}
