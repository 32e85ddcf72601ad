/**
 * What the end of a connection means (close codes of PROTOCOL.md §6): whether and how soon to come back,
 * and the error its streams get. Pure; does not know sockets.
 */

/** @import { Closing } from "./internal.d.ts" */

import { PlaitError, StreamError } from "./errors.js";

const UNAUTHORIZED = 4401;
const FLOOD = 4429;
const FLOOD_DELAY_MS = 60_000;
/** Close codes that say this client is at fault; coming back with the same fault helps nobody. */
const FINAL_CODES = new Set([1007, 1009, 4400, UNAUTHORIZED]);

/** @param {Closing} closing */
export function isFinal({ code }) {
  return FINAL_CODES.has(code);
}

/** @param {Closing} closing */
export function minDelayMs({ code }) {
  return code === FLOOD ? FLOOD_DELAY_MS : 0;
}

export function closedByCaller() {
  return new StreamError("connection_closed", "The connection was closed by close().", {
    class: "client",
  });
}

/**
 * @param {Closing} closing
 * @param {boolean} wasOpen
 * @param {string} url
 * @returns {PlaitError}
 */
export function closingError({ code, reason, cause }, wasOpen, url) {
  const facts = [code === 0 ? "" : `close code ${code}`, reason].filter(Boolean).join(": ");
  if (code === UNAUTHORIZED) {
    return new PlaitError(
      "unauthorized",
      `The server refused the token (${facts}). Get a new one and connect() again.`,
    );
  }
  if (wasOpen) {
    const text = `The connection was lost (${facts}). What had arrived is kept; the request is not repeated for you.`;
    return new StreamError("connection_lost", text, {
      retryable: !FINAL_CODES.has(code),
      cause,
    });
  }
  const text = `No connection to ${url} (${facts}). Is the server running, and is this origin allowed?`;
  return new StreamError("connection_failed", text, { retryable: true, cause });
}
