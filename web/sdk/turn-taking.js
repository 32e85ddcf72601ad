/**
 * Whose turn it is: from what was detected, transcribed and heard to what is to be done about it. A turn of the user may
 * be several stretches of speech; it is over once the user has been silent for `endOfTurnMs` and all of it is final.
 * - Who goes on before the answer sounds takes back the question: the answer is withdrawn, and what was said is one text.
 * - Who talks into the answer interrupts it, and begins a turn. If that was a mere noise, nothing is asked, and the
 *   answer stays interrupted: what was broken off cannot be taken up in the middle of a word.
 * - Words that arrive late, while an answer sounds, interrupt nothing: they begin the next turn's text.
 * Pure: moments are passed in, in milliseconds; `at`, `start` and `end` are seconds of the transcription's audio.
 * Does not know streams, sound or echo: only what is the user's is told to it.
 */

import { joined } from "./transcript.js";

/**
 * @typedef {{ type: "begin" } | { type: "withdraw" } | { type: "interrupt" } | { type: "said", said: string }
 *   | { type: "ask", said: string } | { type: "nothing" }} Decision
 *   begin: a turn. withdraw, interrupt: the answer there is. said: of the turn. ask: the turn is the answer's now.
 *   nothing: the turn was a noise, and is over.
 */
/** @typedef {"idle" | "hearing" | "thinking" | "speaking"} Phase */
/** @typedef {{ index: number, text: string, end: number, isFinal: boolean }} Part */

/** Noise has no segment: after so long without one there will be none. */
const NOISE_PATIENCE_MS = 2000;
/** What was begun is finished by the server, unless it is much too busy. */
const FINAL_PATIENCE_MS = 10_000;
/** The last segment ends where speech does, as near as two roundings. */
const SLACK_SECONDS = 0.1;
/** Of one turn; of what goes on for ever the oldest are dropped. */
const MAX_PARTS = 200;

export class TurnTaking {
  #endOfTurnMs;
  /** @type {Phase} */
  #phase = "idle";
  /** Speech is detected, whoever's it is. */
  #voice = false;
  /** Speech is detected, and it is the user's. */
  #talking = false;
  /** Of the user's last stretch: where it ended, when that was and when it was told. */
  #stop = { at: Number.NEGATIVE_INFINITY, atMs: 0, toldMs: 0 };
  /** @type {Part[]} */
  #parts = [];
  /** Parts through this index have been asked. */
  #askedThrough = -1;
  /** All before this is final. */
  #coveredTo = Number.NEGATIVE_INFINITY;

  /** @param {number} endOfTurnMs */
  constructor(endOfTurnMs) {
    this.#endOfTurnMs = endOfTurnMs;
  }

  get phase() {
    return this.#phase;
  }

  /** Speech is detected. */
  get voice() {
    return this.#voice;
  }

  /** The user talks, as far as is known. */
  get talking() {
    return this.#talking;
  }

  get said() {
    return joined(this.#parts);
  }

  /** When to call tick(); null: nothing is waited for. @returns {number | null} */
  get wakeMs() {
    if (this.#phase !== "hearing" || this.#voice) return null;
    return Math.max(this.#stop.atMs + this.#endOfTurnMs, this.#settledMs());
  }

  // What is detected.

  /**
   * @param {boolean} users false: it may be the answer's own sound; talk() says if it is not
   * @returns {Decision[]}
   */
  speechStarted(users) {
    this.#voice = true;
    return users ? this.talk() : [];
  }

  /** The speech that is detected is the user's, or some of it is. @returns {Decision[]} */
  talk() {
    if (!this.#voice || this.#talking) return [];
    this.#talking = true;
    return this.#hear();
  }

  /**
   * @param {number} at
   * @param {number} atMs the same moment
   * @param {number} nowMs
   * @returns {Decision[]}
   */
  speechStopped(at, atMs, nowMs) {
    this.#voice = false;
    if (!this.#talking) return [];
    this.#talking = false;
    this.#stop = { at, atMs, toldMs: nowMs };
    return this.tick(nowMs);
  }

  // What is transcribed.

  /**
   * @param {Part} part its text is what the user said of it
   * @param {number} nowMs
   * @returns {Decision[]}
   */
  segment(part, nowMs) {
    if (part.isFinal) this.#coveredTo = Math.max(this.#coveredTo, part.end);
    const before = this.said;
    this.#put(part);
    if (this.said === before) return this.tick(nowMs);
    if (this.#phase === "speaking") return [];
    const decisions = this.#phase === "hearing" ? [] : this.#late(part, nowMs);
    return [...decisions, { type: "said", said: this.said }, ...this.tick(nowMs)];
  }

  // What becomes of the answer.

  /** It sounds. @returns {Decision[]} */
  sounds() {
    if (this.#phase === "thinking") this.#phase = "speaking";
    return [];
  }

  /** The app says something of its own, unless the user talks. */
  says() {
    if (this.#phase !== "hearing") this.#phase = "speaking";
  }

  /** It was heard to its end, failed, or was stopped by the app. */
  over() {
    if (this.#phase !== "hearing") this.#phase = "idle";
  }

  /** The moment that wakeMs named, or any other. @param {number} nowMs @returns {Decision[]} */
  tick(nowMs) {
    const wakeMs = this.wakeMs;
    if (wakeMs === null || nowMs < wakeMs) return [];
    const said = this.said;
    this.#askedThrough = this.#parts.at(-1)?.index ?? this.#askedThrough;
    this.#phase = said ? "thinking" : "idle";
    return said ? [{ type: "ask", said }] : [{ type: "nothing" }];
  }

  // The rest.

  /** The user is to be heard now. @returns {Decision[]} */
  #hear() {
    const before = this.#phase;
    this.#phase = "hearing";
    if (before === "hearing") return [];
    if (before === "thinking") return [{ type: "withdraw" }];
    this.#parts = this.#parts.filter(({ index }) => index > this.#askedThrough);
    return before === "idle" ? [{ type: "begin" }] : [{ type: "interrupt" }, { type: "begin" }];
  }

  /**
   * Words of speech that nobody detected, or that was over before.
   *
   * @param {Part} part
   * @param {number} nowMs
   * @returns {Decision[]}
   */
  #late({ end }, nowMs) {
    if (!this.#voice) this.#stop = { at: end, atMs: this.#stop.atMs, toldMs: nowMs };
    else this.#talking = true;
    return this.#hear();
  }

  /** @param {Part} part */
  #put(part) {
    this.#parts = this.#parts.filter(({ index }) => index !== part.index);
    if (part.text || !part.isFinal) this.#parts.push(part);
    if (this.#parts.length > MAX_PARTS) this.#parts.shift();
  }

  /** When all that was said is known, or nothing more will be. */
  #settledMs() {
    const { at, toldMs } = this.#stop;
    if (this.#parts.some(({ isFinal }) => !isFinal)) return toldMs + FINAL_PATIENCE_MS;
    return this.#coveredTo >= at - SLACK_SECONDS ? toldMs : toldMs + NOISE_PATIENCE_MS;
  }
}
