/**
 * Text that goes up while it is being written: reads a source no faster than the server's credit allows,
 * says `end` after its last piece, and lets it go when the stream ends first, whichever way.
 * A source that fails is told to `fail`; its `return()` is called at most once, and never after its end.
 * Does not know streams or sockets: what to send goes to `send`.
 */

import { InvalidRequestError } from "./errors.js";

/** Far below the server's limit on a frame, also where JSON needs six bytes for one. */
const MAX_PIECE_BYTES = 16_384;
/** UTF-8 needs at most this many bytes for one UTF-16 unit. */
const BYTES_PER_UNIT = 3;

/** @typedef {string | { content?: string | null }} Piece  a Stream<ChatDelta> can be spoken as it is */
/** @typedef {AsyncIterator<Piece, unknown> | Iterator<Piece, unknown>} Source */

export class TextUpload {
  #source;
  #out;
  #encoder = new TextEncoder();
  /** A high surrogate whose other half is in the next piece. */
  #half = "";
  #sentBytes = 0;
  /** The server takes this many in all; null: it has not said. @type {number | null} */
  #creditBytes = null;
  #over = false;
  #sourceOver = false;
  /** @type {() => void} */
  #wake = () => {};

  /**
   * @param {AsyncIterable<Piece> | Iterable<Piece> | ReadableStream<Piece>} text
   * @param {{ send(text: string): void, end(): void, fail(reason: unknown): void }} out
   */
  constructor(text, out) {
    this.#source = iteratorOver(text);
    this.#out = out;
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

  /** No room was granted yet. */
  get waits() {
    return this.#creditBytes === null;
  }

  /** The stream has ended: nothing more is sent, and the source is let go. */
  stop() {
    if (this.#over) return;
    this.#over = true;
    this.#wake();
    if (this.#sourceOver) return;
    this.#sourceOver = true;
    // Nobody is left who could be told that a source did not like to be let go.
    void Promise.resolve()
      .then(() => this.#source.return?.())
      .catch(() => {});
  }

  async #run() {
    try {
      for (let piece = await this.#next(); piece !== null; piece = await this.#next()) {
        await this.#send(piece);
        if (this.#over) return;
      }
      await this.#send(this.#half && "\ufffd");
      if (!this.#over) this.#out.end();
    } catch (reason) {
      if (!this.#over) this.#out.fail(reason);
    }
  }

  /** @returns {Promise<string | null>} null: the source is at its end, or let go */
  async #next() {
    if (this.#over) return null;
    try {
      const { value, done } = await this.#source.next();
      this.#sourceOver ||= done === true;
      return done || this.#over ? null : this.#whole(textOf(value));
    } catch (reason) {
      // A source that threw is over; one that gave something else than text is not.
      if (!(reason instanceof InvalidRequestError)) this.#sourceOver = true;
      throw reason;
    }
  }

  /**
   * Joined to the half character before it, and without its own: JSON must not carry half a character.
   *
   * @param {string} piece
   */
  #whole(piece) {
    const text = this.#half + piece;
    this.#half = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
    return this.#half ? text.slice(0, -1) : text;
  }

  /** @param {string} text */
  async #send(text) {
    let rest = text;
    while (rest && !this.#over) {
      const roomBytes = Math.min(MAX_PIECE_BYTES, (this.#creditBytes ?? 0) - this.#sentBytes);
      const bytes = new Uint8Array(Math.min(roomBytes, rest.length * BYTES_PER_UNIT));
      // Whole characters only; what is half becomes U+FFFD on the way.
      const { read, written } = this.#encoder.encodeInto(rest, bytes);
      if (read === 0) {
        await this.#credit();
        continue;
      }
      this.#sentBytes += written;
      this.#out.send(
        new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, written)),
      );
      rest = rest.slice(read);
    }
  }

  /** @returns {Promise<void>} until grant() or stop() */
  #credit() {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/**
 * @param {unknown} text
 * @returns {Source}
 */
function iteratorOver(text) {
  if (typeof text === "object" && text !== null) {
    if (Symbol.asyncIterator in text) {
      return /** @type {AsyncIterable<Piece>} */ (text)[Symbol.asyncIterator]();
    }
    if (Symbol.iterator in text) return /** @type {Iterable<Piece>} */ (text)[Symbol.iterator]();
    if ("getReader" in text) return readerOf(/** @type {ReadableStream<Piece>} */ (text));
  }
  throw new InvalidRequestError(
    "text must be a string, or an iterable of strings such as a chat stream",
    { param: "text" },
  );
}

/**
 * Where streams cannot be iterated yet (Safari).
 *
 * @param {ReadableStream<Piece>} stream
 * @returns {Source}
 */
function readerOf(stream) {
  const reader = stream.getReader();
  return {
    next: () => /** @type {Promise<IteratorResult<Piece, unknown>>} */ (reader.read()),
    return: async () => ({ done: true, value: await reader.cancel() }),
  };
}

/**
 * @param {unknown} piece
 * @returns {string}
 */
function textOf(piece) {
  if (typeof piece === "string") return piece;
  if (typeof piece === "object" && piece !== null && "content" in piece) {
    return typeof piece.content === "string" ? piece.content : "";
  }
  throw new InvalidRequestError(
    `text gave something that is neither a string nor a chat delta (${typeof piece})`,
    { param: "text" },
  );
}
