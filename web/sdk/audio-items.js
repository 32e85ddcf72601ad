/**
 * What the items of a synthesis are: chunks of PCM16, handed on as they lie in their frames, each with the mark that
 * preceded it. Does not know credit, playback or the stream.
 */

/** @import { AudioChunk, AudioFormat, Mark } from "./types.d.ts" */
/** @import { BinaryFrame } from "./internal.d.ts" */

import { BINARY_KINDS } from "./binary.js";
import { CodecError } from "./codec.js";

/** @type {AudioFormat} */
const DEFAULT_FORMAT = { encoding: "pcm_s16le", sampleRate: 24_000, channels: 1 };

export class AudioItems {
  #format = DEFAULT_FORMAT;
  /** @type {Mark | undefined} */
  #mark = undefined;

  /** Where the audio that arrived ends. */
  endSample = 0;

  /**
   * @param {Partial<AudioFormat> | undefined} format as the server says it
   * @returns {AudioFormat}
   */
  begin(format) {
    this.#format = { ...DEFAULT_FORMAT, ...format };
    return this.#format;
  }

  /** @param {any} data @returns {null | undefined} null: kept for the chunk to come */
  item(data) {
    if (typeof data !== "object" || data === null) return undefined;
    if (data.mark) this.#mark = joined(this.#mark, data.mark);
    return null;
  }

  /**
   * @param {BinaryFrame} frame
   * @throws {CodecError}
   */
  binary({ header, payload }) {
    if (header.kind !== BINARY_KINDS.audioOut) return undefined;
    if (payload.length % 2 === 1) {
      throw new CodecError(`item ${header.seq} has ${payload.length} bytes, not whole samples`);
    }
    const chunk = this.#chunk(payload, header.aux);
    this.endSample = header.aux + chunk.samples.length;
    return chunk;
  }

  /** A mark of what has no audio has nobody to ride on: the texts joined must still be the input. */
  end() {
    return this.#mark && this.#chunk(new Uint8Array(0), this.endSample);
  }

  /**
   * @param {Uint8Array<ArrayBuffer>} audioBytes
   * @param {number} startSample
   * @returns {AudioChunk}
   */
  #chunk(audioBytes, startSample) {
    const { buffer, byteOffset, length } = audioBytes;
    const samples = new Int16Array(buffer, byteOffset, length / 2);
    const mark = this.#mark;
    this.#mark = undefined;
    const { sampleRate } = this.#format;
    return { audioBytes, samples, sampleRate, startSample, ...(mark && { mark }) };
  }
}

/**
 * @param {Mark | undefined} before
 * @param {Mark} mark
 * @returns {Mark}
 */
function joined(before, mark) {
  if (!before) return mark;
  const words = [...(before.words ?? []), ...(mark.words ?? [])];
  return { ...mark, text: before.text + mark.text, start: before.start, words };
}
