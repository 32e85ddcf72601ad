/**
 * Texts on their way up to be embedded, each whole, as many in one message as fit: what they cost in credit is what
 * PROTOCOL.md §5 counts. Also what one open may carry of them.
 * Does not know sources or the wire.
 */

/** @import { Pieces } from "./internal.d.ts" */

import { InvalidRequestError } from "./errors.js";

/** Of each text, beside its bytes in UTF-8. */
const TEXT_OVERHEAD_BYTES = 16;
/** The server answers the first texts while the others are on their way. */
const MESSAGE_BYTES = 32_768;
/** JSON needs at most this many bytes for one byte of UTF-8. */
const ESCAPED_BYTES = 6;
/** `{"type":"input",…}` around the texts. */
const ENVELOPE_BYTES = 64;
/** What an open carries at once; more goes up under credit. */
const OPEN_BYTES = 524_288;

const encoder = new TextEncoder();

/** @implements {Pieces<string[]>} */
export class TextLists {
  #limits;
  /** @type {{ text: string, bytes: number }[]} */
  #texts = [];
  /** Of all that are pending. */
  bytes = 0;
  /** Texts that were put, in all. */
  count = 0;
  /** No more will be put. */
  whole = false;

  /** @param {{ readonly maxTextBytes: number, readonly windowBytes: number }} limits of a message, and of credit */
  constructor(limits) {
    this.#limits = limits;
  }

  /**
   * @param {unknown} batch
   * @throws {InvalidRequestError} for what is no text, or larger than could ever be sent
   */
  put(batch) {
    for (const given of /** @type {unknown[]} */ (batch)) {
      const text = checkedText(given, this.count);
      const bytes = encoder.encode(text).length + TEXT_OVERHEAD_BYTES;
      this.#check(text, bytes);
      this.#texts.push({ text, bytes });
      this.bytes += bytes;
      this.count += 1;
    }
  }

  flush() {
    this.whole = true;
  }

  /** @param {number} maxBytes */
  cut(maxBytes) {
    const few = Math.min(maxBytes, MESSAGE_BYTES, this.#limits.maxTextBytes / (2 * ESCAPED_BYTES));
    let count = 0;
    let bytes = 0;
    for (const next of this.#texts) {
      if (bytes + next.bytes > (count === 0 ? maxBytes : few)) break;
      bytes += next.bytes;
      count += 1;
    }
    if (count === 0) return null;
    this.bytes -= bytes;
    return { piece: this.#texts.splice(0, count).map(({ text }) => text), bytes };
  }

  /**
   * @param {string} text
   * @param {number} bytes
   */
  #check(text, bytes) {
    const { maxTextBytes, windowBytes } = this.#limits;
    const message = () => encoder.encode(JSON.stringify(text)).length + ENVELOPE_BYTES;
    const fits =
      bytes * ESCAPED_BYTES + ENVELOPE_BYTES <= maxTextBytes || message() <= maxTextBytes;
    if (fits && bytes <= windowBytes) return;
    const room = Math.min(maxTextBytes, windowBytes);
    throw invalid(
      `texts[${this.count}]`,
      `has ${bytes} bytes; the server takes some ${room} of one text. Cut it into several`,
    );
  }
}

/**
 * @param {readonly unknown[]} texts
 * @returns {string[] | null} as an open carries them; null: they are too many for one message
 * @throws {InvalidRequestError}
 */
export function openTexts(texts) {
  let units = 0;
  for (const text of texts) units += TEXT_OVERHEAD_BYTES + String(text).length;
  if (units > OPEN_BYTES) return null;
  const checked = texts.map(checkedText);
  const bytes = encoder.encode(JSON.stringify(checked)).length;
  return bytes + texts.length * TEXT_OVERHEAD_BYTES > OPEN_BYTES ? null : checked;
}

/**
 * @param {unknown} text
 * @param {number} index
 */
function checkedText(text, index) {
  // Half a surrogate pair is no text to the server, as nowhere else in Unicode.
  if (typeof text === "string") return wellFormed(text);
  throw invalid(`texts[${index}]`, `must be a string, not ${text === null ? "null" : typeof text}`);
}

/** @param {string} text */
function wellFormed(text) {
  return /\p{Surrogate}/u.test(text) ? text.replace(/\p{Surrogate}/gu, "\ufffd") : text;
}

/**
 * @param {string} param
 * @param {string} text
 */
function invalid(param, text) {
  return new InvalidRequestError(`${param} ${text}.`, { param });
}
