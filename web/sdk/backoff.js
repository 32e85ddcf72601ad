/**
 * How long to wait before the next connection attempt: exponential, capped, with proportional jitter
 * so that a thousand pages that lost the same server do not return in the same instant.
 * Pure: randomness is passed in. Does not know why the connection ended.
 */

const FIRST_DELAY_MS = 250;
/** Share of the delay that is random: a wait lies between 50 % and 100 % of its exponential value. */
const JITTER = 0.5;

export const DEFAULT_MAX_DELAY_MS = 10_000;

/**
 * @param {number} attempt 0 for the first retry
 * @param {number} maxDelayMs
 * @param {() => number} random uniform in [0, 1)
 * @returns {number} milliseconds
 */
export function retryDelayMs(attempt, maxDelayMs, random) {
  const delayMs = Math.min(maxDelayMs, FIRST_DELAY_MS * 2 ** attempt);
  return delayMs * (1 - JITTER * random());
}
