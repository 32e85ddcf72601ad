/**
 * The stream options the client itself depends on, checked before anything is sent. Everything else is
 * the server's to check: it answers with the field's name.
 */

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
 * @param {string} param
 * @param {string} text
 */
export function invalid(param, text) {
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
