/**
 * The synthesize method: text goes in, at once or while it is written, and audio comes out.
 * While it is played the server hears what was played, not what was taken, so it computes at most a window
 * ahead of the listener; a cancel says how much was heard.
 * Does not know connections; `transport` is handed to Stream.
 */

/** @import { AudioChunk, AudioFormat, Cancel, End, PlaybackOptions, SpeechParams, SpeechStream as PublicSpeechStream, StreamOptions } from "./types.d.ts" */
/** @import { BinaryFrame, Decoder, Heard, Runtime, StreamMessage, StreamObserver, Transport } from "./internal.d.ts" */

import { pageContext } from "./audio-context.js";
import { AudioItems } from "./audio-items.js";
import { snakeKeys } from "./codec.js";
import { withPartial } from "./consume.js";
import { MAX_WINDOW } from "./credit.js";
import { abortError, StreamError } from "./errors.js";
import { Playback } from "./playback.js";
import { Stream } from "./stream.js";
import { MAX_TEXT_BYTES, TextPieces } from "./text-pieces.js";
import { iteratorOver, Upload } from "./upload.js";
import { wavOf } from "./wav.js";

/** Items, of a third of a second at most: some five seconds of speech. */
const SPEECH_WINDOW = 16;
const TEXT_EXPECTED = "a string, or an iterable of strings such as a chat stream";

/**
 * @param {Transport} transport
 * @param {SpeechParams & StreamOptions} request
 * @param {Runtime} runtime
 * @returns {PublicSpeechStream}
 */
export function synthesize(transport, request, runtime) {
  const life = new SpeechLife(transport, request.text, runtime);
  try {
    const stream = new SpeechStream(transport, request, life);
    life.stream = stream;
    return stream;
  } catch (error) {
    life.upload?.stop();
    throw error;
  }
}

/**
 * @extends {Stream<AudioChunk>}
 * @implements {PublicSpeechStream}
 */
class SpeechStream extends Stream {
  #life;

  /**
   * @param {Transport} transport
   * @param {SpeechParams & StreamOptions} request
   * @param {SpeechLife} life
   */
  constructor(transport, request, life) {
    const { text, signal, window = SPEECH_WINDOW, deadlineMs, priority, ...rest } = request;
    const params = snakeKeys({ ...rest, text: typeof text === "string" ? text : undefined });
    const options = { signal, window, deadlineMs, priority };
    super(transport, { method: "synthesize", params, options, decoder: life, observer: life });
    this.#life = life;
    life.signal = signal ?? undefined;
  }

  get format() {
    return this.#life.format;
  }

  /**
   * @param {unknown} [reason]
   * @param {{ heardMs?: number }} [listener]
   * @returns {Promise<Cancel>}
   */
  cancel(reason, { heardMs } = {}) {
    this.#life.heardMs ??= heardMs;
    this.#life.playback?.silence(null);
    return super.cancel(reason);
  }

  /** @returns {Promise<Blob>} */
  async toWav() {
    /** @type {AudioChunk[]} */
    const chunks = [];
    try {
      for await (const chunk of this) chunks.push(chunk);
    } catch (error) {
      throw withPartial(error, chunks);
    }
    return wavOf(chunks);
  }

  /**
   * @param {AudioContext} [context]
   * @param {PlaybackOptions} [options]
   */
  play(context, options = {}) {
    return this.#life.play(this, context, options);
  }
}

/**
 * What one synthesis knows beside its stream: the decoder of its items, the text on its way up, and how much
 * was heard. Made before the stream, which reports to it from its constructor on.
 *
 * @implements {Decoder<AudioChunk>}
 * @implements {StreamObserver}
 * @implements {Heard}
 */
class SpeechLife {
  #runtime;
  /** @type {(format: AudioFormat) => void} */
  #tellFormat = () => {};
  /** @type {(reason: unknown) => void} */
  #tellNoFormat = () => {};
  #items = new AudioItems();
  #heardSample = 0;
  /** Why the consumer left, once it has. */
  #reason = /** @type {unknown} */ (undefined);
  /** Of items not heard yet: the sample where each ends, and its seq. @type {{ endSample: number, seq: number }[]} */
  #unheard = [];

  /** @type {SpeechStream | null} */
  stream = null;
  /** @type {AbortSignal | undefined} */
  signal = undefined;
  /** @type {Playback | null} */
  playback = null;
  /** As the caller said. @type {number | undefined} */
  heardMs = undefined;
  /** @type {Upload<string> | null} */
  upload = null;
  /** @type {Promise<AudioFormat>} */
  format = new Promise((resolve, reject) => {
    this.#tellFormat = resolve;
    this.#tellNoFormat = reject;
  });

