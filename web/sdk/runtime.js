/**
 * What the SDK takes from its surroundings: a monotonic clock, timers, chance. Tests pass their own.
 * `unref` lets a Node process end although the timer is pending; a page has no such thing.
 */

/** @import { Runtime } from "./internal.d.ts" */

/** @type {Runtime} */
export const platform = {
  now: () => performance.now(),
  random: Math.random,
  after(delayMs, callback) {
    /** @type {any} */
    const handle = setTimeout(callback, delayMs);
    return {
      clear: () => clearTimeout(handle),
      ref: () => void handle.ref?.(),
      unref: () => void handle.unref?.(),
    };
  },
};
