/**
 * A value that components read, as `useSyncExternalStore` wants it: one object until something changes, then another.
 * What changes many times a second is seen once per animation frame; what a person waits for is seen at once.
 * Knows neither React nor Plait.
 */

/** @typedef {(callback: () => void) => () => void} Schedule calls back once, later; returns how to take that back */

/** A page that is hidden gets no frames, and must not stand still for that. */
const HIDDEN_MS = 250;

/** @template {object} T */
export class Store {
  /** @type {T} */
  #value;
  #schedule;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  /** What changed since it was last told. @type {(() => Partial<T>) | null} */
  #read = null;
  /** @type {(() => void) | null} */
  #takeBack = null;

  /**
   * @param {T} value
   * @param {Schedule} [schedule]
   */
  constructor(value, schedule = nextFrame) {
    this.#value = value;
    this.#schedule = schedule;
  }

  /** The same object until something changes. */
  get = () => this.#value;

  /**
   * @param {() => void} listener
   * @returns {() => void}
   */
  subscribe = (listener) => {
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  };

  /**
   * Seen at once, together with what waited for the frame.
   *
   * @param {Partial<T>} [change]
   */
  set(change) {
    this.#takeBack?.();
    this.#takeBack = null;
    const changed = { ...this.#read?.(), ...change };
    this.#read = null;
    if (isAlready(changed, this.#value)) return;
    this.#value = { ...this.#value, ...changed };
    for (const listener of [...this.#listeners]) listener();
  }

  /**
   * Seen with the next frame.
   *
   * @param {() => Partial<T>} read asked then, once, however often this was called
   */
  later(read) {
    this.#read = read;
    this.#takeBack ??= this.#schedule(() => this.set());
  }
}

/**
 * @param {() => void} callback
 * @returns {() => void}
 */
export function nextFrame(callback) {
  const run = () => {
    takeBack();
    callback();
  };
  const frame = globalThis.requestAnimationFrame?.(run);
  const timer = setTimeout(run, HIDDEN_MS);
  const takeBack = () => {
    clearTimeout(timer);
    if (frame !== undefined) cancelAnimationFrame(frame);
  };
  return takeBack;
}

/**
 * @param {object} changed
 * @param {object} value
 */
function isAlready(changed, value) {
  return Object.entries(changed).every(([key, part]) => Object.is(part, Reflect.get(value, key)));
}
