/**
 * The stream options the client itself depends on, checked before anything is sent. Everything else is
 * the server's to check: it answers with the field's name.
 */

/** @import { AudioFormat, Encoding } from "./types.d.ts" */

import { DEFAULT_WINDOW, MAX_WINDOW } from "./credit.js";
import { InvalidRequestError } from "./errors.js";

/**
 * @param {number | undefined} window
 * @returns {number}
 */
export function checkedWindow(window = DEFAULT_WINDOW) {
  if (Number.isInteger(window) && window >= 1 && window <= MAX_WINDOW) return window;
  throw invalid("window", `must be a whole number from 1 to ${MAX_WINDOW}, not ${window}`);
}

/**
 * @param {{ sampleRate?: number, channels?: number, encoding?: Encoding }} format
 * @returns {AudioFormat}
 */
export function checkedFormat({ sampleRate, channels = 1, encoding = "pcm_s16le" }) {
  if (
    typeof sampleRate !== "number" ||
    !(sampleRate > 0 && sampleRate < Number.POSITIVE_INFINITY)
  ) {
    const hint = "samples do not say how many make a second";
    throw invalid("sampleRate", `must be a number such as 16000, not ${sampleRate}: ${hint}`);
  }
  if (channels !== 1 && channels !== 2)
    throw invalid("channels", `must be 1 or 2, not ${channels}`);
  if (encoding !== "pcm_s16le" && encoding !== "pcm_f32le") {
    throw invalid("encoding", `must be "pcm_s16le" or "pcm_f32le", not ${encoding}`);
  }
  return { sampleRate, channels, encoding };
}

/**
 * @param {string} param
 * @param {string} text
 */
function invalid(param, text) {
  return new InvalidRequestError(`${param} ${text}`, { param });
}

/**
 * @param {AbortSignal | null | undefined} signal
 * @returns {AbortSignal | undefined}
 */
export function checkedSignal(signal) {
  if (signal === undefined || signal === null) return undefined;
  if (typeof signal.addEventListener === "function") return signal;
  throw new TypeError("signal must be an AbortSignal: pass controller.signal, not the controller");
}
