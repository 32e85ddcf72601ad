/**
 * Listeners by event name. A listener that throws is its author's problem, reported as any uncaught
 * error is, and keeps neither the other listeners nor the connection from going on.
 *
 * @template {Record<string, any>} Events
 */
export class Emitter {
  /** @type {Map<keyof Events, Set<(event: any) => void>>} */
  #listeners = new Map();

  /** @param {(keyof Events)[]} types the events there are */
  constructor(types) {
    for (const type of types) this.#listeners.set(type, new Set());
  }

  /**
   * @template {keyof Events} K
   * @param {K} type
   * @param {(event: Events[K]) => void} listener
   * @returns {() => void} removes this listener
   */
  on(type, listener) {
    const listeners = this.#listeners.get(type);
    if (!listeners) {
      const known = [...this.#listeners.keys()].join(", ");
      throw new TypeError(`there is no event "${String(type)}"; there are: ${known}`);
    }
    // Wrapped: the same function may be subscribed twice, and each unsubscribe removes its own.
    /** @param {Events[K]} event */
    const entry = (event) => listener(event);
    listeners.add(entry);
    return () => void listeners.delete(entry);
  }

  /** @param {keyof Events} type */
  hears(type) {
    return (this.#listeners.get(type)?.size ?? 0) > 0;
  }

  /**
   * @template {keyof Events} K
   * @param {K} type
   * @param {Events[K]} event
   */
  emit(type, event) {
    for (const listener of [...(this.#listeners.get(type) ?? [])]) {
      try {
        listener(event);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
