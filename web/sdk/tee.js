/**
 * One stream read by several: what arrives goes into an inbox for each branch. An item counts as consumed once the
 * slowest branch still reading has taken it, so the server's credit follows that one: no inbox ever holds more than the
 * source's window, and a branch nobody reads makes the others wait. The source is left with its last branch.
 * Does not know the wire.
 */

/** @import { Cancel, Stream } from "./types.d.ts" */
/** @import { Divertible, Inlet, Reader } from "./internal.d.ts" */

import { collect, toReadableStream } from "./consume.js";
import { proofOf } from "./ending.js";
import { abortError } from "./errors.js";
import { Reading } from "./reading.js";

/** A branch left and others read on: the stream was not stopped, and nothing is claimed. @type {Cancel} */
const NOTHING_STOPPED = { by: null, released: false, stopMs: null, wasted: null, usage: null };

/**
 * @template T
 * @overload
 * @param {Stream<T>} stream
 * @param {2} [n]
 * @returns {[Stream<T>, Stream<T>]}
 */
/**
 * @template T
 * @overload
 * @param {Stream<T>} stream
 * @param {number} n
 * @returns {Stream<T>[]}
 */
/**
 * @template T
 * @param {Stream<T>} stream
 * @param {number} [n]
 * @returns {Stream<T>[]}
 */
export function teeStream(stream, n = 2) {
  if (!Number.isInteger(n) || n < 1) {
    throw new RangeError(`teeStream() makes 1, 2 or more branches, not ${n}`);
  }
  if (typeof (/** @type {Partial<Divertible<T>>} */ (stream)?.divert) !== "function") {
    throw new TypeError("teeStream() takes a stream of Plait, such as llm.chatStream() returns");
  }
  return new Tee(/** @type {Divertible<T>} */ (stream), n).branches;
}

/**
 * @template T
 * @implements {Inlet<T>}
 */
class Tee {
  #reader;
  /** Of each branch still reading, the last item it took. @type {Map<Branch<T>, number>} */
  #taken;
  #consumedSeq = 0;
  source;
  /** @type {Branch<T>[]} */
  branches;

  /**
   * @param {Divertible<T>} source
   * @param {number} n
   */
  constructor(source, n) {
    this.source = source;
    this.branches = Array.from({ length: n }, () => new Branch(this));
    this.#taken = new Map(this.branches.map((branch) => [branch, 0]));
    this.#reader = source.divert(this);
  }

  // Inlet: what arrives.

  /** @param {T} value @param {number} seq */
  put(value, seq) {
    for (const { inlet } of this.branches) inlet.put(value, seq);
  }

  /** @param {T[]} values @param {number} seq */
  putAll(values, seq) {
    for (const { inlet } of this.branches) inlet.putAll(values, seq);
  }

  /** @param {number} seq */
  ride(seq) {
    for (const { inlet } of this.branches) inlet.ride(seq);
  }

  finish() {
    for (const { inlet } of this.branches) inlet.finish();
  }

  /** @param {unknown} reason */
  fail(reason) {
    for (const { inlet } of this.branches) inlet.fail(reason);
  }

  /** @param {{ reason: unknown } | null} failure */
  discard(failure) {
    for (const { inlet } of this.branches) inlet.discard(failure);
  }

  // What the branches say.

  heed() {
    this.#reader.heed();
  }

  /** @param {Branch<T>} branch @param {number} seq 0: not an item of the wire */
  take(branch, seq) {
    if (seq === 0 || !this.#taken.has(branch)) return;
    this.#taken.set(branch, seq);
    this.#followSlowest();
  }

  /** @param {Branch<T>} branch @param {{ reason: unknown } | null} failure */
  leave(branch, failure) {
    branch.inlet.discard(failure);
    if (!this.#taken.delete(branch)) return;
    if (this.#taken.size === 0) this.#reader.leave(failure);
    else this.#followSlowest();
  }

  /** @returns {Promise<Cancel>} what a branch's leaving came to */
  proof() {
    const { state, done } = this.source;
    const goesOn = this.#taken.size > 0 && (state === "pending" || state === "streaming");
    return goesOn ? Promise.resolve(NOTHING_STOPPED) : done.then(proofOf);
  }

  #followSlowest() {
    const seq = Math.min(...this.#taken.values());
    if (seq <= this.#consumedSeq) return;
    this.#consumedSeq = seq;
    this.#reader.take(seq);
  }
}

/**
 * @template T
 * @implements {Divertible<T>}
 * @implements {Reader}
 */
class Branch {
  #tee;
  /** @type {Reading<T>} */
  #reading = new Reading(this);

  /** @param {Tee<T>} tee */
  constructor(tee) {
    this.#tee = tee;
  }

  get id() {
    return this.#tee.source.id;
  }

  get state() {
    return this.#tee.source.state;
  }

  get queue() {
    return this.#tee.source.queue;
  }

  get started() {
    return this.#tee.source.started;
  }

  get done() {
    return this.#tee.source.done;
  }

  /**
   * @param {unknown} [reason]
   * @returns {Promise<Cancel>}
   */
  cancel(reason = abortError("The stream was cancelled.")) {
    this.leave({ reason });
    return this.#tee.proof();
  }

  /** @returns {Promise<T[]>} */
  collect() {
    return collect(this);
  }

  /** @returns {ReadableStream<T>} */
  toReadableStream() {
    return toReadableStream(this);
  }

  [Symbol.asyncIterator]() {
    return this.#reading.iterator();
  }

  // For a tee of this branch.

  /** @param {Inlet<T>} inlet */
  divert(inlet) {
    return this.#reading.divert(inlet);
  }

  // For its tee.

  get inlet() {
    return this.#reading.inlet;
  }

  // Reader: what its own reading says.

  heed() {
    this.#tee.heed();
  }

  /** @param {number} seq */
  take(seq) {
    this.#tee.take(this, seq);
  }

  /** @param {{ reason: unknown } | null} failure */
  leave(failure) {
    this.#tee.leave(this, failure);
  }
}
