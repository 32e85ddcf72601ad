/**
 * The synthesize method: text goes in, at once or while it is written, and audio comes out.
 * An item is a chunk of PCM16, handed on as it lies in its frame; a mark rides on the chunk it precedes.
 * While it is played the server hears what was played, not what was taken, so it computes at most a window
 * ahead of the listener; a cancel says how much was heard.
 * Does not know connections; `transport` is handed to Stream.
 */

/** @import { AudioChunk, AudioFormat, Cancel, End, Mark, PlaybackOptions, SpeechParams, SpeechStream as PublicSpeechStream, StreamOptions } from "./types.d.ts" */
/** @import { BinaryFrame, Decoder, Heard, Runtime, StreamMessage, StreamObserver, Transport } from "./internal.d.ts" */

import { pageContext } from "./audio-context.js";
import { BINARY_KINDS, CodecError, snakeKeys } from "./codec.js";
import { withPartial } from "./consume.js";
import { MAX_WINDOW } from "./credit.js";
import { abortError, StreamError } from "./errors.js";
import { Playback } from "./playback.js";
import { Stream } from "./stream.js";
import { TextUpload } from "./upload.js";
import { wavOf } from "./wav.js";

/** Items, of a third of a second at most: some five seconds of speech. */
const SPEECH_WINDOW = 16;
/** @type {AudioFormat} */
const DEFAULT_FORMAT = { encoding: "pcm_s16le", sampleRate: 24_000, channels: 1 };

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
  #format = DEFAULT_FORMAT;
  /** @type {Mark | undefined} */
  #mark = undefined;
  #endSample = 0;
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
  /** @type {TextUpload | null} */
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
    const id = () => /** @type {SpeechStream} */ (this.stream).id;
    this.upload = new TextUpload(text, {
      send: (piece) => transport.send({ type: "input", id: id(), text: piece }),
      end: () => transport.send({ type: "end", id: id() }),
      fail: (reason) => void this.cancel(reason),
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
    this.#format = { ...DEFAULT_FORMAT, .../** @type {Partial<AudioFormat>} */ (format) };
    this.#tellFormat(this.#format);
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

  // Decoder: what the items are.

  /**
   * @param {any} data
   * @param {number} seq
   */
  item(data, seq) {
    if (typeof data !== "object" || data === null) return undefined;
    if (data.mark) this.#mark = joined(this.#mark, data.mark);
    this.#noteUnheard(seq);
    if (this.playback) this.heardThrough(this.#heardSample);
    return null;
  }

  /** @param {BinaryFrame} frame */
  binary({ header, payload }) {
    if (header.kind !== BINARY_KINDS.audioOut) return undefined;
    if (payload.length % 2 === 1) {
      throw new CodecError(`item ${header.seq} has ${payload.length} bytes, not whole samples`);
    }
    const chunk = this.#chunk(payload, header.aux);
    this.#endSample = header.aux + chunk.samples.length;
    this.#noteUnheard(header.seq);
    return chunk;
  }

  /** @param {number} seq */
  #noteUnheard(seq) {
    this.#unheard.push({ endSample: this.#endSample, seq });
    // More are never on their way at once: where nobody plays, the oldest were acked by reading.
    if (this.#unheard.length > MAX_WINDOW) this.#unheard.shift();
  }

  /** A mark of what has no audio has nobody to ride on: the texts joined must still be the input. */
  end() {
    return this.#mark && this.#chunk(new Uint8Array(0), this.#endSample);
  }

  /**
   * @param {Uint8Array<ArrayBuffer>} audioBytes
   * @param {number} startSample
   * @returns {AudioChunk}
   */
  #chunk(audioBytes, startSample) {
    const { buffer, byteOffset, length } = audioBytes;
    const samples = new Int16Array(buffer, byteOffset, length / 2);
    const mark = this.#mark;
    this.#mark = undefined;
    const { sampleRate } = this.#format;
    return { audioBytes, samples, sampleRate, startSample, ...(mark && { mark }) };
  }
}

/**
 * @param {Mark | undefined} before
 * @param {Mark} mark
 * @returns {Mark}
 */
function joined(before, mark) {
  if (!before) return mark;
  const words = [...(before.words ?? []), ...(mark.words ?? [])];
  return { ...mark, text: before.text + mark.text, start: before.start, words };
}

function noUploadError() {
  return new StreamError(
    "protocol_error",
    "The server takes no text while it speaks: give the whole text as one string.",
  );
}
