/**
 * A WAV file as samples a server takes, read slice by slice: whole numbers of any width become 16 bits, floats 32,
 * more than two channels one. Strict about what the samples are, since a wrong guess is noise; lenient about lengths,
 * which recorders that were cut off or write to a pipe get wrong: then what is there counts.
 * Does not know the wire.
 */

/** @import { AudioFormat } from "./types.d.ts" */

import { PlaitError } from "./errors.js";

const PCM = 1;
const FLOAT = 3;
const EXTENSIBLE = 0xfffe;
const RIFF_HEADER_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
/** Far more than any real file has before its samples. */
const MAX_CHUNKS = 1_000;
/** The length a chunk says when it does not know: RF64, and whoever writes to a pipe. */
const UNKNOWN_BYTES = 0xffff_ffff;
const SLICE_BYTES = 65_536;

/**
 * @typedef {object} Layout
 * @property {boolean} float
 * @property {number} channels
 * @property {number} sampleRate
 * @property {number} sampleBytes
 */

/** @typedef {Layout & { start: number, end: number }} Wav  where in the file the samples are */

/**
 * @param {Blob} file
 * @returns {Promise<Wav | null>} null: it is no WAV file
 * @throws {PlaitError} invalid_audio: it is one, and its samples cannot be known
 */
export async function readWav(file) {
  const head = await viewOf(file, 0, RIFF_HEADER_BYTES);
  if (head.byteLength < RIFF_HEADER_BYTES || !/^(RIFF|RF64|BW64)$/.test(tagAt(head, 0)))
    return null;
  if (tagAt(head, 8) !== "WAVE") return null;
  const riffBytes = head.getUint32(4, true);
  /** What a file beyond 4 GiB says of its samples. @type {number | null} */
  let longBytes = null;
  /** @type {Layout | null} */
  let layout = null;
  for await (const { tag, bytes, at } of chunksOf(file)) {
    if (tag === "fmt ") layout = layoutOf(await viewOf(file, at, Math.min(bytes, 40)));
    if (tag === "ds64") longBytes = await longBytesAt(file, at);
    if (tag === "data") {
      if (!layout) throw invalidAudio("its samples come before their format");
      const said = bytes === UNKNOWN_BYTES && longBytes !== null ? longBytes : bytes;
      const end = at + dataBytes(said, riffBytes, file.size - at, file.size);
      return { ...layout, start: at, end };
    }
  }
  throw invalidAudio(layout ? "it has no samples (no data chunk)" : "it does not say its format");
}

/**
 * @param {Blob} file
 * @returns {AsyncGenerator<{ tag: string, bytes: number, at: number }, void>} `at`: behind the chunk's header
 */
async function* chunksOf(file) {
  let at = RIFF_HEADER_BYTES;
  for (let chunk = 0; chunk < MAX_CHUNKS; chunk += 1) {
    const header = await viewOf(file, at, CHUNK_HEADER_BYTES);
    if (header.byteLength < CHUNK_HEADER_BYTES) return;
    const bytes = header.getUint32(4, true);
    at += CHUNK_HEADER_BYTES;
    yield { tag: tagAt(header, 0), bytes, at };
    at += bytes + (bytes % 2); // chunks begin at even offsets
  }
}

/**
 * @param {Wav} wav
 * @returns {AudioFormat} of the samples as samplesOf() gives them
 */
export function wavFormat({ float, channels, sampleRate }) {
  const encoding = float ? "pcm_f32le" : "pcm_s16le";
  return { encoding, sampleRate, channels: channels === 2 ? 2 : 1 };
}

/** @param {Wav} wav */
export function wavSeconds({ start, end, channels, sampleBytes, sampleRate }) {
  return Math.floor((end - start) / channels / sampleBytes) / sampleRate;
}

/**
 * @param {Blob} file
 * @param {Wav} wav
 * @returns {AsyncGenerator<Int16Array | Float32Array, void>}
 */
export async function* samplesOf(file, wav) {
  const { start, end, channels, sampleBytes } = wav;
  const frameBytes = channels * sampleBytes;
  const sliceBytes = Math.max(1, Math.floor(SLICE_BYTES / frameBytes)) * frameBytes;
  for (let at = start; at + frameBytes <= end; at += sliceBytes) {
    const view = await viewOf(file, at, Math.min(sliceBytes, end - at));
    yield converted(view, wav);
  }
}

