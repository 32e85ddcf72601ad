/**
 * The outline of audio as it grows: the loudest sample of each hundredth of a second. Pure; draws nothing.
 */

export const PEAKS_PER_SECOND = 100;
const FIRST_CAPACITY = 1_000;

export class Peaks {
  /** 0…1, one per bin. */
  #values = new Float32Array(FIRST_CAPACITY);
  #bins = 0;
  #samples = 0;
  #sampleRate = 24_000;

  get seconds() {
    return this.#samples / this.#sampleRate;
  }

  /** @param {Int16Array} samples @param {number} sampleRate */
  push(samples, sampleRate) {
    this.#sampleRate = sampleRate;
    const perBin = sampleRate / PEAKS_PER_SECOND;
    const needed = Math.ceil((this.#samples + samples.length) / perBin);
    if (needed > this.#values.length) this.#grow(needed);
    for (let i = 0; i < samples.length; i += 1) {
      const bin = Math.floor((this.#samples + i) / perBin);
      const loudness = Math.abs(samples[i] ?? 0) / 32_768;
      if (loudness > (this.#values[bin] ?? 0)) this.#values[bin] = loudness;
    }
    this.#samples += samples.length;
    this.#bins = needed;
  }

  /**
   * The loudest between two times; 0 where there is no audio.
   * @param {number} fromSeconds @param {number} toSeconds
   */
  between(fromSeconds, toSeconds) {
    const from = Math.max(0, Math.floor(fromSeconds * PEAKS_PER_SECOND));
    const to = Math.min(this.#bins, Math.max(from + 1, Math.ceil(toSeconds * PEAKS_PER_SECOND)));
    let loudest = 0;
    for (let bin = from; bin < to; bin += 1) loudest = Math.max(loudest, this.#values[bin] ?? 0);
    return loudest;
  }

  /** @param {number} bins */
  #grow(bins) {
    const values = new Float32Array(Math.max(bins, 2 * this.#values.length));
    values.set(this.#values);
    this.#values = values;
  }
}
