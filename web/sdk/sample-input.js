/**
 * Samples a program has, or makes: read no faster than they go up, and let go when nobody wants more of them.
 * Does not know the wire.
 */

/** @import { AudioFormat, LiveParams } from "./types.d.ts" */
/** @import { AudioInput, InputReports } from "./internal.d.ts" */

import { checkedFormat } from "./audio-format.js";
import { iteratorOver } from "./upload.js";

const EXPECTED = "a MediaStream, a File or Blob, or samples: an array of them or an iterable";

/** @implements {AudioInput} */
export class SampleInput {
  #source;
  #reports;
  queuedBytes = 0;
  durationMs = null;
  metered = false;
  /** @type {AudioFormat} */
  format;

  /**
   * @param {LiveParams} request
   * @param {InputReports} reports
   * @throws {import("./errors.js").InvalidRequestError}
   */
  constructor(request, reports) {
    const { source } = request;
    this.format = checkedFormat(request);
    // An array of samples is itself something to iterate, number by number.
    const whole = ArrayBuffer.isView(source) || source instanceof ArrayBuffer;
    this.#source = iteratorOver(whole ? [source] : source, "source", EXPECTED);
    this.#reports = reports;
  }

  begin() {}

  finish() {
    return false;
  }

  async next() {
    const result = await this.#source.next();
    this.#reports.state(result.done ? "ended" : "open");
    return result;
  }

  async return() {
    await this.#source.return?.();
    return { value: undefined, done: /** @type {const} */ (true) };
  }
}
