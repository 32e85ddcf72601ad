/**
 * Texts read together from their source: as many as it has at hand, so that a hundred thousand of them need not go up
 * one by one, and one that comes alone is not kept waiting for others. However many are at hand, the event loop has its
 * turn now and then: an abort must not wait until the server's credit is used up.
 * Does not know credit or the wire; what is no text passes here and is refused where it is measured.
 */

/** @import { Runtime, Timer } from "./internal.d.ts" */
/** @import { Source } from "./upload.js" */

/** Enough for one message; more is read when these have gone up. */
const BATCH_UNITS = 32_768;
/** Empty texts are not read without end either. */
const UNITS_PER_TEXT = 16;
/** Of reading, without a turn of the event loop. */
const BUSY_MS = 10;

/** @implements {AsyncIterator<unknown[], undefined>} */
export class TextBatches {
  #source;
  #runtime;
  #busyMs = 0;
  /** Asked for and not taken yet. @type {Promise<IteratorResult<unknown, unknown>> | null} */
  #pending = null;
  #over = false;

  /**
   * @param {Source} source
   * @param {Pick<Runtime, "now" | "after">} runtime
   */
  constructor(source, runtime) {
    this.#source = source;
    this.#runtime = runtime;
  }

  /** @returns {Promise<IteratorResult<unknown[], undefined>>} */
  async next() {
    /** @type {unknown[]} */
    const batch = [];
    if (this.#busyMs >= BUSY_MS) {
      await new Patience(this.#runtime.after).end();
      this.#busyMs = 0;
    }
    const patience = new Patience(this.#runtime.after);
    const beganMs = this.#runtime.now();
    let units = 0;
    try {
      while (units < BATCH_UNITS && !this.#over) {
        const result = await this.#read(batch.length > 0 ? patience.end() : null);
        if (result === null) break;
        this.#over = result.done === true;
        if (result.done) break;
        batch.push(result.value);
        units += UNITS_PER_TEXT + lengthOf(result.value);
      }
    } finally {
      patience.clear();
    }
    // Else it has waited for texts.
    if (units >= BATCH_UNITS) this.#busyMs += this.#runtime.now() - beganMs;
    return batch.length > 0 ? { value: batch, done: false } : { value: undefined, done: true };
  }

  async return() {
    this.#over = true;
    await this.#source.return?.();
    return { value: undefined, done: /** @type {const} */ (true) };
  }

  /**
   * @param {Promise<null> | null} patience null: without end
   * @returns {Promise<IteratorResult<unknown, unknown> | null>} null: it has not come yet
   */
  async #read(patience) {
    if (this.#pending === null) {
      this.#pending = Promise.resolve(this.#source.next());
      this.#pending.catch(() => {}); // told to who reads on; else nobody asks any more
    }
    const result = await (patience ? Promise.race([this.#pending, patience]) : this.#pending);
    if (result !== null) this.#pending = null;
    return result;
  }
}

/** It ends when everything that was ready has had its turn. */
class Patience {
  #after;
  /** @type {Promise<null> | null} */
  #end = null;
  /** @type {Timer | null} */
  #timer = null;

  /** @param {Runtime["after"]} after */
  constructor(after) {
    this.#after = after;
  }

  end() {
    this.#end ??= new Promise((resolve) => {
      this.#timer = this.#after(0, () => resolve(null));
    });
    return this.#end;
  }

  clear() {
    this.#timer?.clear();
  }
}

/** @param {unknown} text */
function lengthOf(text) {
  return typeof text === "string" ? text.length : 0;
}
