/**
 * Is the peer still there? Judged by when frames arrived, never by when our own timer ran: a hidden tab
 * runs timers once a minute and a sleeping laptop not at all, and neither says anything about the socket.
 * Two quiet ticks are needed, the first of which asks (ping), so the answer always had a whole tick to come.
 * A tick that runs late counts for nothing once: what arrived meanwhile may still wait behind it.
 * Pure: time is passed in. Does not know sockets or timers. WebSocket pings are invisible to pages.
 */

export class Liveness {
  #intervalMs;
  #lastTickMs;
  #heard = true;
  #quietTicks = 0;
  #graceUsed = false;

  /**
   * @param {number} intervalMs the planned distance between ticks
   * @param {number} nowMs
   */
  constructor(intervalMs, nowMs) {
    this.#intervalMs = intervalMs;
    this.#lastTickMs = nowMs;
  }

  /** A frame, any frame, arrived. */
  receive() {
    this.#heard = true;
    this.#quietTicks = 0;
    this.#graceUsed = false;
  }

  /**
   * @param {number} nowMs
   * @returns {"alive" | "ping" | "dead"} "ping": ask now and tick again later
   */
  tick(nowMs) {
    const late = nowMs - this.#lastTickMs > 2 * this.#intervalMs;
    const heard = this.#heard;
    this.#lastTickMs = nowMs;
    this.#heard = false;
    if (heard) return "alive";
    if (late && !this.#graceUsed) {
      this.#graceUsed = true;
      return "ping";
    }
    this.#quietTicks += 1;
    return this.#quietTicks >= 2 ? "dead" : "ping";
  }
}
