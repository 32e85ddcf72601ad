/**
 * Samples on their way up, in the encoding that was declared: bytes pass as they are, numbers are converted a bit at a
 * time, so a long array costs no second one. Cut anywhere: the server joins a sample that lies in two messages.
 * Does not know credit or sources. Typed arrays are little-endian, like the wire, wherever this runs.
 */

/** @import { Encoding } from "./types.d.ts" */
/** @import { Pieces } from "./internal.d.ts" */

import { InvalidRequestError } from "./errors.js";

/** Converted at once. */
const BLOCK_SAMPLES = 16_384;
const NONE = new Uint8Array(0);

/** @param {Encoding} encoding */
export function sampleBytes(encoding) {
  return encoding === "pcm_f32le" ? 4 : 2;
}

/**
 * Not a number is silence; beyond full scale is clipped.
 *
 * @param {Float32Array} samples
 */
export function int16Of(samples) {
  const result = new Int16Array(samples.length);
  for (const [i, sample] of samples.entries()) {
    result[i] = Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)));
  }
  return result;
}

/** @param {Int16Array} samples */
function float32Of(samples) {
  return Float32Array.from(samples, (sample) => sample / 32_768);
}

/** @implements {Pieces<Uint8Array>} */
export class SamplePieces {
  #encoding;
  /** Goes up as it is. @type {Uint8Array} */
  #ready = NONE;
  /** To be converted. @type {Int16Array | Float32Array | null} */
  #rest = null;

  /** @param {Encoding} encoding */
  constructor(encoding) {
    this.#encoding = encoding;
  }

  get bytes() {
    return this.#ready.length + (this.#rest?.length ?? 0) * sampleBytes(this.#encoding);
  }

  /**
   * @param {unknown} value
   * @throws {InvalidRequestError}
   */
  put(value) {
    const samples = value instanceof ArrayBuffer ? new Uint8Array(value) : value;
    const asDeclared = this.#encoding === "pcm_f32le" ? Float32Array : Int16Array;
    if (samples instanceof Uint8Array || samples instanceof asDeclared) {
      this.#ready = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
    } else if (samples instanceof Int16Array || samples instanceof Float32Array) {
      this.#rest = samples;
    } else {
      throw new InvalidRequestError(
        `source gave something that is no samples (${nameOf(value)}): give Int16Array or Float32Array, ` +
          "or Uint8Array with the bytes of the declared encoding",
        { param: "source" },
      );
    }
  }

  flush() {}

  /** @param {number} maxBytes */
  cut(maxBytes) {
    if (this.#ready.length === 0) this.#convert();
    const piece = this.#ready.subarray(0, maxBytes);
    this.#ready = this.#ready.subarray(piece.length);
    return { piece, bytes: piece.length };
  }

  #convert() {
    const block = this.#rest?.subarray(0, BLOCK_SAMPLES);
    if (!block) return;
    const { buffer } = block instanceof Float32Array ? int16Of(block) : float32Of(block);
    this.#ready = new Uint8Array(buffer);
    this.#rest = this.#rest?.subarray(block.length) ?? null;
  }
}

/** @param {unknown} value */
function nameOf(value) {
  return Object(value) === value ? Object(value).constructor?.name : typeof value;
}
