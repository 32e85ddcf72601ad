/**
 * A file's audio as samples. WAV is read slice by slice, anywhere; everything else is decoded by the browser, at once
 * and in memory, to the rate speech models hear.
 * Does not know the wire.
 */

/** @import { AudioFormat } from "./types.d.ts" */
/** @import { AudioInput, InputReports } from "./internal.d.ts" */

import { InvalidRequestError, PlaitError } from "./errors.js";
import { int16Of } from "./sample-pieces.js";
import { readWav, samplesOf, wavFormat, wavSeconds } from "./wav-reader.js";

const DECODED_RATE = 16_000;
const SLICE_SAMPLES = 16_384;
/** What a server takes. */
const MIN_RATE = 8_000;
const MAX_RATE = 48_000;
const CONVERT_HINT = "Convert it first: ffmpeg -i input -ar 16000 -ac 1 output.wav";

/**
 * @typedef {object} Opened
 * @property {AudioFormat} format
 * @property {number} seconds
 * @property {() => AsyncIterator<unknown, void> | Iterator<unknown, void>} samples
 */

/** @implements {AudioInput} */
export class FileInput {
  #file;
  #reports;
  /** @type {Opened | null} */
  #opened = null;
  /** @type {AsyncIterator<unknown, void> | Iterator<unknown, void> | null} */
  #samples = null;
  /** @type {number | null} */
  durationMs = null;
  queuedBytes = 0;
  metered = false;

  /**
   * @param {Blob} file
   * @param {InputReports} reports
   */
  constructor(file, reports) {
    this.#file = file;
    this.#reports = reports;
  }

  format = async () => {
    this.#opened = await opened(this.#file);
    this.durationMs = this.#opened.seconds * 1000;
    return this.#opened.format;
  };

  begin() {}

  finish() {
    return false;
  }

  async next() {
    this.#samples ??= /** @type {Opened} */ (this.#opened).samples();
    const result = await this.#samples.next();
    this.#reports.state(result.done ? "ended" : "open");
    return result;
  }

  /** What was decoded is let go with it. */
  async return() {
    this.#opened = this.#samples = null;
    return { value: undefined, done: /** @type {const} */ (true) };
  }
}

/**
 * @param {Blob} file
 * @returns {Promise<Opened>}
 * @throws {PlaitError}
 */
async function opened(file) {
  try {
    if (file.size === 0) throw invalidAudio("The file is empty: there is nothing to transcribe.");
    return (await openWav(file)) ?? (await decoded(file, null));
  } catch (cause) {
    if (PlaitError.isInstance(cause)) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidRequestError(`The file could not be read: ${why}`, { param: "file", cause });
  }
}

/**
 * One the reader does not understand may still be one the browser does.
 *
 * @param {Blob} file
 * @returns {Promise<Opened | null>} null: it is no WAV file
 */
async function openWav(file) {
  let wav;
  try {
    wav = await readWav(file);
    if (wav) checkRate(wav.sampleRate);
  } catch (reason) {
    if (reason instanceof PlaitError) return decoded(file, reason);
    throw reason;
  }
  if (!wav) return null;
  const samples = () => samplesOf(file, wav);
  return { format: wavFormat(wav), seconds: wavSeconds(wav), samples };
}

/** @param {number} sampleRate */
function checkRate(sampleRate) {
  if (sampleRate >= MIN_RATE && sampleRate <= MAX_RATE) return;
  throw invalidAudio(
    `This WAV file has ${sampleRate} samples a second; ${MIN_RATE} to ${MAX_RATE} can be transcribed. ${CONVERT_HINT}`,
  );
}

/**
 * @param {Blob} file
 * @param {PlaitError | null} reason why it is not read as WAV, where it is one
 * @returns {Promise<Opened>}
 */
async function decoded(file, reason) {
  if (typeof OfflineAudioContext === "undefined") {
    throw (
      reason ??
      invalidAudio(
        `This is no WAV file, and only a browser can decode others here. ${CONVERT_HINT}`,
      )
    );
  }
  const context = new OfflineAudioContext(1, 1, DECODED_RATE);
  const bytes = await file.arrayBuffer();
  const audio = await context.decodeAudioData(bytes).catch((cause) => {
    throw (
      reason ??
      invalidAudio(
        "This browser cannot decode the file: it is damaged, or no audio. Try it as WAV, MP3 or M4A.",
        cause,
      )
    );
  });
  return {
    format: { encoding: "pcm_s16le", sampleRate: audio.sampleRate, channels: 1 },
    seconds: audio.duration,
    samples: () => mixed(audio),
  };
}

/** @param {AudioBuffer} audio */
function* mixed(audio) {
  const planes = Array.from({ length: audio.numberOfChannels }, (_, i) => audio.getChannelData(i));
  for (let at = 0; at < audio.length; at += SLICE_SAMPLES) {
    const sum = new Float32Array(Math.min(SLICE_SAMPLES, audio.length - at));
    for (const plane of planes) {
      for (let i = 0; i < sum.length; i += 1) {
        sum[i] = /** @type {number} */ (sum[i]) + (plane[at + i] ?? 0) / planes.length;
      }
    }
    yield int16Of(sum);
  }
}

/**
 * @param {string} message
 * @param {unknown} [cause]
 */
function invalidAudio(message, cause) {
  return new PlaitError("invalid_audio", message, { cause });
}
