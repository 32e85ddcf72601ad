/**
 * What this page speaks: the panel's speech, a voice's preview, and answers of the Chat panel. State only; panels
 * draw it. Everything goes through the public SDK, and a receipt holds only what the server's terminal said.
 * One of a kind sounds at a time: two voices at once would be noise.
 *
 * @typedef {"pending" | "streaming" | "sounding" | "stopping" | "completed" | "cancelled" | "errored"} SpeechState
 *   sounding: the server is done, the listener not yet
 *
 * @typedef {object} SpeechAsk
 * @property {string | AsyncIterable<string>} text
 * @property {string} [voice]
 * @property {number} [speed]
 *
 * @typedef {object} Speech
 * @property {"speech"} kind
 * @property {SpeechAsk} ask
 * @property {SpeechState} state
 * @property {import("../sdk/types.d.ts").SpeechStream | null} stream
 * @property {import("../sdk/types.d.ts").Playback | null} playback
 * @property {import("../sdk/types.d.ts").AudioChunk[]} chunks  all that arrived, for the download
 * @property {import("../sdk/types.d.ts").Mark[]} marks
 * @property {import("./peaks.js").Peaks} peaks
 * @property {number} items
 * @property {number} sentAt
 * @property {number | null} firstAt
 * @property {number | null} endedAt
 * @property {import("../sdk/types.d.ts").Usage | null} usage
 * @property {import("../sdk/types.d.ts").Timing | null} timing
 * @property {string | null} finishReason
 * @property {import("../sdk/types.d.ts").Cancel | null} receipt
 * @property {boolean} slotBack  a release that was late is over: the server's gauges show it
 * @property {import("./chats.js").Trouble | null} trouble
 */

import { keepStop, showsSlotBack, stoppedText, troubleFrom } from "./ending.js";
import { Peaks } from "./peaks.js";
import { textOf } from "./spoken.js";

/** Until the listener has heard all, or it was stopped. @param {Speech | null} speech */
export function isSpeaking(speech) {
  const running = ["pending", "streaming", "sounding", "stopping"];
  return speech !== null && running.includes(speech.state);
}

export class Speeches {
  #store;
  #client;
  #announce;
  #onEdge;

  /**
   * @param {import("./store.js").Store} store
   * @param {() => import("../sdk/types.d.ts").Plait} client
   * @param {(text: string) => void} announce
   * @param {() => void} onEdge  a stream started or ended: counters are worth reading now
   */
  constructor(store, client, announce, onEdge) {
    this.#store = store;
    this.#client = client;
    this.#announce = announce;
    this.#onEdge = onEdge;
  }

  /** The panel's speech; what still sounds stops. @param {SpeechAsk} ask */
  speak(ask) {
    this.#silenceAll();
    this.#store.state.speech = this.#start(ask, true);
    this.#store.changed("speech");
  }

  /** A voice says its name. @param {string} voice @param {string} text */
  preview(voice, text) {
    this.#silenceAll();
    this.#store.state.preview = { voice, speech: this.#start({ text, voice }, false) };
    this.#store.changed("speech");
  }

  /**
   * An answer is spoken while it is written, or not any more.
   * @param {import("./chats.js").Chat} chat
   */
  toggleAnswer(chat) {
    const { voice } = this.#store.state;
    const again = !this.speaks(chat);
    this.#silenceAll();
    if (!again) return;
    const ask = { text: textOf(chat), ...(voice && { voice }) };
    this.#store.state.spokenAnswer = { key: chat.key, speech: this.#start(ask, false) };
    this.#store.changed("speech", "chats");
  }

  /** @param {import("./chats.js").Chat} chat */
  speaks(chat) {
    const speech = this.#speechOf(chat);
    return isSpeaking(speech) && speech?.state !== "stopping";
  }

  /** Why its answer was not spoken; "" nothing went wrong. @param {import("./chats.js").Chat} chat */
  troubleOf(chat) {
    return this.#speechOf(chat)?.trouble?.message ?? "";
  }

