/**
 * Text on its way up, cut between characters and no longer than asked for. JSON must not carry half a character, so
 * one that lies in two pieces waits for its other half.
 * Does not know credit or sources.
 */

/** @import { Pieces } from "./internal.d.ts" */

import { InvalidRequestError } from "./errors.js";

/** Far below the server's limit on a frame, also where JSON needs six bytes for one. */
export const MAX_TEXT_BYTES = 16_384;
/** UTF-8 needs at most this many bytes for one UTF-16 unit. */
const BYTES_PER_UNIT = 3;

/** @implements {Pieces<string>} */
export class TextPieces {
  #encoder = new TextEncoder();
  /** A high surrogate whose other half is in the next piece. */
  #half = "";
  #rest = "";

  /** At most so many are pending; 0: none. */
  get bytes() {
    return this.#rest.length * BYTES_PER_UNIT;
  }

  /**
   * @param {unknown} piece a string, or a chat delta: a Stream<ChatDelta> can be spoken as it is
   * @throws {InvalidRequestError}
   */
  put(piece) {
    const text = this.#half + textOf(piece);
    this.#half = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
    this.#rest += this.#half ? text.slice(0, -1) : text;
  }

  flush() {
    if (this.#half) this.#rest += "\ufffd";
    this.#half = "";
  }

  /** @param {number} maxBytes */
  cut(maxBytes) {
    const bytes = new Uint8Array(Math.min(maxBytes, this.bytes));
    // Whole characters only; what is half becomes U+FFFD on the way.
    const { read, written } = this.#encoder.encodeInto(this.#rest, bytes);
    if (read === 0) return null;
    this.#rest = this.#rest.slice(read);
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return { piece: decoder.decode(bytes.subarray(0, written)), bytes: written };
  }
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
