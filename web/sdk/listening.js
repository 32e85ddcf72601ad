/**
 * What one transcription knows beside its stream: where its audio comes from, how it goes up, what its items are, and
 * who is told at once. Does not know connections; `transport` sends.
 */

/** @import { AudioFormat, InputState, LiveParams, Segment, Stream, TranscriptEvents } from "./types.d.ts" */
/** @import { Decoder, InputReports, Runtime, StreamMessage, StreamObserver, Transport } from "./internal.d.ts" */

import { inputOf } from "./audio-source.js";
import { BINARY_KINDS, HEADER_BYTES } from "./binary.js";
import { Emitter } from "./emitter.js";
import { StreamError } from "./errors.js";
import { LevelMeter } from "./level-meter.js";
import { SamplePieces, sampleBytes } from "./sample-pieces.js";
import { Upload } from "./upload.js";

/** A second of speech at 16 kHz: a cancel waits for no more than a few of these. */
const MAX_FRAME_BYTES = 32_768;
/** With so much still in the socket, it is behind. */
const MAX_SOCKET_BYTES = 131_072;

/**
 * Made before the stream, which reports to it from its constructor on.
 *
 * @implements {Decoder<Segment>}
 * @implements {StreamObserver}
 */
export class Listening {
  /** @type {Emitter<TranscriptEvents>} */
  #emitter = new Emitter(["speech", "level", "input"]);
  /** @type {Stream<Segment> | null} */
  #stream = null;
  /** @type {AudioFormat | null} */
  #format = null;
  /** @type {LevelMeter | null} */
  #meter = null;
  #over = false;
  /** @type {InputState} */
  state = "waiting";
  input;
  upload;

  /**
   * @param {Transport} transport
   * @param {LiveParams} request
   * @param {Runtime} runtime
   */
  constructor(transport, request, runtime) {
    /** @type {InputReports} */
    const reports = {
      state: (state) => this.#tell(state),
      level: (level) => this.#emitter.emit("level", level),
      fail: (reason) => this.#fail(reason),
    };
    this.input = inputOf(request, reports, runtime);
    const { format } = this.input;
    if (typeof format !== "function") this.#format = format;
    const id = () => /** @type {Stream<Segment>} */ (this.#stream).id;
    this.upload = new Upload(this.input, new SamplePieces(this.#format?.encoding ?? "pcm_s16le"), {
      get maxBytes() {
        return Math.min(MAX_FRAME_BYTES, transport.maxBinaryBytes - HEADER_BYTES);
      },
      get full() {
        return transport.bufferedBytes > MAX_SOCKET_BYTES;
      },
      send: (piece) => {
        transport.sendBinary(
          { kind: BINARY_KINDS.audioIn, flags: 0, id: id(), seq: 0, aux: 0 },
          piece,
        );
        this.#measure(piece);
      },
      end: () => transport.send({ type: "end", id: id() }),
      fail: (reason) => this.#fail(reason),
      after: runtime.after,
    });
  }

  /** @param {Stream<Segment>} stream */
  begin(stream) {
    this.#stream = stream;
    if (!this.#over) this.input.begin();
  }

  /** @param {() => Promise<AudioFormat>} format */
  async formatOf(format) {
    this.#format = await format();
    return this.#format;
  }

  get bufferedMs() {
    return this.#milliseconds(this.input.queuedBytes + this.upload.pendingBytes);
  }

  get sentMs() {
    return this.#milliseconds(this.upload.sentBytes);
  }

  stopInput() {
    if (this.input.finish()) return; // it says itself when the last of it has come
    this.upload.finish();
    this.#tell("ended");
  }

  /**
   * @template {keyof TranscriptEvents} K
   * @param {K} type
   * @param {(event: TranscriptEvents[K]) => void} listener
   */
  on(type, listener) {
    return this.#emitter.on(type, listener);
  }

  // StreamObserver: what the wire says.

  /** @param {Extract<StreamMessage, { type: "accepted" }>} message */
  accepted({ windowBytes }) {
    if (windowBytes !== undefined) this.upload.grant(windowBytes);
  }

  /** @param {Extract<StreamMessage, { type: "input_ack" }>} message */
  inputAck({ bytes, windowBytes }) {
    this.upload.grant(bytes + windowBytes);
  }

  started() {
    if (this.upload.waits) this.#fail(noInputError());
  }

  left() {
    this.#end();
    return undefined;
  }

  ended() {
    this.#end();
  }

  // Decoder: what the items are.

  /** @param {any} data */
  item(data) {
    if (typeof data !== "object" || data === null) return undefined;
    if (data.segment) return segmentOf(data.segment);
    const [, type] = /^speech_(started|stopped)$/.exec(data.event) ?? [];
    if (type) this.#emitter.emit("speech", /** @type {any} */ ({ type, at: data.at }));
    return typeof data.event === "string" ? null : undefined;
  }

  end() {
    return undefined;
  }

  /** What is captured was measured when it was. @param {Uint8Array} piece */
  #measure(piece) {
    if (this.input.metered || !this.#format) return;
    this.#meter ??= new LevelMeter(this.#format);
    this.#meter.take(piece, (level) => this.#emitter.emit("level", level));
  }

  /** @param {unknown} reason */
  #fail(reason) {
    void this.#stream?.cancel(reason);
  }

  #end() {
    this.#over = true;
    this.upload.stop();
    this.#tell("ended");
  }

  /** @param {InputState} state */
  #tell(state) {
    if (state === this.state || this.state === "ended") return;
    this.state = state;
    this.#emitter.emit("input", { state });
  }

  /** @param {number} bytes */
  #milliseconds(bytes) {
    if (!this.#format) return 0;
    const { sampleRate, channels, encoding } = this.#format;
    return (bytes / sampleBytes(encoding) / channels / sampleRate) * 1000;
  }
}

/**
 * @param {any} wire
 * @returns {Segment}
 */
function segmentOf(wire) {
  const { is_final: isFinal, lag_ms: lagMs, ...rest } = wire;
  return { ...rest, isFinal, lagMs };
}

function noInputError() {
  return new StreamError(
    "protocol_error",
    "The server broke the protocol: it gave a transcription no room for audio.",
  );
}
