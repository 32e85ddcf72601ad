/**
 * The assistant's side of a conversation: one answer at a time, what it does to its turn and to the history, and every
 * way in which it ends. What was stopped is known until the server has confirmed it. Does not know whose turn it is.
 */

/** @import { ConversationOptions, Interruption } from "./conversation.d.ts" */
/** @import { Cancel, Plait, PlaybackState } from "./types.d.ts" */
/** @import { AnswerReports, Loudspeaker, Proofs } from "./conversation-answer.js" */
/** @import { Turn } from "./turn.js" */

import { Answer } from "./conversation-answer.js";
import { History } from "./conversation-history.js";

/**
 * @typedef {object} AnsweringReports
 * @property {(turn: Turn) => void} turn something of it changed
 * @property {() => void} messages changed
 * @property {() => void} sounds
 * @property {() => void} over by itself
 * @property {(state: PlaybackState) => void} playback
 */

/** @typedef {Proofs & { heardMs: number, heard: string }} Stopped */

export class Answering {
  #client;
  #options;
  #loudspeaker;
  #now;
  #on;
  #history;
  /** @type {{ answer: Answer, turn: Turn, unask: () => void } | null} */
  #live = null;
  /** Of the streams that were stopped. @type {Set<Promise<unknown>>} */
  #proofs = new Set();

  /**
   * @param {Plait} client
   * @param {ConversationOptions} options
   * @param {Loudspeaker} loudspeaker
   * @param {() => number} now
   * @param {AnsweringReports} on
   */
  constructor(client, options, loudspeaker, now, on) {
    this.#client = client;
    this.#options = options;
    this.#loudspeaker = loudspeaker;
    this.#now = now;
    this.#on = on;
    this.#history = new History(options.messages ?? []);
  }

  get messages() {
    return this.#history.messages;
  }

  /** An answer lives. */
  get busy() {
    return this.#live !== null;
  }

  /** All that was stopped is confirmed. */
  async settled() {
    await Promise.all(this.#proofs);
  }

  /**
   * @param {Turn} turn
   * @param {string} said
   */
  ask(turn, said) {
    void this.interrupt("app"); // what a listener has begun to say meanwhile
    if (turn.over) return; // a listener has ended the conversation
    turn.times.transcribed = this.#now();
    const unask = this.#history.ask(said);
    if (this.#live) {
      this.#end(turn, "interrupted"); // a listener will not be interrupted
      return;
    }
    turn.state = "thinking";
    this.#begin(turn, null, unask);
    this.#on.messages();
  }

  /**
   * @param {Turn} turn
   * @param {string} text
   */
  say(turn, text) {
    turn.state = "speaking";
    turn.written = text;
    this.#begin(turn, text, () => {});
  }

  /** The user goes on before anything sounded: it was never asked. */
  withdraw() {
    if (!this.#live) return;
    const { turn, unask } = this.#live;
    const proofs = this.#stop();
    unask();
    turn.reopen();
    this.#tell(turn);
    this.#on.messages();
    void this.#confirmed("talk", proofs, {}).then((interruption) => {
      turn.withdrawn.push(interruption);
      this.#tell(turn);
    });
  }

