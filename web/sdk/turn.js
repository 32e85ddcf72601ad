/**
 * One turn of a conversation, as the app sees it and as it comes to be: it ends once. Live: whoever keeps it sees it
 * change. Does not know streams.
 */

/** @import { Interruption, Turn as PublicTurn, TurnTimes } from "./conversation.d.ts" */
/** @import { PlaitError } from "./types.d.ts" */

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
