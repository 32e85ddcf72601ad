/**
 * What goes up while it comes into being: reads a source no faster than the server's credit and the socket allow,
 * says `end` after its last piece, and lets it go when the stream ends first, whichever way.
 * A source that fails is told to `fail`; its `return()` is called at most once, and never after its end.
 * Does not know streams or sockets, text or audio: `pieces` cuts, `outlet` sends.
 */

/** @import { Outlet, Pieces, Timer } from "./internal.d.ts" */

import { InvalidRequestError } from "./errors.js";

/** A WebSocket says nothing when it has room again; acks do, and where they are rare one looks as often as this. */
const SOCKET_CHECK_MS = 20;

/** @typedef {AsyncIterator<unknown, unknown> | Iterator<unknown, unknown>} Source */

/** @template P what one message carries */
export class Upload {
  #source;
  #pieces;
  #out;
  #sentBytes = 0;
  /** The server takes this many in all; null: it has not said. @type {number | null} */
  #creditBytes = null;
  /** Nothing more is sent. */
  #over = false;
  /** Nothing more is read, and what was read is still sent. */
  #finished = false;
  #sourceOver = false;
  /** Ends the wait for room. @type {() => void} */
  #wake = () => {};
  /** Ends the wait for the source. @type {() => void} */
  #interrupt = () => {};
  /** @type {Timer | null} */
  #timer = null;

  /**
   * @param {Source} source
   * @param {Pieces<P>} pieces
   * @param {Outlet<P>} outlet
   */
  constructor(source, pieces, outlet) {
    this.#source = source;
    this.#pieces = pieces;
    this.#out = outlet;
  }

  /** No room was granted yet. */
  get waits() {
    return this.#creditBytes === null;
  }

  get sentBytes() {
    return this.#sentBytes;
  }

  /** Read from the source and not sent. */
  get pendingBytes() {
    return this.#pieces.bytes;
  }

  /**
   * What the server has room for; the first call starts the reading.
   *
   * @param {number} totalBytes counted from the stream's beginning
   */
  grant(totalBytes) {
    const first = this.#creditBytes === null;
    this.#creditBytes = Math.max(this.#creditBytes ?? 0, totalBytes);
    if (first && !this.#over) void this.#run();
    else this.#wake();
  }

  /** Half-close: the source is let go, what was read of it goes up, then `end`. */
  finish() {
    this.#finished = true;
    this.#letGo();
    this.#interrupt();
  }

  /** The stream has ended: nothing more is sent, and the source is let go. */
  stop() {
    if (this.#over) return;
    this.#over = true;
    this.#wake();
    this.#letGo();
    this.#interrupt();
  }

  #letGo() {
    if (this.#sourceOver) return;
    this.#sourceOver = true;
    // Nobody is left who could be told that a source did not like to be let go.
    void Promise.resolve()
      .then(() => this.#source.return?.())
      .catch(() => {});
  }

  async #run() {
    try {
      for (let next = await this.#next(); next; next = await this.#next()) {
        this.#pieces.put(next.value);
        await this.#sendAll();
      }
      this.#pieces.flush();
      await this.#sendAll();
      if (!this.#over) this.#out.end();
    } catch (reason) {
      if (!this.#over) this.#out.fail(reason);
    }
  }

  /** @returns {Promise<{ value: unknown } | null>} null: the source is at its end, or let go */
  async #next() {
    if (this.#over || this.#finished) return null;
    try {
      const result = await this.#uninterrupted(this.#source.next());
      if (result === null) return null;
      const { value, done } = result;
      this.#sourceOver ||= done === true;
      return done || this.#over ? null : { value };
    } catch (reason) {
      this.#sourceOver = true;
      if (this.#finished) return null;
      throw reason;
    }
  }

  /**
   * @template R
   * @param {R | Promise<R>} result
   * @returns {Promise<R | null>} null: finish() or stop() came first; not a race with one promise that lives as
   *   long as the stream, which would remember every loser
   */
  #uninterrupted(result) {
    return new Promise((resolve, reject) => {
      this.#interrupt = () => resolve(null);
      Promise.resolve(result).then(resolve, reject);
    });
  }

  async #sendAll() {
    while (this.#pieces.bytes > 0 && !this.#over) {
      const roomBytes = Math.min(this.#out.maxBytes, (this.#creditBytes ?? 0) - this.#sentBytes);
      const full = this.#out.full;
      const cut = roomBytes > 0 && !full ? this.#pieces.cut(roomBytes) : null;
      if (!cut) {
        await this.#room(full);
        continue;
      }
      this.#sentBytes += cut.bytes;
      this.#out.send(cut.piece);
    }
  }

  /**
   * @param {boolean} checks the socket is behind: look again, though nobody calls
   * @returns {Promise<void>} until there may be room, or stop()
   */
  #room(checks) {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#timer?.clear();
        resolve();
      };
      if (checks) this.#timer = this.#out.after(SOCKET_CHECK_MS, this.#wake);
    });
  }
}

/**
 * @param {unknown} source
 * @param {string} param its name
 * @param {string} expected
 * @returns {Source}
 * @throws {InvalidRequestError} when it cannot be iterated
 */
export function iteratorOver(source, param, expected) {
  if (typeof source === "object" && source !== null) {
    if (Symbol.asyncIterator in source) {
      return /** @type {AsyncIterable<unknown>} */ (source)[Symbol.asyncIterator]();
    }
    if (Symbol.iterator in source) {
      return /** @type {Iterable<unknown>} */ (source)[Symbol.iterator]();
    }
    if ("getReader" in source) return readerOf(/** @type {ReadableStream<unknown>} */ (source));
  }
  throw new InvalidRequestError(`${param} must be ${expected}`, { param });
}

/**
 * Where streams cannot be iterated yet (Safari).
 *
 * @param {ReadableStream<unknown>} stream
 * @returns {Source}
 */
function readerOf(stream) {
  const reader = stream.getReader();
  return {
    next: () => /** @type {Promise<IteratorResult<unknown, unknown>>} */ (reader.read()),
    return: async () => ({ done: true, value: await reader.cancel() }),
  };
}
