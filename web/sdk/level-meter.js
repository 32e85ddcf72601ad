/**
 * How loud samples are, block by block, whatever pieces they come in. The audio thread measures what it captures by
 * itself; this is for samples that come from elsewhere.
 */

/** @import { AudioFormat, Level } from "./types.d.ts" */

import { sampleBytes } from "./sample-pieces.js";

const BLOCK_SECONDS = 0.03;

export class LevelMeter {
  #bytesPerSecond;
  #bytes;
  #samples;
  #scale;
  #filled = 0;
  #seenBytes = 0;

  /** @param {AudioFormat} format */
  constructor({ sampleRate, channels, encoding }) {
    const frameBytes = channels * sampleBytes(encoding);
    const block = new ArrayBuffer(Math.max(1, Math.round(BLOCK_SECONDS * sampleRate)) * frameBytes);
    this.#bytesPerSecond = sampleRate * frameBytes;
    this.#bytes = new Uint8Array(block);
    this.#samples = encoding === "pcm_f32le" ? new Float32Array(block) : new Int16Array(block);
    this.#scale = encoding === "pcm_f32le" ? 1 : 1 / 32_768;
  }

  /**
   * @param {Uint8Array} piece cut anywhere
   * @param {(level: Level) => void} tell
   */
  take(piece, tell) {
    for (let rest = piece; rest.length > 0; ) {
      const part = rest.subarray(0, this.#bytes.length - this.#filled);
      this.#bytes.set(part, this.#filled);
      this.#filled += part.length;
      this.#seenBytes += part.length;
      rest = rest.subarray(part.length);
      if (this.#filled === this.#bytes.length) tell(this.#level());
    }
  }

  /** @returns {Level} */
  #level() {
    let squares = 0;
    let peak = 0;
    for (const sample of this.#samples) {
      const size = Math.abs(sample * this.#scale) || 0; // not a number is silence
      squares += size * size;
      peak = Math.max(peak, size);
    }
    this.#filled = 0;
    const rms = Math.sqrt(squares / this.#samples.length);
    return { rms, peak, at: this.#seenBytes / this.#bytesPerSecond };
  }
}
