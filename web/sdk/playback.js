/**
 * Playing a speech stream: takes its chunks, hands them to the audio thread at once, and tells the stream what
 * came out of the speaker, so that the server computes no more than a window ahead of the listener.
 * A context the browser keeps silent (autoplay) is waited for: nothing is lost, `state` says "blocked", and
 * the next gesture on the page starts it. Ends once: finished, stopped or failed.
 * Does not know the wire.
 */

/** @import { AudioChunk, PlaybackEvents, PlaybackState, Playback as PublicPlayback, Cancel } from "./types.d.ts" */
/** @import { Heard, PlayoutReport, Runtime, Timer } from "./internal.d.ts" */

import { onAbort } from "./abort-watch.js";
import {
  holdContext,
  latencySeconds,
  loadModule,
  PLAYOUT_MODULE,
  releaseContext,
} from "./audio-context.js";
import { ContextWatch } from "./context-watch.js";
import { Emitter } from "./emitter.js";
import { PlaybackClock } from "./playback-clock.js";

const DEFAULT_START_BUFFER_MS = 120;
/** A stream nobody hears must still show the server that somebody is there: it gives up after 30 s. */
const SIGN_OF_LIFE_MS = 10_000;

/** @implements {PublicPlayback} */
export class Playback {
  #stream;
  #context;
  #runtime;
  #startSeconds;
  #destination;
  #clock = new PlaybackClock();
  /** @type {Emitter<PlaybackEvents>} */
  #emitter = new Emitter(["state", "chunk"]);
  /** @type {PlaybackState} */
  #state = "waiting";
  #moving = false;
  #underruns = 0;
  #startSamples = 0;
  /** All was played, and the last of it is on its way to the ear. */
  #draining = false;
  #over = false;
  #sampleRate = 0;
  #supplied = 0;
  /** How many there will be, once that is known. */
  #totalSamples = Number.POSITIVE_INFINITY;
  /** What was heard when it ended; null: goes on. @type {number | null} */
  #heardMs = null;
  /** What the stream failed with; told once all before it has been heard. @type {{ reason: unknown } | null} */
  #failure = null;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  #watch;
  /** To the signal. */
  #stopListening;
  /** @type {Timer | null} */
  #timer = null;
  /** @type {() => void} */
  #resolve = () => {};
  /** @type {(reason: unknown) => void} */
  #reject = () => {};
  /** @type {Promise<void>} */
  #finished = new Promise((resolve, reject) => {
    this.#resolve = resolve;
    this.#reject = reject;
  });

  /**
   * @param {AsyncIterable<AudioChunk>} chunks the stream's one iteration
   * @param {Heard} stream
   * @param {AudioContext} context
   * @param {import("./types.d.ts").PlaybackOptions} options
   * @param {Runtime} runtime
   */
  constructor(chunks, stream, context, options, runtime) {
    this.#stream = stream;
    this.#context = context;
    this.#runtime = runtime;
    this.#startSeconds = (options.startBufferMs ?? DEFAULT_START_BUFFER_MS) / 1000;
    this.#destination = options.destination ?? this.#context.destination;
    this.#finished.catch(() => {}); // who does not look must not be told by "unhandledrejection"
    this.#stopListening = onAbort(stream.signal, () => this.#onAbort());
    holdContext(context);
    this.#watch = new ContextWatch(context, runtime, {
      blocked: (blocked) => this.#onBlocked(blocked),
      closed: () => this.#onClosed(),
    });
    void this.#run(chunks, loadModule(this.#context, options.workletUrl ?? PLAYOUT_MODULE));
  }

  get state() {
    return this.#state;
  }

  get underruns() {
    return this.#underruns;
  }

  get finished() {
    return this.#finished;
  }

  get heardMs() {
    if (this.#heardMs !== null) return this.#heardMs;
    if (this.#sampleRate === 0) return 0;
    const now = this.#context.currentTime - latencySeconds(this.#context);
    return (this.#clock.positionAt(now, this.#sampleRate) / this.#sampleRate) * 1000;
  }

  /**
   * @template {keyof PlaybackEvents} K
   * @param {K} type
   * @param {(event: PlaybackEvents[K]) => void} listener
   */
  on(type, listener) {
    return this.#emitter.on(type, listener);
  }

  /** From a gesture's handler: lets a blocked context start. The page's gestures do it by themselves. */
  async resume() {
    await this.#context.resume();
  }

  /** @returns {Promise<Cancel>} */
  stop() {
    this.silence(null);
    return this.#stream.cancel();
  }

  /**
   * The consumer left: fades out within milliseconds and is over. `failure` is what `finished` rejects with.
   *
   * @param {{ reason: unknown } | null} failure
   */
  silence(failure) {
    if (this.#over) return;
    this.#heardMs = this.heardMs;
    this.#node?.port.postMessage({ stop: true });
    this.#conclude("stopped", failure);
  }

  /**
   * @param {AsyncIterable<AudioChunk>} chunks
   * @param {Promise<void>} module
   */
  async #run(chunks, module) {
    try {
      for await (const chunk of chunks) {
        this.#emitter.emit("chunk", chunk);
        await module.catch((reason) => this.#fail(reason));
        if (this.#over) return;
        this.#supply(chunk);
      }
    } catch (reason) {
      this.#failure = { reason };
    }
    if (this.#over) return;
    this.#totalSamples = this.#supplied;
    if (this.#node) this.#node.port.postMessage({ end: true });
    else this.#conclude(this.#failure ? "failed" : "finished", this.#failure);
  }

  /** @param {AudioChunk} chunk */
  #supply({ samples, sampleRate }) {
    if (samples.length === 0) return;
    this.#node ??= this.#createNode(sampleRate);
    const copy = samples.slice(); // the caller's stays whole when this one goes to the audio thread
    this.#supplied += copy.length;
    this.#node.port.postMessage({ samples: copy }, [copy.buffer]);
    this.#tellHeard();
  }

  /** What must lie ready before it starts is the player's, not the listener's: else a small window never would. */
  #tellHeard() {
    this.#stream.heardThrough(this.#clock.lastPosition + Math.ceil(this.#startSamples));
  }

  /** @param {number} sourceRate */
  #createNode(sourceRate) {
    this.#sampleRate = sourceRate;
    this.#startSamples = this.#startSeconds * sourceRate;
    const node = new AudioWorkletNode(this.#context, "plait-playout", {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { sourceRate, startSeconds: this.#startSeconds },
    });
    node.port.onmessage = ({ data }) => this.#receive(data);
    node.onprocessorerror = () => this.#fail(new Error("The browser's audio thread failed."));
    node.connect(this.#destination);
    return node;
  }

  /** @param {PlayoutReport} report */
  #receive(report) {
    if (report.finished) this.#node?.disconnect();
    if (this.#over) return;
    this.#clock.note(report);
    this.#underruns = report.underruns;
    this.#startSamples = report.startSamples;
    this.#moving = report.moving;
    this.#tellHeard();
    this.#draining = report.finished;
    this.#showState();
    if (!report.finished) return;
    this.#restartTimer(latencySeconds(this.#context) * 1000, this.#onHeardAll);
  }

  #onHeardAll = () => {
    this.#heardMs = (this.#clock.lastPosition / this.#sampleRate) * 1000;
    this.#conclude(this.#failure ? "failed" : "finished", this.#failure);
  };

  // The context.

  /** @param {boolean} blocked */
  #onBlocked(blocked) {
    if (this.#draining) return;
    this.#timer?.clear();
    if (blocked) this.#restartTimer(SIGN_OF_LIFE_MS, this.#onStillBlocked);
    this.#showState();
  }

  #onClosed() {
    if (this.#draining) return;
    this.#fail(new TypeError("The AudioContext was closed while speech was playing."));
  }

  #onStillBlocked = () => {
    this.#stream.signOfLife();
    this.#restartTimer(SIGN_OF_LIFE_MS, this.#onStillBlocked);
  };

  #onAbort() {
    this.silence({ reason: this.#stream.signal?.reason });
  }

  // Endings.

  /** @param {unknown} reason */
  #fail(reason) {
    if (this.#over) return;
    this.#heardMs = this.heardMs;
    this.#conclude("failed", { reason });
    void this.#stream.cancel(reason);
  }

  /**
   * @param {PlaybackState} state
   * @param {{ reason: unknown } | null} failure
   */
  #conclude(state, failure) {
    this.#over = true;
    this.#timer?.clear();
    this.#watch.stop();
    this.#stopListening();
    releaseContext(this.#context, this.#runtime);
    this.#setState(state);
    if (failure) this.#reject(failure.reason);
    else this.#resolve();
  }

  #showState() {
    const atEnd = this.#clock.lastPosition >= this.#totalSamples;
    if (this.#watch.blocked && !this.#draining) this.#setState("blocked");
    else this.#setState(this.#moving || atEnd ? "playing" : "waiting");
  }

  /** @param {PlaybackState} state */
  #setState(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.#emitter.emit("state", { state });
  }

  /**
   * @param {number} delayMs
   * @param {() => void} callback
   */
  #restartTimer(delayMs, callback) {
    this.#timer?.clear();
    this.#timer = this.#runtime.after(delayMs, callback);
  }
}
