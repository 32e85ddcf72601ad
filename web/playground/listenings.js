/**
 * What this page listens to: a microphone, a file, or its own voice, one at a time. State only; panels draw it.
 * Everything goes through the public SDK, and a receipt holds only what the server's terminal said. A microphone
 * is open no longer than it is listened to.
 *
 * @typedef {import("./new-listening.js").Listening} Listening
 * @typedef {import("./new-listening.js").ListeningState} ListeningState
 * @typedef {import("./new-listening.js").Options} Options
 */

import { keepStop, showsSlotBack, stoppedText, troubleFrom } from "./ending.js";
import { plural } from "./format.js";
import { MICROPHONE, onceGone } from "./microphone.js";
import {
  blankListening,
  firstMs,
  isListening,
  isOpen,
  samplesOf,
  VOICE_RATE,
} from "./new-listening.js";

/** Sound alone is drawn ten times a second, however often it is measured: the model needs the rest of the time. */
const DRAWN_SECONDS = 0.1;

export class Listenings {
  #store;
  #client;
  #announce;
  #onEdge;
  #microphone;

  /**
   * @param {import("./store.js").Store} store
   * @param {() => import("../sdk/types.d.ts").Plait} client
   * @param {(text: string) => void} announce
   * @param {() => void} onEdge  a stream started or ended: counters are worth reading now
   * @param {typeof MICROPHONE} microphone
   */
  constructor(store, client, announce, onEdge, microphone = MICROPHONE) {
    this.#store = store;
    this.#client = client;
    this.#announce = announce;
    this.#onEdge = onEdge;
    this.#microphone = microphone;
  }

  /**
   * From the microphone, once the browser gives it. What was shown before stays until then.
   * @param {Options} options @param {Listening | null} before  to go on from
   */
  async record(options, before = null) {
    const { state } = this.#store;
    if (state.asking || isListening(state.listening)) return;
    const asking = {};
    state.asking = asking;
    state.microphoneTrouble = null;
    this.#store.changed("listening");
    try {
      const media = await this.#microphone.open(options.device ?? "");
      // Thought better of it in the meantime.
      if (state.asking !== asking) this.#microphone.close(media);
      else this.#start(blankListening({ kind: "microphone" }, options, before), () => media);
    } catch (error) {
      const { code = "internal", message = String(error) } = /** @type {any} */ (error);
      if (state.asking === asking) state.microphoneTrouble = { code, message };
    }
    if (state.asking === asking) state.asking = null;
    this.#store.changed("listening");
  }

