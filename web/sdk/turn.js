/**
 * The turns of a conversation, as the app sees them and as they come to be: each ends once. Live: whoever keeps one sees
 * it change. Does not know streams.
 */

/** @import { Interruption, Turn as PublicTurn, TurnTimes } from "./conversation.d.ts" */
/** @import { PlaitError } from "./types.d.ts" */

/** Older ones are forgotten; the messages are not. */
const MAX_TURNS = 500;

/** @implements {PublicTurn} */
export class Turn {
  /** @type {PublicTurn["state"]} */
  state = "hearing";
  said = "";
  written = "";
  /** @type {TurnTimes} */
  times;
  /** @type {number | null} */
  chatId = null;
  /** @type {number | null} */
  speechId = null;
  /** @type {Interruption[]} */
  withdrawn = [];
  /** @type {Interruption | null} */
  interruption = null;
  /** @type {PlaitError | null} */
  error = null;

  /**
   * @param {number} index
   * @param {number} startedMs
   */
  constructor(index, startedMs) {
    this.index = index;
    this.times = { speechStarted: startedMs };
  }

  get over() {
    return this.times.ended !== undefined;
  }

  /** The user goes on: what was asked was not all. */
  reopen() {
    this.state = "hearing";
    this.written = "";
    this.chatId = null;
    this.speechId = null;
    this.times = { speechStarted: this.times.speechStarted };
  }

  /**
   * @param {"completed" | "interrupted" | "failed"} state
   * @param {number} nowMs
   * @param {unknown} [error]
   */
  end(state, nowMs, error = null) {
    this.state = state;
    this.times.ended = nowMs;
    this.error = /** @type {PlaitError | null} */ (error);
  }
}

/** The newest of them. */
export class Turns {
  /** @type {Turn[]} */
  #newest = [];
  #count = 0;

  get all() {
    return [...this.#newest];
  }

  /** @param {number} nowMs */
  begin(nowMs) {
    const turn = new Turn(this.#count, nowMs);
    this.#count += 1;
    this.#newest.push(turn);
    if (this.#newest.length > MAX_TURNS) this.#newest.shift();
    return turn;
  }
}
