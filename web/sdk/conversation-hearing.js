/**
 * The user's side of a conversation: the microphone, transcribed all the time, and the echo guard beside it. Tells what
 * the user does, when it happens; the answer's own sound is left out. One transcription is kept open for as long as it
 * lasts: its end is the end of hearing. Does not know turns.
 */

/** @import { Echo, ConversationOptions } from "./conversation.d.ts" */
/** @import { Cancel, InputState, Level, Plait, Segment, SpeechEvent, TranscriptStream } from "./types.d.ts" */
/** @import { Part } from "./turn-taking.js" */
/** @import { EchoReport } from "./echo-model.js" */

import { EchoEar } from "./echo-ear.js";
import { EchoGuard } from "./echo-guard.js";

/**
 * @typedef {object} HearingReports
 * @property {() => void} open audio comes, and the server takes it
 * @property {(users: boolean) => void} started speech
 * @property {(at: number, atMs: number) => void} stopped
 * @property {() => void} talk whatever speech there is, the user talks; again and again while it is so
 * @property {(part: Part) => void} part
 * @property {(echo: Echo) => void} echo
 * @property {(level: Level) => void} level
 * @property {(blocked: boolean) => void} blocked the browser wants a gesture first
 * @property {(failure: { reason: unknown } | null) => void} over
 */

export class Hearing {
  #context;
  #on;
  #now;
  #guard = new EchoGuard();
  #ear;
  #open = false;
  #blocked = false;
  #over = false;
  /** Where the transcription's first sample lies on the context's clock. */
  #origin = 0;
  /** @type {TranscriptStream} */
  stream;

  /**
   * @param {Plait} client
   * @param {ConversationOptions & { context: AudioContext, track: MediaStreamTrack, silenceMs: number }} options
   * @param {() => number} now
   * @param {HearingReports} on
   */
  constructor(client, options, now, on) {
    const { context, track, silenceMs, transcribe, captureWorkletUrl, echoWorkletUrl, signal } =
      options;
    this.#context = context;
    this.#now = now;
    this.#on = on;
    this.stream = client.transcribe.live({
      words: true,
      ...transcribe,
      source: new MediaStream([track]),
      context,
      workletUrl: captureWorkletUrl,
      silenceMs,
      interim: true,
      events: true,
      signal,
    });
    this.#ear = new EchoEar(context, track, echoWorkletUrl, {
      report: (report) => this.#onReport(report),
      failed: (reason) => void this.stream.cancel(reason),
    });
    this.stream.on("level", (level) => this.#onLevel(level));
    this.stream.on("input", ({ state }) => this.#onInput(state));
    this.stream.on("speech", (event) => this.#onSpeech(event));
    void this.#read();
  }

  /** What is played has to go through here. */
  get destination() {
    return this.#ear.destination;
  }

  /** The user talks, as far as the sound says. */
  get talking() {
    return this.#guard.talking;
  }

  /** @param {unknown} reason @returns {Promise<Cancel>} */
  stop(reason) {
    this.#close();
    return this.stream.cancel(reason);
  }

  async #read() {
    try {
      for await (const segment of this.stream) this.#onSegment(segment);
      this.#end(null);
    } catch (reason) {
      this.#end({ reason });
    }
  }

  /** @param {{ reason: unknown } | null} failure */
  #end(failure) {
    if (this.#over) return;
    this.#close();
    this.#on.over(failure);
  }

  #close() {
    this.#over = true;
    this.#ear.close();
  }

  /** @param {Level} level */
  #onLevel(level) {
    if (this.#over) return;
    if (level.time !== undefined) this.#origin = level.time - level.at;
    if (!this.#open && this.stream.started) {
      this.#open = true;
      this.#on.open();
    }
    this.#on.level(level);
  }

  /** @param {InputState} state */
  #onInput(state) {
    if (this.#over || state === "ended") return;
    if (this.#blocked !== (state === "blocked")) this.#on.blocked(state === "blocked");
    this.#blocked = state === "blocked";
  }

  /** @param {SpeechEvent} event */
  #onSpeech({ type, at }) {
    if (this.#over) return;
    if (type === "stopped") {
      this.#on.stopped(at, this.#moment(at));
      return;
    }
    const users = this.#guard.users(at + this.#origin);
    if (!users) {
      const { level, explained } = this.#guard.loudest;
      this.#on.echo({ at: this.#now(), level, explained });
    }
    this.#on.started(users);
  }

  /** @param {Segment} segment */
  #onSegment({ index, text, start, end, isFinal, words }) {
    if (this.#over) return;
    const shift = (/** @type {number} */ at) => at + this.#origin;
    const mine = this.#guard.usersText({
      text: text.trim(),
      start: shift(start),
      end: shift(end),
      words: words?.map((word) => ({
        text: word.text,
        start: shift(word.start),
        end: shift(word.end),
      })),
    });
    this.#on.part({ index, text: mine, end, isFinal });
  }

  /** @param {EchoReport} report */
  #onReport(report) {
    if (this.#guard.note(report)) this.#on.talk();
  }

  /** The clock's time, in milliseconds, of a second of the transcription. @param {number} at */
  #moment(at) {
    return this.#now() - (this.#context.currentTime - this.#origin - at) * 1000;
  }
}
