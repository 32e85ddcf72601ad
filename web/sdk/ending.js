/**
 * What a stream's ending says: the wire's terminal, or the lack of one, as the End and Cancel callers see.
 * Nothing is claimed that the server did not confirm. Pure; does not know streams.
 */

/** @import { Cancel, Cancelled, Cost, End } from "./types.d.ts" */
/** @import { Terminal } from "./internal.d.ts" */

/**
 * @param {Terminal} [terminal] none: the server did not get to say
 * @returns {Cost}
 */
export function costOf(terminal) {
  if (!terminal || terminal.type === "rejected") return { usage: null, timing: null };
  return { usage: terminal.usage ?? null, timing: terminal.timing ?? null };
}

/**
 * @param {Extract<Terminal, { type: "cancelled" }>} message
 * @returns {Cancelled}
 */
export function cancelledEnd(message) {
  const { by, released, stopMs = null, wasted = null, heard } = message;
  const spoken = typeof heard === "string" ? { heard } : {};
  return { state: "cancelled", by, released, stopMs, wasted, ...spoken, ...costOf(message) };
}

/**
 * The terminal crossed our cancel, or answers it. A `done` that crossed, or a rejection, means there was
 * nothing left to stop; an `error` that crossed proves nothing about the slot, so nothing is claimed.
 *
 * @param {Terminal} message
 * @returns {Cancelled}
 */
export function endAfterLeaving(message) {
  if (message.type === "cancelled") return cancelledEnd(message);
  if (message.type === "error") return unconfirmedEnd(message);
  return { ...nothingHeldEnd(), ...costOf(message) };
}

/** @returns {Cancelled} nothing is held on the server: never asked for, or over already */
export function nothingHeldEnd() {
  return { ...unconfirmedEnd(), released: true, stopMs: 0 };
}

/**
 * @param {Terminal} [terminal]
 * @returns {Cancelled}
 */
export function unconfirmedEnd(terminal) {
  const unproved = { released: false, stopMs: null, wasted: null };
  return { state: "cancelled", by: "client", ...unproved, ...costOf(terminal) };
}

/**
 * @param {End} end
 * @returns {Cancel}
 */
export function proofOf(end) {
  if (end.state === "cancelled") {
    const { by, released, stopMs, wasted, usage, heard } = end;
    return { by, released, stopMs, wasted, usage, ...(heard !== undefined && { heard }) };
  }
  const ended = end.state === "completed";
  return { by: null, released: ended, stopMs: ended ? 0 : null, wasted: null, usage: end.usage };
}
