/**
 * One answer: a chat that is spoken while it is written, and heard while it is spoken. Ends once: it was heard to its end,
 * one of its parts failed, or it was stopped, which stops all of them in that tick. What was heard is known at any time.
 * Does not know turns.
 */

/** @import { Cancel, ChatDelta, ChatMessage, End, Mark, Plait, Playback, PlaybackState, SpeechStream, Stream } from "./types.d.ts" */
/** @import { ConversationOptions } from "./conversation.d.ts" */

import { latencySeconds } from "./audio-context.js";
import { heardText } from "./conversation-heard.js";
import { StreamCancelledError } from "./errors.js";

/**
 * @typedef {object} AnswerReports
 * @property {(written: string) => void} token
 * @property {() => void} written all of it
 * @property {() => void} audio its first
 * @property {(latencyMs: number) => void} sounds for the first time, on its way to the ear
 * @property {(state: PlaybackState) => void} playback
 * @property {(failure: { reason: unknown } | null, proofs: Proofs) => void} over not when it was stopped
 */
/** Of the streams that were stopped; null: it had ended. @typedef {{ chat: Promise<Cancel> | null, speech: Promise<Cancel> | null }} Proofs */
/** @typedef {Pick<ConversationOptions, "chat" | "speech" | "playoutWorkletUrl">} AnswerOptions */
/** @typedef {{ context: AudioContext, destination: () => AudioNode }} Loudspeaker */

export class Answer {
  #on;
  #context;
  /** @type {Stream<ChatDelta> | null} */
  #chat = null;
  /** @type {SpeechStream} */
  #speech;
  /** @type {Playback} */
  #playback;
  /** Where its words are in its audio; of one answer. @type {Mark[]} */
  #marks = [];
  #audible = false;
  #stopped = false;
  #over = false;
  written = "";
  sounding = false;

  /**
   * @param {Plait} client
   * @param {readonly ChatMessage[] | string} what to be answered; or said as it is
   * @param {AnswerOptions} options
   * @param {Loudspeaker} loudspeaker
   * @param {AnswerReports} on
   */
  constructor(client, what, options, { context, destination }, on) {
    this.#on = on;
    this.#context = context;
    if (typeof what === "string") this.written = what;
    else this.#chat = client.llm.chatStream({ ...options.chat, messages: [...what] });
    try {
      const text = this.#chat ? this.#tapped(this.#chat) : this.written;
      this.#speech = client.tts.synthesize({ ...options.speech, text, marks: true });
      const workletUrl = options.playoutWorkletUrl;
      const into = { destination: destination(), workletUrl };
      this.#playback = this.#speech.play(context, into);
    } catch (error) {
      void this.#chat?.cancel(error);
      throw error;
    }
    this.#playback.on("chunk", ({ mark, samples }) => this.#onChunk(mark, samples.length));
    this.#playback.on("state", ({ state }) => this.#onState(state));
    this.#playback.finished.then(
      () => this.#end(null),
      (reason) => this.#end({ reason }),
    );
    // Speech hears of it only where it reads on, which may be much later.
    void this.#chat?.done.then((end) => this.#onChatEnd(end));
  }

  get chatId() {
    return this.#chat?.id ?? null;
  }

  get speechId() {
    return this.#speech.id;
  }

  get heardMs() {
    return this.#playback.heardMs;
  }

  /** As far as the marks tell. */
  get heard() {
    return heardText(this.#marks, this.heardMs);
  }

  /**
   * Both streams are cancelled, and silence is asked for, before it returns. It may be over already.
   *
   * @param {unknown} reason
   * @returns {Proofs}
   */
  stop(reason) {
    this.#stopped = true;
    const speech = stopped(this.#speech, reason);
    return { speech, chat: this.#chat && stopped(this.#chat, reason) };
  }

  /**
   * The chat as speech reads it, and as it is written down here.
   *
   * @param {Stream<ChatDelta>} chat
   * @returns {AsyncIterable<ChatDelta>}
   */
  #tapped(chat) {
    const source = chat[Symbol.asyncIterator]();
    const next = async () => {
      const result = await source.next();
      if (!this.#stopped) this.#onDelta(result);
      return result;
    };
    return { [Symbol.asyncIterator]: () => ({ next, return: () => source.return() }) };
  }

  /** @param {IteratorResult<ChatDelta, undefined>} result */
  #onDelta({ value, done }) {
    if (done) this.#on.written();
    else if (value.content) {
      this.written += value.content;
      this.#on.token(this.written);
    }
  }

  /**
   * @param {Mark | undefined} mark
   * @param {number} samples
   */
  #onChunk(mark, samples) {
    if (mark) this.#marks.push(mark);
    if (this.#audible || this.#stopped || samples === 0) return;
    this.#audible = true;
    this.#on.audio();
  }

  /** @param {PlaybackState} state */
  #onState(state) {
    if (!this.#stopped && !this.sounding && state === "playing") {
      this.sounding = true;
      this.#on.sounds(latencySeconds(this.#context) * 1000);
    }
    this.#on.playback(state);
  }

  /** @param {End} end */
  #onChatEnd(end) {
    if (end.state === "errored") this.#end({ reason: end.error });
    // By us: speech has failed and left it, which is told once what had arrived was heard.
    if (end.state !== "cancelled" || end.by === "client") return;
    this.#end({ reason: new StreamCancelledError(end.by) });
  }

  /** @param {{ reason: unknown } | null} failure */
  #end(failure) {
    if (this.#over || this.#stopped) return;
    this.#over = true;
    // What one failed with stops the other.
    const proofs = failure ? this.stop(failure.reason) : { chat: null, speech: null };
    this.#on.over(failure, proofs);
  }
}

/**
 * @param {Stream<unknown>} stream
 * @param {unknown} reason
 * @returns {Promise<Cancel> | null} null: it had ended by itself
 */
function stopped(stream, reason) {
  // Where speech has failed, it has left the chat already: that is to be confirmed as well.
  const over = stream.state === "completed" || stream.state === "errored";
  const proof = stream.cancel(reason);
  return over ? null : proof;
}