/**
 * @param {DataView} view whole frames, but for the last
 * @param {Wav} wav
 */
function converted(view, { float, channels, sampleBytes }) {
  const frames = Math.floor(view.byteLength / sampleBytes / channels);
  const read = float ? FLOAT_READERS[sampleBytes] : PCM_READERS[sampleBytes];
  const sent = channels === 2 ? 2 : 1;
  const samples = float ? new Float32Array(frames * sent) : new Int16Array(frames * sent);
  const mixed = channels / sent;
  for (let i = 0; i < samples.length; i += 1) {
    let sum = 0;
    for (let part = 0; part < mixed; part += 1) {
      sum += read?.(view, (i * mixed + part) * sampleBytes) ?? 0;
    }
    samples[i] = sum / mixed;
  }
  return samples;
}

/** To 16 bits, by width in bytes. @type {Record<number, (view: DataView, at: number) => number>} */
const PCM_READERS = {
  1: (view, at) => (view.getUint8(at) - 128) * 256, // the one width that is unsigned
  2: (view, at) => view.getInt16(at, true),
  3: (view, at) => view.getInt16(at + 1, true),
  4: (view, at) => view.getInt16(at + 2, true),
};

/** @type {Record<number, (view: DataView, at: number) => number>} */
const FLOAT_READERS = {
  4: (view, at) => view.getFloat32(at, true),
  8: (view, at) => view.getFloat64(at, true),
};

/**
 * @param {DataView} format the chunk `fmt `, as much as matters
 * @returns {Layout}
 */
function layoutOf(format) {
  if (format.byteLength < 16) throw invalidAudio("what it says of its format is too short");
  const tag = format.getUint16(0, true);
  const channels = format.getUint16(2, true);
  const sampleRate = format.getUint32(4, true);
  const frameBytes = format.getUint16(12, true);
  const bits = format.getUint16(14, true);
  const kind = tag === EXTENSIBLE && format.byteLength >= 26 ? format.getUint16(24, true) : tag;
  if (channels === 0 || sampleRate === 0) {
    throw invalidAudio(`it says ${channels} channels at ${sampleRate} Hz`);
  }
  // A sample may be narrower than its place: 20 bits of 24.
  const sampleBytes = frameBytes > 0 ? frameBytes / channels : Math.ceil(bits / 8);
  const readers = kind === FLOAT ? FLOAT_READERS : kind === PCM ? PCM_READERS : {};
  if (!readers[sampleBytes] || bits === 0 || bits > sampleBytes * 8) {
    throw invalidAudio(
      `its samples (format ${kind}, ${bits} bits, ${frameBytes} bytes for ${channels} channels) are neither ` +
        "PCM of 8 to 32 bits nor floats",
    );
  }
  return { float: kind === FLOAT, channels, sampleRate, sampleBytes };
}

/**
 * @param {number} bytes as the chunk says
 * @param {number} riffBytes as the file says
 * @param {number} present
 * @param {number} fileBytes
 */
function dataBytes(bytes, riffBytes, present, fileBytes) {
  // Zero in a file whose own length is wrong too was never filled in; else it is a recording without samples.
  const unfilled = bytes === 0 && riffBytes + CHUNK_HEADER_BYTES !== fileBytes;
  return bytes === UNKNOWN_BYTES || unfilled ? present : Math.min(bytes, present);
}

/**
 * @param {Blob} file
 * @param {number} at of the chunk `ds64`
 */
async function longBytesAt(file, at) {
  const sizes = await viewOf(file, at, 16);
  return sizes.byteLength < 16 ? null : Number(sizes.getBigUint64(8, true));
}

/**
 * @param {Blob} file
 * @param {number} at
 * @param {number} bytes
 */
async function viewOf(file, at, bytes) {
  return new DataView(await file.slice(at, at + bytes).arrayBuffer());
}

/**
 * @param {DataView} view
 * @param {number} at
 */
function tagAt(view, at) {
  return String.fromCharCode(...[0, 1, 2, 3].map((i) => view.getUint8(at + i)));
}

/** @param {string} what */
function invalidAudio(what) {
  return new PlaitError(
    "invalid_audio",
    `This WAV file cannot be read: ${what}. Save it as 16-bit PCM and send it again.`,
  );
}
