/**
 * Samples a program has, or makes: read no faster than they go up, and let go when nobody wants more of them.
 * Does not know the wire.
 */

/** @import { AudioFormat, LiveParams } from "./types.d.ts" */
/** @import { AudioInput, InputReports } from "./internal.d.ts" */

import { InvalidRequestError } from "./errors.js";
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
   * @throws {InvalidRequestError}
   */
  constructor({ source, sampleRate, channels = 1, encoding = "pcm_s16le" }, reports) {
    if (sampleRate === undefined) {
      throw new InvalidRequestError(
        "sampleRate is missing: samples do not say how many make a second",
        { param: "sampleRate" },
      );
    }
    // An array of samples is itself something to iterate, number by number.
    const whole = ArrayBuffer.isView(source) || source instanceof ArrayBuffer;
    this.#source = iteratorOver(whole ? [source] : source, "source", EXPECTED);
    this.#reports = reports;
    this.format = { sampleRate, channels, encoding };
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
