/**
 * Which sample is heard at a time, from what the audio thread reports. Its reports are ahead of the ear by
 * the output latency, so the last ones are kept and read at the time the ear has reached.
 * Pure: times are passed in, in seconds on the context's clock.
 */

/** @import { PlayoutReport } from "./internal.d.ts" */

/** A second or more of reports: longer than any output's latency. */
const MAX_REPORTS = 64;

export class PlaybackClock {
  /** @type {Pick<PlayoutReport, "time" | "position" | "moving">[]} */
  #reports = [];

  /** @param {Pick<PlayoutReport, "time" | "position" | "moving">} report */
  note({ time, position, moving }) {
    this.#reports.push({ time, position, moving });
    if (this.#reports.length > MAX_REPORTS) this.#reports.shift();
  }

  /** The last sample the audio thread has played. */
  get lastPosition() {
    return this.#reports.at(-1)?.position ?? 0;
  }

  /**
   * @param {number} time
   * @param {number} sampleRate of the source
   * @returns {number} samples heard by then
   */
  positionAt(time, sampleRate) {
    const next = this.#reports.findIndex((report) => report.time > time);
    const at = next === -1 ? this.#reports.length - 1 : next - 1;
    const last = this.#reports[at];
    // Before the oldest report kept: the beginning, or longer ago than any latency.
    if (!last) return 0;
    if (!last.moving) return last.position;
    const limit = this.#reports[at + 1]?.position ?? Number.POSITIVE_INFINITY;
    return Math.min(limit, last.position + (time - last.time) * sampleRate);
  }
}
