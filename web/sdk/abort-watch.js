/**
 * One listener on a caller's AbortSignal, however many wait for it: Node takes more than ten for a leak and says so.
 * The listener goes with the last of them.
 */

/** @type {WeakMap<AbortSignal, { callbacks: Set<() => void>, tell: () => void }>} */
const watches = new WeakMap();

/**
 * @param {AbortSignal | undefined} signal undefined, or aborted before: there is nothing to wait for
 * @param {() => void} callback called in the tick of the abort, once; must not throw
 * @returns {() => void} it is not waited for any more, nor called
 */
export function onAbort(signal, callback) {
  if (!signal || signal.aborted) return () => {};
  const { callbacks, tell } = watches.get(signal) ?? watch(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || watches.get(signal)?.callbacks !== callbacks) return;
    watches.delete(signal);
    signal.removeEventListener("abort", tell);
  };
}

/** @param {AbortSignal} signal */
function watch(signal) {
  /** @type {Set<() => void>} */
  const callbacks = new Set();
  const tell = () => {
    for (const callback of callbacks) callback(); // not one that another has taken back meanwhile
  };
  const watching = { callbacks, tell };
  watches.set(signal, watching);
  signal.addEventListener("abort", tell);
  return watching;
}
