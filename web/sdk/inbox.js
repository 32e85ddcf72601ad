/** @import { Inlet } from "./internal.d.ts" */

/**
 * What has arrived for one consumer and was not taken yet; the asynchronous iterator's memory.
 * Bounded by the stream's window: the server may not send more, and the stream refuses more.
 * An ending is told once (a failure rejects one next(), later calls are simply done), after every
 * item that came before it; `discard` is for a consumer who left and wants none of them.
 * Does not know the wire, credit or cancelling: `onTake` is told of every item that leaves.
 *
 * @template T
 * @implements {Inlet<T>}
 */
export class Inbox {
  /** @type {{ value: T, seq: number }[]} */
  #items = [];
  /** @type {{ resolve: (result: IteratorResult<T, undefined>) => void, reject: (reason: unknown) => void }[]} */
  #readers = [];
  /** @type {{ failure: { reason: unknown } | null } | null} */
  #ending = null;
  #onTake;

  /** @param {(seq: number) => void} onTake seq 0: not an item of the wire */
  constructor(onTake) {
    this.#onTake = onTake;
  }

  /**
   * @param {T} value
   * @param {number} seq
   */
  put(value, seq) {
    if (this.#ending) return;
    const reader = this.#readers.shift();
    if (!reader) {
      this.#items.push({ value, seq });
      return;
    }
    this.#onTake(seq);
    reader.resolve({ value, done: false });
  }

  /**
   * What one item of the wire holds. It counts as taken with its last value.
   *
   * @param {T[]} values at least one
   * @param {number} seq
   */
  putAll(values, seq) {
    for (const [index, value] of values.entries()) {
      this.put(value, index === values.length - 1 ? seq : 0);
    }
  }

  /**
   * An item that is nothing to the consumer by itself: it counts as taken with what came before it.
   *
   * @param {number} seq
   */
  ride(seq) {
    const last = this.#items.at(-1);
    if (last) last.seq = seq;
    else if (!this.#ending) this.#onTake(seq);
  }

  /** Nothing more will come, and that is a good end. */
  finish() {
    this.#end(null);
  }

  /**
   * Nothing more will come, and the consumer must not take it for an end.
   *
   * @param {unknown} reason
   */
  fail(reason) {
    this.#end({ reason });
  }

  /**
   * The consumer left: drop what waits, settle who waits.
   *
   * @param {{ reason: unknown } | null} failure what a waiting or later next() is told, once
   */
  discard(failure) {
    const wasRead = this.#ending !== null && this.#items.length === 0;
    this.#items = [];
    if (this.#ending && !wasRead) this.#ending = { failure };
    else this.#end(failure);
  }

  /**
   * All of it goes to another; nobody waits here.
   *
   * @param {Inlet<T>} inlet
   */
  moveTo(inlet) {
    for (const { value, seq } of this.#items.splice(0)) inlet.put(value, seq);
    if (this.#ending?.failure) inlet.fail(this.#ending.failure.reason);
    else if (this.#ending) inlet.finish();
  }

  /** @returns {Promise<IteratorResult<T, undefined>>} */
  next() {
    const item = this.#items.shift();
    if (item) {
      this.#onTake(item.seq);
      return Promise.resolve({ value: item.value, done: false });
    }
    if (!this.#ending) {
      return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
    }
    const { failure } = this.#ending;
    this.#ending = { failure: null };
    return failure
      ? Promise.reject(failure.reason)
      : Promise.resolve({ value: undefined, done: true });
  }

  /** @param {{ reason: unknown } | null} failure */
  #end(failure) {
    if (this.#ending) return;
    const readers = this.#readers;
    this.#readers = [];
    const told = failure && readers.length > 0;
    this.#ending = { failure: told ? null : failure };
    if (told) readers.shift()?.reject(failure.reason);
    for (const reader of readers) reader.resolve({ value: undefined, done: true });
  }
}
