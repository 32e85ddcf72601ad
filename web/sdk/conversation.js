/**
 * A spoken conversation: what the user's side tells (conversation-hearing) goes to whoever decides whose turn it is
 * (turn-taking), and what is decided is done by the assistant's side (conversation-answering). All of its streams end
 * on one path, #close(), whatever ends it. Does not know the wire.
 */

/** @import { Conversation as PublicConversation, ConversationEvents, ConversationOptions, ConversationState, Interruption } from "./conversation.d.ts" */
/** @import { Plait } from "./types.d.ts" */
/** @import { Runtime, Timer } from "./internal.d.ts" */
/** @import { HearingReports } from "./conversation-hearing.js" */
/** @import { Turn } from "./turn.js" */
/** @import { Decision } from "./turn-taking.js" */

import { onAbort } from "./abort-watch.js";
import { captureContext, holdContext, releaseContext } from "./audio-context.js";
import { liveTrack } from "./capture.js";
import { Answering } from "./conversation-answering.js";
import { Hearing } from "./conversation-hearing.js";
import { checkedSilence, endedByServer, segmentSilence } from "./conversation-options.js";
import { Emitter } from "./emitter.js";
import { abortError } from "./errors.js";
import { checkedSignal } from "./options.js";
import { platform } from "./runtime.js";
import { Turns } from "./turn.js";
import { TurnTaking } from "./turn-taking.js";

export { MICROPHONE } from "./conversation-options.js";

/**
 * @param {Plait} client
 * @param {ConversationOptions} options
 * @returns {PublicConversation}
 */
export function converse(client, options) {
  return converseWith(platform, client, options);
}

/**
 * @param {Runtime} runtime the clock and timers to use
 * @param {Plait} client
 * @param {ConversationOptions} options
 * @returns {PublicConversation}
 */
export function converseWith(runtime, client, options) {
  return new Conversation(runtime, client, options);
}

/** @implements {PublicConversation} */
class Conversation {
  #runtime;
  #context;
  #track;
  #signal;
  /** To the signal. */
  #stopListening;
  #bargeIn;
  #taking;
  #hearing;
  #answering;
  /** @type {Emitter<ConversationEvents>} */
  #emitter = new Emitter(["state", "turn", "messages", "level", "echo", "playback"]);
  /** @type {ConversationState} */
  #state = "starting";
  #open = false;
  #turns = new Turns();
  /** What the user says goes here. @type {Turn | null} */
  #heard = null;
  /** @type {Timer | null} */
  #timer = null;
  #closed = false;
  /** @type {() => void} */
  #resolve = () => {};
  /** @type {(reason: unknown) => void} */
  #reject = () => {};
  /** @type {Promise<void>} */
  finished = new Promise((resolve, reject) => {
    this.#resolve = resolve;
    this.#reject = reject;
  });

