/**
 * A WAV file from PCM16 chunks: one RIFF header with the true lengths, then the samples as they came
 * (the wire is little-endian, and so is WAV). Pure; does not know streams.
 */

/** @import { AudioChunk } from "./types.d.ts" */

const HEADER_BYTES = 44;
const BYTES_PER_SAMPLE = 2;
const PCM = 1;
/** RIFF counts in 32 bits: about 24 hours of speech. */
const MAX_DATA_BYTES = 2 ** 32 - HEADER_BYTES;

/**
 * @param {number} sampleRate
 * @param {number} dataBytes
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function wavHeader(sampleRate, dataBytes) {
  if (dataBytes > MAX_DATA_BYTES) {
    throw new RangeError(`a WAV file holds at most ${MAX_DATA_BYTES} bytes, not ${dataBytes}`);
  }
  const header = new Uint8Array(HEADER_BYTES);
  const view = new DataView(header.buffer);
  /** @param {number} at @param {string} name */
  const tag = (at, name) => header.set(new TextEncoder().encode(name), at);
  tag(0, "RIFF");
  view.setUint32(4, HEADER_BYTES - 8 + dataBytes, true);
  tag(8, "WAVE");
  tag(12, "fmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, PCM, true);
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * BYTES_PER_SAMPLE, true);
  view.setUint16(32, BYTES_PER_SAMPLE, true);
  view.setUint16(34, BYTES_PER_SAMPLE * 8, true);
  tag(36, "data");
  view.setUint32(40, dataBytes, true);
  return header;
}

/**
 * @param {Pick<AudioChunk, "audioBytes" | "sampleRate">[]} chunks of one stream, in order
 * @returns {Blob} audio/wav; without chunks, an empty recording at 24 kHz
 */
export function wavOf(chunks) {
  const dataBytes = chunks.reduce((sum, { audioBytes }) => sum + audioBytes.length, 0);
  const header = wavHeader(chunks[0]?.sampleRate ?? 24_000, dataBytes);
  const parts = chunks.map(({ audioBytes }) => /** @type {BlobPart} */ (audioBytes));
  return new Blob([header, ...parts], { type: "audio/wav" });
}