  /** @param {import("./chats.js").Chat} chat */
  #speechOf({ key }) {
    const { spokenAnswer } = this.#store.state;
    return spokenAnswer?.key === key ? spokenAnswer.speech : null;
  }

  /** Silent in this tick; the receipt comes with the terminal. @param {Speech | null} speech */
  stop(speech) {
    if (!speech || !isSpeaking(speech) || speech.state === "stopping") return;
    const { playback } = speech;
    if (!playback) return;
    speech.state = "stopping";
    this.#store.changed("speech", "chats");
    playback.stop().then((receipt) => this.#stopped(speech, receipt));
    this.#store.flush();
  }

  /** What Esc means: the panel's speech if it sounds, else whatever does. */
  focused() {
    return this.#all().find((one) => isSpeaking(one) && one.state !== "stopping") ?? null;
  }

  stopAll() {
    for (const speech of this.#all()) this.stop(speech);
  }

  /** A frame of this stream arrived; its state may have moved. @param {number} id */
  noticeFrame(id) {
    const speech = this.#all().find(({ stream }) => stream?.id === id);
    if (speech?.stream?.state === "streaming" && speech.state === "pending") this.#began(speech);
    else if (speech?.state === "pending") this.#store.changed("speech");
  }

  /** New figures of the server: they may show that a late release is over. */
  noticeSample() {
    const { speech, sample } = this.#store.state;
    if (!speech || !sample || speech.slotBack || !showsSlotBack(speech, sample)) return;
    speech.slotBack = true;
    this.#store.changed("speech");
  }

  /** Those that may still sound. @returns {Speech[]} */
  #all() {
    const { speech, preview, spokenAnswer } = this.#store.state;
    return [speech, preview?.speech, spokenAnswer?.speech].filter((one) => one != null);
  }

  #silenceAll() {
    for (const speech of this.#all()) this.stop(speech);
  }

  /** @param {SpeechAsk} ask @param {boolean} told  a screen reader is told */
  #start(ask, told) {
    const speech = blankSpeech(ask);
    try {
      const stream = this.#client().tts.synthesize({ ...ask, marks: true });
      speech.stream = stream;
      const playback = stream.play();
      speech.playback = playback;
      playback.on("chunk", (chunk) => this.#received(speech, chunk));
      playback.on("state", () => this.#store.changed("speech"));
      void this.#follow(speech, stream, playback, told);
    } catch (error) {
      this.#failed(speech, error);
    }
    return speech;
  }

  /**
   * @param {Speech} speech
   * @param {import("../sdk/types.d.ts").SpeechStream} stream
   * @param {import("../sdk/types.d.ts").Playback} playback
   * @param {boolean} told
   */
  async #follow(speech, stream, playback, told) {
    const mine = () => isSpeaking(speech) && speech.state !== "stopping";
    const end = await stream.done;
    speech.usage = end.usage;
    speech.timing = end.timing;
    if (mine() && end.state === "completed") {
      speech.state = "sounding";
      speech.finishReason = end.finishReason ?? null;
      this.#store.changed("speech");
    }
    this.#onEdge();
    try {
      await playback.finished;
      if (!mine()) return;
      this.#ended(speech, "completed");
      if (told) this.#announce("Speech finished.");
    } catch (error) {
      if (!mine()) return;
      // Also where its text was stopped: then it was this page that stopped it.
      if (end.state === "cancelled") this.#stopped(speech, end);
      else this.#failed(speech, error);
    }
  }

  /** @param {Speech} speech */
  #began(speech) {
    speech.state = "streaming";
    this.#store.changed("speech");
    if (speech === this.#store.state.speech) this.#announce("Speech started.");
    this.#onEdge();
  }

  /** @param {Speech} speech @param {import("../sdk/types.d.ts").AudioChunk} chunk */
  #received(speech, chunk) {
    if (speech.state === "pending") this.#began(speech);
    if (chunk.samples.length > 0) speech.firstAt ??= performance.now();
    speech.items += 1;
    speech.chunks.push(chunk);
    speech.peaks.push(chunk.samples, chunk.sampleRate);
    if (chunk.mark) speech.marks.push(chunk.mark);
    this.#store.changed("audio");
  }

  /** @param {Speech} speech @param {import("../sdk/types.d.ts").Cancel} receipt */
  #stopped(speech, receipt) {
    speech.usage = receipt.usage ?? speech.usage;
    speech.receipt = receipt;
    this.#ended(speech, "cancelled");
    if (speech !== this.#store.state.speech) return;
    keepStop(this.#store.state.speechStops, speech);
    this.#announce(stoppedText("Speech", receipt));
  }

  /** @param {Speech} speech @param {any} error  a PlaitError, or what the browser threw */
  #failed(speech, error) {
    speech.trouble = troubleFrom(error);
    this.#ended(speech, "errored");
    this.#announce(`Speech failed: ${speech.trouble.message}`);
  }

  /** @param {Speech} speech @param {SpeechState} state */
  #ended(speech, state) {
    speech.state = state;
    speech.endedAt = performance.now();
    this.#store.changed("speech", "audio", "chats");
    this.#onEdge();
  }
}

/** @param {SpeechAsk} ask @returns {Speech} */
function blankSpeech(ask) {
  return {
    kind: "speech",
    ask,
    state: "pending",
    stream: null,
    playback: null,
    chunks: [],
    marks: [],
    peaks: new Peaks(),
    items: 0,
    sentAt: performance.now(),
    firstAt: null,
    endedAt: null,
    usage: null,
    timing: null,
    finishReason: null,
    receipt: null,
    slotBack: false,
    trouble: null,
  };
}
