/**
 * What samples are, as a caller declares it, checked before anything is sent.
 */

/** @import { AudioFormat, Encoding } from "./types.d.ts" */

import { invalid } from "./options.js";

/**
 * @param {{ sampleRate?: number, channels?: number, encoding?: Encoding }} format
 * @returns {AudioFormat}
 */
export function checkedFormat({ sampleRate, channels = 1, encoding = "pcm_s16le" }) {
  if (
    typeof sampleRate !== "number" ||
    !(sampleRate > 0 && sampleRate < Number.POSITIVE_INFINITY)
  ) {
    const hint = "samples do not say how many make a second";
    throw invalid("sampleRate", `must be a number such as 16000, not ${sampleRate}: ${hint}`);
  }
  if (channels !== 1 && channels !== 2)
    throw invalid("channels", `must be 1 or 2, not ${channels}`);
  if (encoding !== "pcm_s16le" && encoding !== "pcm_f32le") {
    throw invalid("encoding", `must be "pcm_s16le" or "pcm_f32le", not ${encoding}`);
  }
  return { sampleRate, channels, encoding };
}
