/**
 * The one reading of a stream: by an iterator, or diverted into another inlet, and never twice. What arrives is put
 * into `inlet`, whoever reads. Does not know the wire: its stream says what taking and leaving mean.
 */

/** @import { Inlet, Reader } from "./internal.d.ts" */

import { iteratorOf } from "./consume.js";
import { Inbox } from "./inbox.js";

/** @template T */
export class Reading {
  /** @type {Inbox<T>} */
  #inbox;
  #stream;
  #begun = false;

  /** Where what arrives goes. @type {Inlet<T>} */
  inlet;

  /** @param {Reader} stream */
  constructor(stream) {
    this.#stream = stream;
    this.#inbox = new Inbox((seq) => stream.take(seq));
    this.inlet = this.#inbox;
  }

  iterator() {
    this.#begin();
    const next = () => {
      this.#stream.heed();
      return this.#inbox.next();
    };
    return iteratorOf(next, () => this.#stream.leave(null));
  }

  /**
   * What waits and what comes goes to `inlet`, which is the reader from now on.
   *
   * @param {Inlet<T>} inlet
   * @returns {Reader}
   */
  divert(inlet) {
    this.#begin();
    this.#inbox.moveTo(inlet);
    this.inlet = inlet;
    return this.#stream;
  }

  #begin() {
    if (this.#begun) {
      throw new TypeError(
        "This stream is already being read: a stream can be iterated once. " +
          "Keep the items (collect()), read it twice (teeStream()) or open another stream.",
      );
    }
    this.#begun = true;
  }
}
