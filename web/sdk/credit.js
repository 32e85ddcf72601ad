/**
 * Receive-side credit of one stream: which items arrived, which the consumer took, when to say so.
 * The ack is absolute ("consumed through seq"), sent after a quarter of the window or, for a slow but
 * living consumer, once a second has passed: batching alone would let the server's 30 s of "no progress"
 * run out on a reader who takes an item every few seconds.
 * Pure arithmetic: time is passed in. Does not know messages or sockets.
 */

export const DEFAULT_WINDOW = 64;
export const MAX_WINDOW = 256;
const MAX_ACK_DELAY_MS = 1_000;

export class Credit {
  #window;
  #batch;
  #received = 0;
  #acked = 0;
  #ackedAtMs;

  /**
   * @param {number} window items that may be sent and not yet acked, 1…256
   * @param {number} nowMs
   */
  constructor(window, nowMs) {
    this.#window = window;
    this.#batch = Math.max(1, Math.floor(window / 4));
    this.#ackedAtMs = nowMs;
  }

  /** The last seq that arrived; 0: none. */
  get received() {
    return this.#received;
  }

  /**
   * An item arrived.
   *
   * @param {number} seq
   * @returns {boolean} false when it is not the next one or exceeds the window: the peer broke the protocol
   */
  receive(seq) {
    if (seq !== this.#received + 1 || seq > this.#acked + this.#window) return false;
    this.#received = seq;
    return true;
  }

  /**
   * The consumer took an item.
   *
   * @param {number} seq
   * @param {number} nowMs
   * @returns {number | null} the seq to ack now, or null to wait for more
   */
  take(seq, nowMs) {
    const due = seq - this.#acked >= this.#batch || nowMs - this.#ackedAtMs >= MAX_ACK_DELAY_MS;
    if (!due) return null;
    this.#acked = seq;
    this.#ackedAtMs = nowMs;
    return seq;
  }
}
