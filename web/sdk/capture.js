/**
 * Listening to a MediaStream: its samples as they are captured, at the context's own rate, kept until they are taken.
 * The bound on what is kept is 30 s; beyond it capture fails, aloud: nothing is left out in silence.
 * The MediaStream stays its owner's: no track is stopped here. A track that ends, ends the input.
 * Does not know the wire.
 */

/** @import { AudioFormat, LiveParams } from "./types.d.ts" */
/** @import { AudioInput, CaptureReport, InputReports, Runtime, Timer } from "./internal.d.ts" */

import {
  CAPTURE_MODULE,
  captureContext,
  holdContext,
  loadModule,
  releaseContext,
} from "./audio-context.js";
import { checkedFormat } from "./audio-format.js";
import { ContextWatch } from "./context-watch.js";
import { InvalidRequestError, StreamError } from "./errors.js";

const MAX_QUEUED_SECONDS = 30;
/** The audio thread answers within a block; a context that does not run never does. */
const FLUSH_PATIENCE_MS = 250;
const DONE = { value: undefined, done: /** @type {const} */ (true) };

/** @implements {AudioInput} */
export class CaptureInput {
  #context;
  #track;
  #reports;
  #runtime;
  #module;
  /** @type {CaptureReport["samples"][]} */
  #queue = [];
  #queuedBytes = 0;
  /** Captured in all. */
  #samples = 0;
  /** @type {((result: IteratorResult<unknown, unknown>) => void) | null} */
  #reader = null;
  /** The last block is asked for. */
  #stopping = false;
  /** Nothing more is captured. */
  #over = false;
  #began = false;
  /** @type {ContextWatch | null} */
  #watch = null;
  /** @type {MediaStreamAudioSourceNode | null} */
  #source = null;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  /** @type {Timer | null} */
  #timer = null;

  /** @type {AudioFormat} */
  format;
  durationMs = null;
  metered = true;

  /**
   * @param {MediaStream} stream
   * @param {LiveParams} request
   * @param {InputReports} reports
   * @param {Runtime} runtime
   * @throws {InvalidRequestError} when nothing can be heard of it
   */
  constructor(stream, request, reports, runtime) {
    this.#track = liveTrack(stream);
    this.#context = request.context ?? captureContext();
    this.#reports = reports;
    this.#runtime = runtime;
    this.#module = request.workletUrl ?? CAPTURE_MODULE;
    this.format = formatOf(this.#context, request);
  }

  get queuedBytes() {
    return this.#queuedBytes;
  }

  begin() {
    this.#began = true;
    holdContext(this.#context);
    this.#track.addEventListener("ended", this.#onTrackEnded);
    this.#watch = new ContextWatch(this.#context, this.#runtime, {
      blocked: (blocked) => this.#reports.state(blocked ? "blocked" : this.#openOrWaiting()),
      closed: () =>
        this.#fail(new TypeError("The AudioContext was closed while it was listened to.")),
    });
    loadModule(this.#context, this.#module)
      .then(() => this.#connect())
      .catch((reason) => this.#fail(reason));
  }

  /** The last block is on its way, and then it ends by itself. */
  finish() {
    if (this.#over || this.#stopping) return true;
    this.#stopping = true;
    if (!this.#node) {
      this.#end();
      return true;
    }
    this.#node.port.postMessage("stop");
    this.#timer = this.#runtime.after(FLUSH_PATIENCE_MS, () => this.#end());
    return true;
  }

  // What the upload reads.

  next() {
    const samples = this.#queue.shift();
    if (samples) {
      this.#queuedBytes -= samples.byteLength;
      return Promise.resolve({ value: samples, done: false });
    }
    if (this.#over) return Promise.resolve(DONE);
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  /** The stream is over: what waits is dropped. */
  async return() {
    this.#end();
    this.#queue = [];
    this.#queuedBytes = 0;
    return DONE;
  }

  // The audio thread.

  #connect() {
    if (this.#over) return;
    const { channels, encoding } = this.format;
    const node = new AudioWorkletNode(this.#context, "plait-capture", {
      outputChannelCount: [1],
      channelCount: channels,
      channelCountMode: "explicit",
      channelInterpretation: "speakers",
      processorOptions: { channels, float: encoding === "pcm_f32le" },
    });
    this.#node = node;
    node.port.onmessage = ({ data }) => this.#receive(data);
    node.onprocessorerror = () => this.#fail(new Error("The browser's audio thread failed."));
    // Of the one track: which of several a node takes is the browser's to choose.
    this.#source = this.#context.createMediaStreamSource(new MediaStream([this.#track]));
    this.#source.connect(node);
    node.connect(this.#context.destination); // silent, and kept running by it
  }

  /** @param {CaptureReport} report */
  #receive({ samples, ended, ...level }) {
    if (this.#over) return;
    if (samples.length > 0) this.#put(samples, level);
    // stop() by its owner ends a track without an event.
    if (this.#track.readyState === "ended") this.finish();
    if (ended) this.#end();
  }

  /**
   * @param {CaptureReport["samples"]} samples
   * @param {Pick<CaptureReport, "rms" | "peak" | "time">} level
   */
  #put(samples, level) {
    const { sampleRate, channels } = this.format;
    if (this.#samples === 0) this.#reports.state("open");
    this.#samples += samples.length;
    this.#reports.level({ ...level, at: this.#samples / channels / sampleRate });
    if (this.#reader) {
      this.#reader({ value: samples, done: false });
      this.#reader = null;
      return;
    }
    this.#queue.push(samples);
    this.#queuedBytes += samples.byteLength;
    const limit = MAX_QUEUED_SECONDS * sampleRate * channels * samples.BYTES_PER_ELEMENT;
    if (this.#queuedBytes > limit) this.#fail(overflowError());
  }

  #openOrWaiting() {
    return this.#samples > 0 ? "open" : "waiting";
  }

  #onTrackEnded = () => void this.finish();

  // Endings.

  /** @param {unknown} reason */
  #fail(reason) {
    if (this.#over) return;
    this.#end();
    this.#reports.fail(reason);
  }

  #end() {
    if (this.#over) return;
    this.#over = true;
    this.#timer?.clear();
    this.#watch?.stop();
    this.#track.removeEventListener("ended", this.#onTrackEnded);
    this.#node?.port.postMessage("stop");
    this.#source?.disconnect();
    this.#node?.disconnect();
    if (this.#began) releaseContext(this.#context, this.#runtime);
    this.#reports.state("ended");
    this.#reader?.(DONE);
  }
}

/** @param {MediaStream} stream */
export function liveTrack(stream) {
  const track = stream.getAudioTracks().find(({ readyState }) => readyState === "live");
  if (track) return track;
  throw new InvalidRequestError(
    "This MediaStream has no live audio track: get one with getUserMedia({ audio: true }).",
    { param: "source" },
  );
}

/**
 * @param {AudioContext} context
 * @param {LiveParams} request
 * @returns {AudioFormat}
 */
function formatOf({ sampleRate }, request) {
  const asked = request.sampleRate ?? sampleRate;
  if (asked === sampleRate) return checkedFormat({ ...request, sampleRate });
  throw new InvalidRequestError(
    `A MediaStream is heard at its AudioContext's ${sampleRate} Hz, not at ${asked}: leave sampleRate out.`,
    { param: "sampleRate" },
  );
}

function overflowError() {
  return new StreamError(
    "input_overflow",
    `${MAX_QUEUED_SECONDS} s of audio were captured that the server has not taken: it is too busy, or the ` +
      "connection too slow. Nothing was left out until here. Try again later.",
    { class: "client", retryable: true },
  );
}