  /** @param {File} file @param {Options} options */
  transcribe(file, options) {
    if (!this.#ready()) return;
    this.#start(blankListening({ kind: "file", file }, options), () => file);
  }

  /** The server speaks, and listens to itself while it does. @param {string} text @param {Options} options */
  overhear(text, options) {
    if (!this.#ready()) return;
    const voice = () => samplesOf(this.#client().tts.synthesize({ text }));
    this.#start(blankListening({ kind: "voice", text }, options), voice, VOICE_RATE);
  }

  /** The same file from its beginning; a recording goes on where it ended. @param {Options} options */
  again(options) {
    const { listening } = this.#store.state;
    if (!listening) return;
    const { source } = listening;
    if (source.kind === "microphone") void this.record(options, listening);
    else if (source.kind === "file") this.transcribe(source.file, options);
    else this.overhear(source.text, options);
  }

  /** No more is said: all that was heard becomes final. */
  finish() {
    const { listening } = this.#store.state;
    if (!listening || !isOpen(listening)) return;
    listening.state = "finishing";
    this.#store.changed("listening");
    listening.stream?.stopInput(); // the microphone closes once the last of it has come
  }

  /** Freezes the text in this tick; the receipt comes with the terminal. @param {Listening | null} listening */
  stop(listening) {
    this.stopAsking();
    if (!listening?.stream || !isListening(listening) || listening.state === "stopping") return;
    listening.state = "stopping";
    this.#store.changed("listening", "heard");
    listening.stream.cancel().then((receipt) => this.#stopped(listening, receipt));
    this.#closeMicrophone(listening);
    this.#store.flush();
  }

  /** The browser may still show its question; what it answers is not wanted any more. */
  stopAsking() {
    const { state } = this.#store;
    if (!state.asking) return;
    state.asking = null;
    this.#store.changed("listening");
  }

  /** What Esc means. */
  focused() {
    const { listening } = this.#store.state;
    return listening && isListening(listening) && listening.state !== "stopping" ? listening : null;
  }

  stopAll() {
    this.stop(this.#store.state.listening);
  }

  /** A frame of this stream arrived; its state may have moved. @param {number} id */
  noticeFrame(id) {
    const { listening } = this.#store.state;
    if (listening?.stream?.id !== id || listening.state !== "pending") return;
    if (listening.stream.state === "streaming") this.#began(listening);
    else this.#store.changed("listening");
  }

  /** New figures of the server: they may show that a late release is over. */
  noticeSample() {
    const { listening, sample } = this.#store.state;
    if (!listening || !sample || listening.slotBack || !showsSlotBack(listening, sample)) return;
    listening.slotBack = true;
    this.#store.changed("listening");
  }

  #ready() {
    this.stopAsking();
    return !isListening(this.#store.state.listening);
  }

  /**
   * @param {Listening} listening
   * @param {() => import("../sdk/types.d.ts").LiveParams["source"]} open
   * @param {number} [sampleRate]  of samples that do not say it themselves
   */
  #start(listening, open, sampleRate) {
    const { state } = this.#store;
    state.listening = listening;
    state.microphoneTrouble = null;
    this.#store.changed("listening", "heard");
    try {
      const source = open();
      if (listening.source.kind === "microphone") this.#watch(listening, source);
      const stream = this.#client().transcribe.live({
        source,
        words: true,
        events: true,
        ...(sampleRate && { sampleRate }),
        ...(listening.options.language && { language: listening.options.language }),
      });
      listening.stream = stream;
      stream.on("level", (level) => this.#heardSound(listening, level));
      stream.on("speech", (event) => this.#heardSpeech(listening, event));
      stream.on("input", () => this.#inputMoved(listening));
      void this.#read(listening, stream);
    } catch (error) {
      this.#failed(listening, error);
    }
  }

  /** @param {Listening} listening @param {any} media */
  #watch(listening, media) {
    listening.media = media;
    onceGone(media, (message) => {
      if (!isOpen(listening)) return;
      listening.note = message;
      this.finish();
    });
  }

  /**
   * @param {Listening} listening
   * @param {import("../sdk/types.d.ts").TranscriptStream} stream
   */
  async #read(listening, stream) {
    // Once stopped, the word is with stop().
    const mine = () => isListening(listening) && listening.state !== "stopping";
    try {
      for await (const segment of stream) if (mine()) this.#received(listening, segment);
      const end = await stream.done;
      if (mine()) this.#completed(listening, end);
    } catch (error) {
      const end = await stream.done;
      if (!mine()) return;
      listening.usage = end.usage;
      if (end.state === "cancelled") this.#stopped(listening, end);
      else this.#failed(listening, error);
    }
  }

  /** @param {Listening} listening */
  #began(listening) {
    listening.state = "streaming";
    this.#store.changed("listening");
    const recording = listening.source.kind === "microphone";
    this.#announce(recording ? "Recording." : "Transcribing.");
    this.#onEdge();
  }

  /** @param {Listening} listening @param {{ peak: number, at: number }} level */
  #heardSound(listening, { peak, at }) {
    listening.heardAt ??= performance.now() - at * 1000;
    const { levels, beforeSeconds } = listening;
    const drawn = Math.floor(levels.seconds / DRAWN_SECONDS);
    levels.push(peak, beforeSeconds + at);
    if (Math.floor(levels.seconds / DRAWN_SECONDS) > drawn) this.#store.changed("heard");
  }

  /** @param {Listening} listening @param {import("../sdk/types.d.ts").SpeechEvent} event */
  #heardSpeech(listening, { type, at }) {
    if (type === "started") listening.talk.begin(listening.beforeSeconds + at);
    else listening.talk.end(listening.beforeSeconds + at);
    this.#store.changed("heard");
  }

  /** @param {Listening} listening */
  #inputMoved(listening) {
    if (listening.stream?.input === "ended") this.#closeMicrophone(listening);
    this.#store.changed("listening");
  }

  /** @param {Listening} listening @param {import("../sdk/types.d.ts").Segment} segment */
  #received(listening, segment) {
    if (listening.state === "pending") this.#began(listening);
    listening.items += 1;
    listening.lagMs = segment.lagMs ?? null;
    if (segment.text !== "") listening.firstMs ??= firstMs(listening, segment);
    listening.transcript.take(segment);
    this.#store.changed("heard");
  }

  /** @param {Listening} listening @param {import("../sdk/types.d.ts").End} end */
  #completed(listening, end) {
    listening.usage = end.usage;
    listening.timing = end.timing;
    if (end.state === "completed") listening.finishReason = end.finishReason ?? null;
    this.#ended(listening, "completed");
    this.#announce(`Finished: ${plural(listening.transcript.spoken.length, "segment")}.`);
  }

  /** @param {Listening} listening @param {import("../sdk/types.d.ts").Cancel} receipt */
  #stopped(listening, receipt) {
    listening.usage = receipt.usage ?? listening.usage;
    listening.receipt = receipt;
    this.#ended(listening, "cancelled");
    keepStop(this.#store.state.listeningStops, listening);
    this.#announce(stoppedText("Listening", receipt));
  }

  /** @param {Listening} listening @param {any} error  a PlaitError, or what the browser threw */
  #failed(listening, error) {
    listening.trouble = troubleFrom(error);
    this.#ended(listening, "errored");
    this.#announce(`Listening failed: ${listening.trouble.message}`);
  }

  /** @param {Listening} listening @param {ListeningState} state */
  #ended(listening, state) {
    listening.state = state;
    listening.endedAt = performance.now();
    listening.talk.end(listening.levels.seconds);
    this.#closeMicrophone(listening);
    this.#store.changed("listening", "heard");
    this.#onEdge();
  }

  /** @param {Listening} listening */
  #closeMicrophone(listening) {
    this.#microphone.close(listening.media);
    listening.media = null;
  }
}
