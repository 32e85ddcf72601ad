/**
 * One listening: what is known of it, how it begins, where its sound comes from, how long its first words took. State
 * only.
 *
 * @typedef {"pending" | "streaming" | "finishing" | "stopping" | "completed" | "cancelled" | "errored"} ListeningState
 *   finishing: no more is said; what was heard becomes final
 *
 * @typedef {{ kind: "microphone" } | { kind: "file", file: File } | { kind: "voice", text: string }} Source
 *
 * @typedef {object} Options
 * @property {string} [device]  "" the default one
 * @property {string} [language]  "" detect it
 *
 * @typedef {object} Listening
 * @property {"listening"} kind
 * @property {Source} source
 * @property {Options} options
 * @property {ListeningState} state
 * @property {import("../sdk/types.d.ts").TranscriptStream | null} stream
 * @property {MediaStream | null} media  while the microphone is open
 * @property {import("./transcript.js").Transcript} transcript
 * @property {import("./levels.js").Levels} levels
 * @property {import("./levels.js").Talk} talk
 * @property {number} beforeSeconds  audio of the recordings this one goes on from
 * @property {string} note  what a person should know of the source; "" nothing
 * @property {number} items
 * @property {number} sentAt
 * @property {number | null} heardAt  when its first sample was spoken
 * @property {number | null} firstMs  from the beginning of speech (of a file: from sending) to its first words
 * @property {number | null} lagMs  of the newest segment
 * @property {number | null} endedAt
 * @property {import("../sdk/types.d.ts").Usage | null} usage
 * @property {import("../sdk/types.d.ts").Timing | null} timing
 * @property {string | null} finishReason
 * @property {import("../sdk/types.d.ts").Cancel | null} receipt
 * @property {boolean} slotBack  a release that was late is over: the server's gauges show it
 * @property {import("./chats.js").Trouble | null} trouble
 */

import { Levels, Talk } from "./levels.js";
import { Transcript } from "./transcript.js";

/** What every voice has. */
export const VOICE_RATE = 24_000;

/** @param {Listening | null} listening */
export function isListening(listening) {
  const running = ["pending", "streaming", "finishing", "stopping"];
  return listening !== null && running.includes(listening.state);
}

/** It may still be told something. @param {Listening | null} listening */
export function isOpen(listening) {
  return listening !== null && ["pending", "streaming"].includes(listening.state);
}

/**
 * Who stops listening stops the voice, also before it said anything: a generator's clean-up would not run then.
 * @param {import("../sdk/types.d.ts").SpeechStream} speech
 * @returns {AsyncIterable<Int16Array>}
 */
export function samplesOf(speech) {
  const chunks = speech[Symbol.asyncIterator]();
  const next = async () => {
    for (;;) {
      const { done, value } = await chunks.next();
      if (done) return { done, value: undefined };
      const { samples, sampleRate } = value;
      if (sampleRate !== VOICE_RATE) throw new Error(`The voice has ${sampleRate} Hz.`);
      if (samples.length > 0) return { done: false, value: samples };
    }
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: () => chunks.return() }) };
}

/**
 * Of speech: from its first sound to its words on the page. A file is not spoken now: from asking.
 * @param {Listening} listening @param {import("../sdk/types.d.ts").Segment} segment
 */
export function firstMs({ source, heardAt, sentAt }, { start }) {
  const began = source.kind === "microphone" && heardAt !== null ? heardAt + start * 1000 : sentAt;
  return Math.max(0, performance.now() - began);
}

/** @param {Source} source @param {Options} options @param {Listening | null} [before] @returns {Listening} */
export function blankListening(source, options, before) {
  const beforeSeconds = before?.levels.seconds ?? 0;
  before?.transcript.resume(beforeSeconds);
  return {
    kind: "listening",
    source,
    options,
    state: "pending",
    stream: null,
    media: null,
    transcript: before?.transcript ?? new Transcript(),
    levels: before?.levels ?? new Levels(),
    talk: before?.talk ?? new Talk(),
    beforeSeconds,
    note: "",
    items: 0,
    sentAt: performance.now(),
    heardAt: null,
    firstMs: null,
    lagMs: null,
    endedAt: null,
    usage: null,
    timing: null,
    finishReason: null,
    receipt: null,
    slotBack: false,
    trouble: null,
  };
}
