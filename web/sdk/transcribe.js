/**
 * The transcribe method: audio goes up while it is captured or read, and segments come that are revised until they are
 * final. What was heard when, and what the server says of speech, is told as it happens; segments wait for the reader.
 * Does not know connections; `transport` is handed to Stream.
 */

/** @import { AudioFormat, FileParams, InputState, LiveParams, Segment, StreamOptions, Transcript, TranscriptEvents, TranscriptStream as PublicTranscriptStream } from "./types.d.ts" */
/** @import { AudioInput, Decoder, InputReports, Runtime, StreamMessage, StreamObserver, Transport } from "./internal.d.ts" */

import { CaptureInput } from "./capture.js";
import { HEADER_BYTES, snakeKeys } from "./codec.js";
import { withPartial } from "./consume.js";
import { Emitter } from "./emitter.js";
import { InvalidRequestError, StreamError } from "./errors.js";
import { FileInput } from "./file-input.js";
import { LevelMeter } from "./level-meter.js";
import { SampleInput } from "./sample-input.js";
import { SamplePieces, sampleBytes } from "./sample-pieces.js";
import { Stream } from "./stream.js";
import { joined } from "./transcript.js";
import { Upload } from "./upload.js";

/** A second of speech at 16 kHz: a cancel waits for no more than a few of these. */
const MAX_FRAME_BYTES = 32_768;
/** With so much still in the socket, it is behind. */
const MAX_SOCKET_BYTES = 131_072;

/**
 * @param {Transport} transport
 * @param {LiveParams & StreamOptions} request
 * @param {Runtime} runtime
 * @returns {PublicTranscriptStream}
 */
export function transcribeLive(transport, request, runtime) {
  const listening = new Listening(transport, request, runtime);
  try {
    const stream = new TranscriptStream(transport, request, listening);
    listening.begin(stream);
    return stream;
  } catch (error) {
    listening.upload.stop();
    throw error;
  }
}

/**
 * @param {Transport} transport
 * @param {FileParams & StreamOptions} request
 * @param {Runtime} runtime
 * @returns {Promise<Transcript>}
 */
export async function transcribeFile(transport, { file, ...request }, runtime) {
  const source = isBlob(file) ? file : blobOf(file);
  /** @type {Segment[]} */
  const segments = [];
  const transcript = () => ({ text: joined(segments), segments });
  try {
    for await (const segment of transcribeLive(
      transport,
      { interim: false, ...request, source },
      runtime,
    )) {
      if (segment.isFinal && segment.text.trim()) segments.push(segment);
    }
  } catch (error) {
    throw withPartial(error, transcript());
  }
  return transcript();
}

/**
 * @extends {Stream<Segment>}
 * @implements {PublicTranscriptStream}
 */
class TranscriptStream extends Stream {
  #listening;

  /**
   * @param {Transport} transport
   * @param {LiveParams & StreamOptions} request
   * @param {Listening} listening
   */
  constructor(transport, request, listening) {
    const { source, context, workletUrl, signal, window, deadlineMs, priority, ...rest } = request;
    const options = { signal, window, deadlineMs, priority };
    const { format } = listening.input;
    const params =
      typeof format === "function"
        ? async () => snakeKeys({ ...rest, ...(await listening.formatOf(format)) })
        : snakeKeys({ ...rest, ...format });
    super(transport, {
      method: "transcribe",
      params,
      options,
      decoder: listening,
      observer: listening,
    });
    this.#listening = listening;
  }

  get input() {
    return this.#listening.state;
  }

  get bufferedMs() {
    return this.#listening.bufferedMs;
  }

  get sentMs() {
    return this.#listening.sentMs;
  }

  get durationMs() {
    return this.#listening.input.durationMs;
  }

  stopInput() {
    this.#listening.stopInput();
  }

  /**
   * @template {keyof TranscriptEvents} K
   * @param {K} type
   * @param {(event: TranscriptEvents[K]) => void} listener
   */
  on(type, listener) {
    return this.#listening.on(type, listener);
  }
}

/**
 * What one transcription knows beside its stream: where its audio comes from, how it goes up, what its items are.
 * Made before the stream, which reports to it from its constructor on.
 *
 * @implements {Decoder<Segment>}
 * @implements {StreamObserver}
 */
class Listening {
  /** @type {Emitter<TranscriptEvents>} */
  #emitter = new Emitter(["speech", "level", "input"]);
  /** @type {TranscriptStream | null} */
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
    const id = () => /** @type {TranscriptStream} */ (this.#stream).id;
    this.upload = new Upload(this.input, new SamplePieces(this.#format?.encoding ?? "pcm_s16le"), {
      get maxBytes() {
        return Math.min(MAX_FRAME_BYTES, transport.maxBinaryBytes - HEADER_BYTES);
      },
      get full() {
        return transport.bufferedBytes > MAX_SOCKET_BYTES;
      },
      send: (piece) => {
        transport.sendAudio(id(), piece);
        this.#measure(piece);
      },
      end: () => transport.send({ type: "end", id: id() }),
      fail: (reason) => this.#fail(reason),
      after: runtime.after,
    });
  }

  /** @param {TranscriptStream} stream */
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
 * @param {LiveParams} request
 * @param {InputReports} reports
 * @param {Runtime} runtime
 * @returns {AudioInput}
 */
function inputOf(request, reports, runtime) {
  const { source } = request;
  if (isMediaStream(source)) return new CaptureInput(source, request, reports, runtime);
  if (isBlob(source)) return new FileInput(source, reports);
  return new SampleInput(request, reports);
}

/**
 * Also one of another window.
 *
 * @param {unknown} source
 * @returns {source is MediaStream}
 */
function isMediaStream(source) {
  return typeof source === "object" && source !== null && "getAudioTracks" in source;
}

/**
 * @param {unknown} source
 * @returns {source is Blob}
 */
function isBlob(source) {
  return typeof source === "object" && source !== null && "slice" in source && "size" in source;
}

/**
 * @param {unknown} file
 * @returns {Blob}
 */
function blobOf(file) {
  if (file instanceof ArrayBuffer || ArrayBuffer.isView(file)) {
    return new Blob([/** @type {ArrayBuffer} */ (file)]);
  }
  throw new InvalidRequestError("file must be a File or Blob, or a file's bytes", {
    param: "file",
  });
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
