/** A room in numbers: speech, how it comes back from a loudspeaker, and what a microphone makes of it. */

import { readFileSync } from "node:fs";

/** Seeded, so that a room is the same each time. */
export function chance(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Speech at 8 kHz, μ-law: "answer", of a LibriVox reader, and "user", of J. F. Kennedy; both are in the public domain.
 *
 * @returns {Float32Array}
 */
export function voice(name) {
  const file = readFileSync(new URL(`../data/${name}.wav`, import.meta.url));
  const at = file.indexOf("data") + 8;
  return Float32Array.from(file.subarray(at, at + file.readUInt32LE(at - 4)), linear);
}

/** G.711. */
function linear(byte) {
  const bits = ~byte & 0xff;
  const size = (((bits & 0x0f) << 3) + 0x84) << ((bits & 0x70) >> 4);
  return ((bits & 0x80 ? -1 : 1) * (size - 0x84)) / 32_768;
}

export function rms(samples) {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

/** The same, so loud. */
export function level(samples, loudness) {
  const gain = loudness / rms(samples);
  return samples.map((sample) => sample * gain);
}

/** What comes back: later, softer, and with the room's tail. */
export function echoed(samples, delayMs, gain, rate) {
  const random = chance(delayMs + 1);
  const direct = Math.round((delayMs / 1000) * rate);
  const taps = [[direct, 1]];
  for (let k = 1; k < 0.12 * rate; k += 23) {
    taps.push([direct + k, 0.5 * (random() - 0.5) * Math.exp((-5 * k) / (0.12 * rate))]);
  }
  const out = new Float32Array(samples.length);
  for (const [delay, share] of taps) {
    for (let i = delay; i < out.length; i += 1) out[i] += gain * share * samples[i - delay];
  }
  return out;
}

/** In the microphone: the echo, from `at` on the user, and the room's own noise. */
export function mixed(echo, user = new Float32Array(0), at = 0) {
  const random = chance(9);
  return echo.map((sample, i) => sample + (user[i - at] ?? 0) + 0.001 * (random() - 0.5));
}
