/**
 * What a stream's ending says: the wire's terminal, or the lack of one, as the End and Cancel callers see.
 * Nothing is claimed that the server did not confirm. Pure; does not know streams.
 */

/** @import { Cancel, Cancelled, End, Usage } from "./types.d.ts" */
/** @import { Terminal } from "./internal.d.ts" */

/**
 * @param {Exclude<Terminal, { type: "done" } | { type: "cancelled" }>} message
 */
export function usageOf(message) {
  return message.type === "error" ? (message.usage ?? null) : null;
}

/**
 * @param {Extract<Terminal, { type: "cancelled" }>} message
 * @returns {Cancelled}
 */
export function cancelledEnd({ by, released, stopMs, wasted, usage }) {
  return {
    state: "cancelled",
    by,
    released,
    stopMs: stopMs ?? null,
    wasted: wasted ?? null,
    usage: usage ?? null,
  };
}

/**
 * The terminal crossed our cancel, or answers it. A `done` that crossed means there was nothing left to
 * stop; an `error` that crossed proves nothing about the slot, so nothing is claimed.
 *
 * @param {Terminal} message
 * @returns {Cancelled}
 */
export function endAfterLeaving(message) {
  if (message.type === "cancelled") return cancelledEnd(message);
  if (message.type === "done") {
    return { ...neverOpenedEnd(), usage: message.usage ?? null };
  }
  return unconfirmedEnd(usageOf(message));
}

/** @returns {Cancelled} nothing was asked of the server, so nothing is held there */
export function neverOpenedEnd() {
  return { state: "cancelled", by: "client", released: true, stopMs: 0, wasted: null, usage: null };
}

/**
 * @param {Usage | null} usage
 * @returns {Cancelled}
 */
export function unconfirmedEnd(usage) {
  return { state: "cancelled", by: "client", released: false, stopMs: null, wasted: null, usage };
}

/**
 * @param {End} end
 * @returns {Cancel}
 */
export function proofOf(end) {
  if (end.state === "cancelled") {
    const { by, released, stopMs, wasted, usage } = end;
    return { by, released, stopMs, wasted, usage };
  }
  const ended = end.state === "completed";
  return { by: null, released: ended, stopMs: ended ? 0 : null, wasted: null, usage: end.usage };
}