  /**
   * Silence is asked for, and both streams are cancelled, before it returns.
   *
   * @param {"talk" | "app"} by
   * @returns {Promise<Interruption | null>} null: nothing was answered
   */
  async interrupt(by) {
    if (!this.#live) return null;
    const { turn } = this.#live;
    turn.times.interrupted = this.#now();
    const proofs = this.#stop();
    if (proofs.heardMs === 0) delete turn.times.firstHeard; // it was still on its way
    const correct = this.#history.answer(proofs.heard);
    this.#end(turn, "interrupted");
    const interruption = await this.#confirmed(by, proofs, turn.times);
    correct(interruption.heard);
    turn.interruption = interruption;
    this.#tell(turn);
    this.#on.messages();
    return interruption;
  }

  /** The conversation breaks. @param {unknown} reason */
  fail(reason) {
    if (!this.#live) return;
    const { turn } = this.#live;
    const proofs = this.#stop();
    this.#history.answer(proofs.heard);
    this.#note(turn, proofs);
    this.#end(turn, "failed", reason);
  }

  /**
   * @param {Turn} turn
   * @param {string | null} text null: what the messages are answered with
   * @param {() => void} unask
   */
  #begin(turn, text, unask) {
    try {
      const what = text ?? this.#history.messages;
      const reports = this.#reports(turn);
      const answer = new Answer(this.#client, what, this.#options, this.#loudspeaker, reports);
      this.#live = { answer, turn, unask };
      turn.chatId = answer.chatId;
      turn.speechId = answer.speechId;
      this.#tell(turn);
    } catch (error) {
      this.#end(turn, "failed", error);
      this.#on.over();
    }
  }

  /** @param {Turn} turn @returns {AnswerReports} */
  #reports(turn) {
    const { times } = turn;
    const note = (/** @type {"firstToken" | "lastToken" | "firstAudio"} */ moment) => {
      times[moment] ??= this.#now();
      this.#tell(turn);
    };
    return {
      token: (written) => {
        turn.written = written;
        note("firstToken");
      },
      written: () => note("lastToken"),
      audio: () => note("firstAudio"),
      sounds: (latencyMs) => {
        turn.state = "speaking";
        times.firstHeard = this.#now() + latencyMs;
        this.#tell(turn);
        this.#on.sounds();
      },
      playback: (state) => this.#on.playback(state),
      over: (failure, proofs) => this.#onOver(failure, proofs),
    };
  }

  /**
   * @param {{ reason: unknown } | null} failure
   * @param {Proofs} proofs
   */
  #onOver(failure, proofs) {
    if (!this.#live) return;
    const { answer, turn } = this.#live;
    const { heardMs, heard } = answer;
    this.#live = null;
    if (failure) this.#note(turn, { ...proofs, heardMs, heard });
    this.#history.answer(failure ? heard : answer.written);
    this.#end(turn, failure ? "failed" : "completed", failure?.reason);
    this.#on.over();
  }

  /**
   * @param {Turn} turn
   * @param {"completed" | "interrupted" | "failed"} state
   * @param {unknown} [error]
   */
  #end(turn, state, error) {
    turn.end(state, this.#now(), error);
    this.#tell(turn);
    this.#on.messages();
  }

  /** @returns {Stopped} */
  #stop() {
    const { answer } = /** @type {{ answer: Answer }} */ (this.#live);
    this.#live = null;
    const { chat, speech } = answer.stop(undefined);
    return { chat, speech, heardMs: answer.heardMs, heard: answer.heard };
  }

  /** When the proofs come, of an answer that failed. @param {Turn} turn @param {Stopped} stopped */
  #note(turn, stopped) {
    void this.#confirmed("app", stopped, turn.times).then(() => this.#tell(turn));
  }

  /**
   * @param {"talk" | "app"} by
   * @param {Stopped} stopped
   * @param {{ chatStopped?: number, speechReleased?: number }} times
   * @returns {Promise<Interruption>}
   */
  async #confirmed(by, stopped, times) {
    const chat = this.#proof(stopped.chat, () => {
      times.chatStopped = this.#now();
    });
    const speech = this.#proof(stopped.speech, () => {
      times.speechReleased = this.#now();
    });
    const [chatProof, speechProof] = await Promise.all([chat, speech]);
    const heard = speechProof?.heard ?? stopped.heard;
    return { by, heardMs: stopped.heardMs, heard, chat: chatProof, speech: speechProof };
  }

  /**
   * @param {Promise<Cancel> | null} proof
   * @param {() => void} arrived
   * @returns {Promise<Cancel | null>}
   */
  async #proof(proof, arrived) {
    if (!proof) return null;
    this.#proofs.add(proof);
    const cancel = await proof;
    this.#proofs.delete(proof);
    arrived();
    return cancel;
  }

  /** @param {Turn} turn */
  #tell(turn) {
    this.#on.turn(turn);
  }
}