  /**
   * @param {Runtime} runtime
   * @param {Plait} client
   * @param {ConversationOptions} options
   */
  constructor(runtime, client, options) {
    this.finished.catch(() => {}); // who does not look must not be told by "unhandledrejection"
    const endOfTurnMs = checkedSilence(options.endOfTurnMs);
    const silenceMs = segmentSilence(endOfTurnMs);
    const now = () => this.#runtime.now();
    this.#runtime = runtime;
    this.#bargeIn = options.bargeIn ?? true;
    this.#signal = checkedSignal(options.signal);
    this.#track = liveTrack(options.microphone);
    this.#context = options.context ?? captureContext();
    this.#taking = new TurnTaking(endOfTurnMs);
    const loudspeaker = { context: this.#context, destination: () => this.#hearing.destination };
    // First: what it throws leaves no transcription open.
    this.#answering = new Answering(client, options, loudspeaker, now, this.#answeringReports());
    const heard = { ...options, context: this.#context, track: this.#track, silenceMs };
    this.#hearing = new Hearing(client, heard, now, this.#hearingReports());
    holdContext(this.#context);
    this.#track.addEventListener("ended", this.#onTrackEnded);
    this.#stopListening = onAbort(this.#signal, this.#onAbort);
    if (this.#signal?.aborted) this.#onAbort();
  }

  get state() {
    return this.#closed ? "ended" : this.#state; // also while its end is told
  }

  get turns() {
    return this.#turns.all;
  }

  get messages() {
    return this.#answering.messages;
  }

  get transcriptionId() {
    return this.#hearing.stream.id;
  }

  /**
   * @template {keyof ConversationEvents} K
   * @param {K} type
   * @param {(event: ConversationEvents[K]) => void} listener
   */
  on(type, listener) {
    return this.#emitter.on(type, listener);
  }

  /** @returns {Promise<Interruption | null>} */
  interrupt() {
    const interruption = this.#answering.interrupt("app");
    this.#onAnswerOver();
    return interruption;
  }

  /** @param {string} text */
  say(text) {
    if (this.#closed) throw new TypeError("The conversation is over: begin another one.");
    if (typeof text !== "string") throw new TypeError(`say() takes a string, not ${text}`);
    void this.#answering.interrupt("app");
    if (this.#closed || this.#answering.busy) return; // a listener has ended it, or says something else
    this.#taking.says();
    this.#answering.say(this.#turns.begin(this.#runtime.now()), text);
    if (this.#taking.phase === "hearing") void this.#answering.interrupt("talk");
    this.#showState();
  }

  /** @returns {Promise<void>} */
  end() {
    return this.#close(abortError("The conversation was ended."));
  }

  // The user's side.

  /** @returns {HearingReports} */
  #hearingReports() {
    const now = () => this.#runtime.now();
    return {
      open: () => {
        this.#open = true;
        this.#showState();
      },
      started: (users) => this.#perform(this.#taking.speechStarted(users && this.#mayTalk)),
      stopped: (at, atMs) => {
        if (this.#heard && this.#taking.talking) this.#heard.times.speechStopped = atMs;
        this.#perform(this.#taking.speechStopped(at, atMs, now()));
      },
      talk: () => this.#listen(),
      part: (part) =>
        this.#perform(this.#taking.segment(this.#mayTalk ? part : { ...part, text: "" }, now())),
      blocked: (blocked) =>
        this.#emitter.emit("playback", { state: blocked ? "blocked" : "waiting" }),
      level: (level) => this.#emitter.emit("level", level),
      echo: (echo) => this.#emitter.emit("echo", echo),
      over: (failure) => this.#onDeaf(failure),
    };
  }

  /** Whether talking counts now. */
  get #mayTalk() {
    return this.#bargeIn || this.#taking.phase !== "speaking";
  }

  /** If somebody talks, it is the user. */
  #listen() {
    if (!this.#hearing.talking || !this.#mayTalk) return;
    const decisions = this.#taking.talk();
    if (decisions.length > 0) this.#perform(decisions);
  }

  /** @param {Decision[]} decisions */
  #perform(decisions) {
    if (this.#closed) return;
    for (const decision of decisions) {
      this.#do(decision);
      if (this.#closed) return; // by a listener
    }
    this.#timer?.clear();
    const { wakeMs } = this.#taking;
    const inMs = (wakeMs ?? 0) - this.#runtime.now();
    this.#timer = wakeMs === null ? null : this.#runtime.after(Math.max(0, inMs), this.#onWake);
    this.#showState();
  }

  #onWake = () => this.#perform(this.#taking.tick(this.#runtime.now()));

  /** @param {Decision} decision */
  #do(decision) {
    if (decision.type === "interrupt") void this.#answering.interrupt("talk");
    else if (decision.type === "withdraw") this.#answering.withdraw();
    else if (decision.type === "begin") this.#heard = this.#turns.begin(this.#runtime.now());
    else if (this.#heard) this.#hear(this.#heard, decision);
  }

  /**
   * @param {Turn} turn
   * @param {Decision} decision
   */
  #hear(turn, decision) {
    if (decision.type === "nothing") turn.end("completed", this.#runtime.now());
    else if ("said" in decision) turn.said = decision.said;
    if (decision.type === "ask") this.#answering.ask(turn, decision.said);
    else this.#emitter.emit("turn", turn);
  }

  // The assistant's side.

  /** @returns {import("./conversation-answering.js").AnsweringReports} */
  #answeringReports() {
    return {
      turn: (turn) => this.#emitter.emit("turn", turn),
      messages: () => this.#emitter.emit("messages", this.messages),
      sounds: () => this.#perform(this.#taking.sounds()),
      over: () => this.#onAnswerOver(),
      playback: (state) => this.#emitter.emit("playback", { state }),
    };
  }

  /** Who was not to interrupt it may talk now; unless a listener has it say something more. */
  #onAnswerOver() {
    if (this.#answering.busy) return;
    this.#taking.over();
    this.#listen();
    this.#showState();
  }

  #showState() {
    const { phase } = this.#taking;
    const open = phase !== "idle" ? phase : this.#open ? "listening" : "starting";
    const previous = this.#state;
    const state = this.#closed ? "ended" : open;
    this.#state = state;
    if (state !== previous) this.#emitter.emit("state", { state, previous });
  }

  // Endings.

  #onTrackEnded = () => void this.#close(abortError("The microphone's track has ended."));

  #onAbort = () => void this.#close(this.#signal?.reason, true);

  /** @param {{ reason: unknown } | null} failure of the transcription; null: all the audio was transcribed */
  #onDeaf(failure) {
    if (failure) void this.#close(failure.reason, true);
    else if (this.#track.readyState === "ended") this.#onTrackEnded();
    else void this.#close(endedByServer(), true);
  }

  /**
   * All streams are stopped before it returns; it resolves when the server has confirmed it.
   *
   * @param {unknown} reason
   * @param {boolean} [rejects] `finished` does, with it
   */
  async #close(reason, rejects = false) {
    if (this.#closed) return this.finished.catch(() => {});
    this.#closed = true;
    this.#timer?.clear();
    this.#track.removeEventListener("ended", this.#onTrackEnded);
    this.#stopListening();
    if (rejects && reason !== this.#signal?.reason) this.#answering.fail(reason);
    else void this.#answering.interrupt("app");
    const deaf = this.#hearing.stop(reason);
    if (this.#heard && !this.#heard.over) {
      this.#heard.end("interrupted", this.#runtime.now());
      this.#emitter.emit("turn", this.#heard);
    }
    this.#showState();
    releaseContext(this.#context, this.#runtime);
    await Promise.all([deaf, this.#answering.settled()]);
    if (rejects) this.#reject(reason);
    else this.#resolve();
  }
}