  /**
   * @param {Transport} transport
   * @param {SpeechParams["text"]} text
   * @param {Runtime} runtime
   */
  constructor(transport, text, runtime) {
    this.#runtime = runtime;
    this.format.catch(() => {}); // who does not look must not be told by "unhandledrejection"
    if (typeof text === "string") return;
    const source = iteratorOver(text, "text", TEXT_EXPECTED);
    const id = () => /** @type {SpeechStream} */ (this.stream).id;
    this.upload = new Upload(source, new TextPieces(), {
      maxBytes: MAX_TEXT_BYTES,
      full: false, // what people write never fills a socket
      send: (piece) => transport.send({ type: "input", id: id(), text: piece }),
      end: () => transport.send({ type: "end", id: id() }),
      fail: (reason) => void this.cancel(reason),
      after: runtime.after,
    });
  }

  /**
   * @param {SpeechStream} stream
   * @param {AudioContext | undefined} context
   * @param {PlaybackOptions} options
   */
  play(stream, context, options) {
    const heardIn = context ?? pageContext();
    const chunks = stream[Symbol.asyncIterator]();
    this.playback = new Playback(chunks, this, heardIn, options, this.#runtime);
    stream.holdAcks();
    return this.playback;
  }

  // Heard: what playback says.

  /** @param {number} sample */
  heardThrough(sample) {
    this.#heardSample = sample;
    let seq = 0;
    for (
      let first = this.#unheard[0];
      first && first.endSample <= sample;
      first = this.#unheard[0]
    ) {
      seq = first.seq;
      this.#unheard.shift();
    }
    if (seq > 0) this.stream?.ackThrough(seq);
  }

  signOfLife() {
    const [first] = this.#unheard;
    if (first) this.heardThrough(first.endSample);
  }

  /** On behalf of the source or the player. @param {unknown} [reason] */
  async cancel(reason) {
    this.playback?.silence({ reason });
    return /** @type {SpeechStream} */ (this.stream).cancel(reason);
  }

  // StreamObserver: what the wire says.

  /** @param {Extract<StreamMessage, { type: "accepted" }>} message */
  accepted({ windowBytes }) {
    if (windowBytes !== undefined) this.upload?.grant(windowBytes);
  }

  /** @param {Extract<StreamMessage, { type: "input_ack" }>} message */
  inputAck({ bytes, windowBytes }) {
    this.upload?.grant(bytes + windowBytes);
  }

  /** @param {Extract<StreamMessage, { type: "started" }>} message */
  started({ format }) {
    if (this.upload?.waits) void this.cancel(noUploadError());
    this.#tellFormat(this.#items.begin(/** @type {Partial<AudioFormat>} */ (format)));
  }

  /** @param {{ reason: unknown } | null} failure */
  left(failure) {
    this.#reason = failure?.reason;
    this.playback?.silence(failure);
    this.upload?.stop();
    return this.heardMs ?? this.playback?.heardMs;
  }

  /** @param {End} end */
  ended(end) {
    this.upload?.stop();
    const gone = this.#reason ?? abortError("The stream was left before its audio began.");
    this.#tellNoFormat(end.state === "errored" ? end.error : gone);
  }

  // Decoder: what the items are, and which of them nobody has heard yet.

  /**
   * @param {any} data
   * @param {number} seq
   */
  item(data, seq) {
    const value = this.#items.item(data);
    if (value === null) this.#noteUnheard(seq);
    if (this.playback) this.heardThrough(this.#heardSample);
    return value;
  }

  /** @param {BinaryFrame} frame */
  binary(frame) {
    const chunk = this.#items.binary(frame);
    if (chunk) this.#noteUnheard(frame.header.seq);
    return chunk && [chunk];
  }

  end() {
    return this.#items.end();
  }

  /** @param {number} seq */
  #noteUnheard(seq) {
    this.#unheard.push({ endSample: this.#items.endSample, seq });
    // More are never on their way at once: where nobody plays, the oldest were acked by reading.
    if (this.#unheard.length > MAX_WINDOW) this.#unheard.shift();
  }
}

function noUploadError() {
  return new StreamError(
    "protocol_error",
    "The server takes no text while it speaks: give the whole text as one string.",
  );
}
